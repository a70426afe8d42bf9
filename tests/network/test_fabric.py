"""Transfers in motion: who ends when."""

import pytest
import simpy

from triosim.network.fabric import Fabric
from triosim.network.links import Link, Load
from triosim.network.optical import CircuitSwitch


def links(*capacities):
    return [Link(name=str(i), bytes_per_s=c, source=0, target=1) for i, c in enumerate(capacities)]


def load(size, *route, latency_s=0.0, circuits=()):
    return Load(
        bytes_by_link=tuple((i, size) for i in route),
        latency_s=latency_s,
        sent_bytes=size,
        circuits=circuits,
    )


def ends(capacities, transfers, circuits=None):
    """End of each (start, load) in the order given."""
    env = simpy.Environment()
    fabric = Fabric(env, links(*capacities), circuits)
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
