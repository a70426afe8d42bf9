"""Transfers in motion: who ends when."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import simpy
from hypothesis import given
from hypothesis import strategies as st

from triosim.errors import Infeasible
from triosim.network.fabric import Fabric
from triosim.network.links import Link, Load
from triosim.network.mesh import Mesh
from triosim.network.optical import CircuitSwitch
from triosim.network.record import bundles


def links(*capacities):
    return [Link(name=str(i), bytes_per_s=c, source=0, target=1) for i, c in enumerate(capacities)]


def load(size, *route, latency_s=0.0, circuits=(), then=()):
    return Load(
        bytes_by_link=tuple((i, size) for i in route),
        latency_s=latency_s,
        sent_bytes=size,
        circuits=circuits,
        then=then,
    )


def ends(capacities, transfers, circuits=None, loads=None):
    """End of each (start, load) in the order given."""
    env = simpy.Environment()
    fabric = Fabric(env, links(*capacities), circuits, loads)
    log = {}

    def flow(number, start, wanted):
        yield env.timeout(start)
        yield fabric.transfer(wanted)
        log[number] = env.now

    for number, (start, wanted) in enumerate(transfers):
        env.process(flow(number, start, wanted))
    env.run()
    return [log[i] for i in range(len(transfers))], fabric


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_equal_flows_on_one_link_end_together_at_k_times_the_time_of_one(count):
    times, fabric = ends([10.0], [(0, load(100.0, 0))] * count)
    assert times == pytest.approx([count * 10.0] * count)
    assert fabric.carried_bytes == pytest.approx([count * 100.0])
    assert fabric.peak_bytes_per_s == pytest.approx([10.0])


def test_when_one_leaves_the_others_speed_up():
    # Both at 5 B/s until the small one has its 20 bytes at 4 s; then 80 bytes at 10 B/s.
    times, _ = ends([10.0], [(0, load(100.0, 0)), (0, load(20.0, 0))])
    assert times == pytest.approx([12.0, 4.0])


def test_one_that_joins_later_slows_the_first():
    # Alone for 5 s (50 bytes), then both at 5 B/s: 10 s more for each.
    times, _ = ends([10.0], [(0, load(100.0, 0)), (5, load(50.0, 0))])
    assert times == pytest.approx([15.0, 15.0])


def test_the_order_of_arrivals_at_one_instant_does_not_matter():
    wanted = [(0, load(100.0, 0)), (0, load(20.0, 0, 1)), (0, load(60.0, 1))]
    there, _ = ends([10.0, 4.0], wanted)
    back, _ = ends([10.0, 4.0], wanted[::-1])
    assert there == pytest.approx(back[::-1])


def test_redistribution_in_motion():
    # Rates 0.5, 0.5 and 1.5 until A and B (5 bytes each) end at 10 s, C has 15 of its 25 bytes by
    # then and the whole of L2 for the rest.
    times, _ = ends([1.0, 2.0], [(0, load(5.0, 0)), (0, load(5.0, 0, 1)), (0, load(25.0, 1))])
    assert times == pytest.approx([10.0, 10.0, 15.0])


def test_a_change_two_links_away_is_felt():
    # B shares L0 with A and L1 with C. When A ends at 2 s, B rises and C falls.
    times, _ = ends([2.0, 4.0], [(0, load(2.0, 0)), (0, load(10.0, 0, 1)), (0, load(12.0, 1))])
    # Until 2 s: A 1, B 1, C 3. Then B 2, C 2: B has 8 left (6 s), C 6 left, 4 s.
    # From 5 s on, B alone: L0 allows 2, so it keeps its rate.
    assert times == pytest.approx([2.0, 6.0, 5.0])


def test_opposite_directions_do_not_share():
    times, _ = ends([10.0, 10.0], [(0, load(100.0, 0)), (0, load(100.0, 1))])
    assert times == pytest.approx([10.0, 10.0])


def test_latency_takes_no_bandwidth():
    times, _ = ends([10.0], [(0, load(100.0, 0)), (0, load(100.0, 0, latency_s=10.0))])
    assert times == pytest.approx([10.0, 20.0])


def test_nothing_to_move_takes_the_latency():
    times, _ = ends([10.0], [(0, load(0.0, 0, latency_s=3.0)), (1, load(0.0, 0))])
    assert times == pytest.approx([3.0, 1.0])


def test_twice_the_bandwidth_halves_every_time():
    wanted = [(0, load(100.0, 0)), (0, load(20.0, 0, 1)), (0, load(60.0, 1))]
    slow, _ = ends([10.0, 4.0], wanted)
    fast, _ = ends([20.0, 8.0], wanted)
    assert fast == pytest.approx([t / 2 for t in slow])


def test_a_circuit_is_set_up_once_and_reused():
    # Total = set-up where the circuit is absent + bytes/B + hop latency.
    one = load(100.0, 0, latency_s=1.0, circuits=((0, 1),))
    times, _ = ends([10.0], [(0, one), (20, one)], CircuitSwitch(5.0))
    assert times == pytest.approx([16.0, 31.0])


def test_a_circuit_that_stands_costs_nothing():
    one = load(100.0, 0, circuits=((1, 0),))
    times, _ = ends([10.0], [(0, one)], CircuitSwitch(5.0, standing=[(0, 1)]))
    assert times == pytest.approx([10.0])


def test_parts_follow_each_other():
    # 10 s and 2 s of latency on link 0, 5 s on link 1, then 3 s of latency alone.
    parts = (load(50.0, 1), load(0.0, latency_s=3.0))
    times, fabric = ends([10.0, 10.0], [(1, load(100.0, 0, latency_s=2.0, then=parts))])
    assert times == pytest.approx([21.0])
    assert fabric.carried_bytes == pytest.approx([100.0, 50.0])


def test_a_later_part_shares_where_it_moves():
    # The second part of A meets B from 10 s on: 5 B/s each; B has 50 left then, A 100.
    first = load(100.0, 0, then=(load(100.0, 1),))
    times, _ = ends([10.0, 10.0], [(0, first), (5, load(100.0, 1))])
    assert times == pytest.approx([25.0, 20.0])


def test_circuits_are_held_to_the_end_of_the_last_part():
    mesh = Mesh(rows=1, cols=4, wavelengths=1)
    one = load(10.0, 0, circuits=((0, 1),), then=(load(20.0, 0), load(10.0, 1, circuits=((1, 2),))))
    other = load(10.0, 2, circuits=((1, 3),))
    switch = CircuitSwitch(3.0, teardown_s=2.0, mesh=mesh)
    times, _ = ends([1.0, 1.0, 1.0], [(0, one), (1, other)], switch)
    # Set-up to 3 s, 40 bytes to 43 s; then tear-down, set-up and 10 bytes.
    assert times == pytest.approx([43.0, 58.0])


def test_circuits_that_can_never_stand_together_end_the_run_with_a_sentence():
    ring = load(10.0, 0, circuits=((0, 1), (1, 2), (2, 0)))
    switch = CircuitSwitch(1.0, mesh=Mesh(rows=1, cols=3, wavelengths=1))
    with pytest.raises(Infeasible, match=r"needs 2 circuits at once on the mesh link .*\.$"):
        ends([1.0], [(0, ring)], switch)


def test_usage_is_a_step_function():
    _, fabric = ends([10.0, 4.0], [(1, load(40.0, 0)), (3, load(40.0, 0)), (9, load(8.0, 0, 1))])
    # Alone for 2 s (20 bytes), together for 4 s, alone again for 2 s; then 4 B/s, link 1 is full.
    (time_s, bytes_per_s), (time_1_s, bytes_1_per_s) = fabric.usage()
    assert time_s[[0, -1]] == pytest.approx([1.0, 11.0])
    at = np.searchsorted(time_s, [1.5, 4.0, 8.5, 10.0, 12.0], side="right") - 1
    assert bytes_per_s[at] == pytest.approx([10.0, 10.0, 10.0, 4.0, 0.0])
    assert time_1_s == pytest.approx([9.0, 11.0])
    assert bytes_1_per_s == pytest.approx([4.0, 0.0])


def test_the_order_of_arrivals_at_one_instant_does_not_show_in_the_peak():
    # Alone for no time at all, A would have link 1's whole 10 B/s.
    wanted = [(0, load(10.0, 0, 1)), (0, load(10.0, 0))]
    for order in (wanted, wanted[::-1]):
        assert ends([10.0, 10.0], order)[1].peak_bytes_per_s == pytest.approx([10.0, 5.0])


def test_a_link_without_traffic_has_no_usage():
    _, fabric = ends([10.0, 10.0], [(0, load(100.0, 1))])
    time_s, bytes_per_s = fabric.usage()[0]
    assert len(time_s) == len(bytes_per_s) == 0
    assert fabric.peak_bytes_per_s[0] == 0.0


@st.composite
def traffics(draw, most_latency_s=5.0):
    """Capacities, and transfers as (start, load) with other bytes on each link."""
    capacities = draw(st.lists(st.floats(0.5, 100.0), min_size=1, max_size=5))
    link = st.integers(0, len(capacities) - 1)
    parts = st.lists(st.tuples(link, st.floats(0.1, 100.0)), max_size=3, unique_by=lambda k: k[0])
    one = st.builds(
        lambda bytes_by_link, latency_s: Load(
            bytes_by_link=tuple(bytes_by_link), latency_s=latency_s, sent_bytes=0.0
        ),
        parts,
        st.floats(0.0, most_latency_s),
    )
    start = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0.0, 20.0))
    transfer = st.tuples(start, one, st.lists(one, max_size=2))
    transfers = draw(st.lists(transfer, min_size=1, max_size=8))
    return capacities, [(at, replace(first, then=tuple(more))) for at, first, more in transfers]


def over_time(steps, at):
    time_s, bytes_per_s = steps
    i = np.searchsorted(time_s, at, side="right") - 1
    return bytes_per_s[i] if i >= 0 else 0.0


@given(traffics())
def test_links_in_bundles_carry_what_they_carry_alone(traffic):
    capacities, transfers = traffic
    one, alone = ends(capacities, transfers)
    other, bundled = ends(capacities, transfers, loads=[wanted for _, wanted in transfers] * 2)
    assert one == other
    assert bundled.carried_bytes == alone.carried_bytes
    assert bundled.peak_bytes_per_s == alone.peak_bytes_per_s
    for mine, its in zip(bundled.usage(), alone.usage(), strict=True):
        assert [column.tolist() for column in mine] == [column.tolist() for column in its]


def test_a_bundle_is_the_links_that_the_same_loads_use():
    wide, narrow = load(40.0, 0, 1, 2), load(8.0, 2, then=(load(8.0, 3),))
    found = bundles(6, [wide, narrow, wide, wide])
    assert found[0] == found[1]
    assert found[4] == found[5]  # nobody's
    assert len({found[i] for i in (0, 2, 3, 4)}) == 4
    assert bundles(6, [wide, narrow, wide]) == list(range(6))  # too few come again


@given(traffics())
def test_usage_adds_up_to_what_was_sent(traffic):
    capacities, transfers = traffic
    _, fabric = ends(capacities, transfers)
    sent = [0.0] * len(capacities)
    for _, whole in transfers:
        for part in whole.parts:
            for link, size in part.bytes_by_link:
                sent[link] += size
    assert fabric.carried_bytes == pytest.approx(sent)
    for i, (time_s, bytes_per_s) in enumerate(fabric.usage()):
        assert np.sum(bytes_per_s[:-1] * np.diff(time_s)) == pytest.approx(sent[i])
        assert fabric.peak_bytes_per_s[i] == max(bytes_per_s, default=0.0)
        assert max(bytes_per_s, default=0.0) <= capacities[i] * (1 + 1e-9)
        assert all(bytes_per_s[-1:] == 0.0)
        assert np.all(np.diff(time_s) > 0)


@given(traffics())
def test_every_unfinished_transfer_crosses_a_full_link(traffic):
    capacities, transfers = traffic
    transfers = [(start, replace(whole, then=())) for start, whole in transfers]
    times, fabric = ends(capacities, transfers)
    usage = fabric.usage()
    instants = np.unique(np.concatenate([[0.0], *(steps[0] for steps in usage)]))
    for low, high in pairwise(instants):
        if high - low < 1e-9:
            continue
        middle = (low + high) / 2
        full = {
            i
            for i, steps in enumerate(usage)
            if over_time(steps, middle) >= capacities[i] * (1 - 1e-9)
        }
        for (start, whole), end in zip(transfers, times, strict=True):
            if whole.bytes_by_link and start + whole.latency_s < middle < end:
                assert full.intersection(link for link, _ in whole.bytes_by_link)


@given(st.integers(1, 8), st.floats(0.1, 100.0), st.floats(0.1, 100.0))
def test_equal_flows_end_together(count, size, capacity):
    times, _ = ends([capacity], [(0, load(size, 0))] * count)
    assert times == pytest.approx([count * size / capacity] * count)


@given(traffics(), st.randoms(use_true_random=False))
def test_the_order_of_same_instant_arrivals_does_not_matter(traffic, random):
    capacities, transfers = traffic
    order = list(range(len(transfers)))
    random.shuffle(order)
    there, _ = ends(capacities, transfers)
    back, _ = ends(capacities, [transfers[i] for i in order])
    assert back == pytest.approx([there[i] for i in order])


@given(traffics())
def test_traffic_in_the_other_direction_changes_nothing(traffic):
    capacities, transfers = traffic

    def mirrored(part):
        other = tuple((link + len(capacities), size) for link, size in part.bytes_by_link)
        return replace(part, bytes_by_link=other)

    against = [
        (start, replace(mirrored(whole), then=tuple(mirrored(part) for part in whole.then)))
        for start, whole in transfers
    ]
    alone, _ = ends(capacities, transfers)
    both, _ = ends(capacities * 2, transfers + against)
    assert both == pytest.approx(alone * 2)


@given(traffics(most_latency_s=0.0))
def test_doubling_every_bandwidth_halves_every_time(traffic):
    capacities, transfers = traffic
    slow, _ = ends(capacities, transfers)
    fast, _ = ends([2 * c for c in capacities], [(at / 2, whole) for at, whole in transfers])
    assert fast == pytest.approx([t / 2 for t in slow])


@st.composite
def optical_traffics(draw):
    """A small mesh and transfers over single circuits, a link of its own in each direction."""
    rows, cols = draw(st.sampled_from([(1, 4), (1, 8), (2, 2), (2, 4), (3, 3)]))
    gpus = rows * cols
    gpu = st.integers(0, gpus - 1)
    pair = st.tuples(gpu, gpu).filter(lambda ends: ends[0] != ends[1])
    start = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0.0, 20.0))
    transfer = st.tuples(start, pair, st.floats(0.1, 50.0), st.floats(0.0, 1.0))
    transfers = [
        (at, load(size, a * gpus + b, latency_s=latency_s, circuits=((a, b),)))
        for at, (a, b), size, latency_s in draw(st.lists(transfer, min_size=1, max_size=12))
    ]
    return (rows, cols), [10.0] * gpus**2, transfers


def on_mesh(shape, wavelengths, setup_s=0.0, teardown_s=0.0):
    mesh = Mesh(rows=shape[0], cols=shape[1], wavelengths=wavelengths)
    return CircuitSwitch(setup_s, teardown_s=teardown_s, mesh=mesh)


@given(optical_traffics())
def test_circuits_that_cost_nothing_and_lack_nothing_equal_electrical_links(traffic):
    shape, capacities, transfers = traffic
    electrical, _ = ends(capacities, transfers)
    # With 9 GPUs at most, none needs more than the 8 circuits that it terminates.
    assert ends(capacities, transfers, on_mesh(shape, None))[0] == electrical
    assert ends(capacities, transfers, on_mesh(shape, len(transfers)))[0] == electrical


@given(
    optical_traffics(),
    st.one_of(st.none(), st.integers(1, 3)),
    st.floats(0.0, 10.0),
    st.floats(0.0, 10.0),
)
def test_setting_up_and_scarce_wavelengths_never_end_sooner(
    traffic, wavelengths, setup_s, teardown_s
):
    shape, capacities, transfers = traffic
    electrical, _ = ends(capacities, transfers)
    ready, _ = ends(capacities, transfers, on_mesh(shape, wavelengths))
    slow, fabric = ends(capacities, transfers, on_mesh(shape, wavelengths, setup_s, teardown_s))
    assert max(electrical) <= max(ready) * (1 + 1e-9)
    assert max(ready) <= max(slow) * (1 + 1e-9)
    assert sum(fabric.carried_bytes) == pytest.approx(sum(k.sent_bytes for _, k in transfers))


@given(optical_traffics(), st.floats(0.0, 10.0))
def test_one_transfer_takes_set_up_latency_and_its_bytes(traffic, setup_s):
    shape, capacities, transfers = traffic
    start, one = transfers[0]
    (end,), _ = ends(capacities, [(start, one)], on_mesh(shape, 1, setup_s))
    assert end == pytest.approx(start + setup_s + one.latency_s + one.sent_bytes / 10.0)
