"""What the calibrated protocols make of a pattern."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.network.collectives.networks import one_group, switch
from triosim.network.collectives import library
from triosim.network.collectives.choose import candidates, lay_out
from triosim.network.collectives.library import Library
from triosim.network.protocol import load_calibration
from triosim.network.topology.describe import machine_names, topology_of

CALIBRATED = tuple(name for name in machine_names() if name != "mi300x")


def test_ideal_costs_are_the_pattern_s_own():
    pattern = lay_out("all-reduce", "ring", one_group(8), switch(8, 1e-6))
    cost = library.ideal(pattern)
    assert cost.protocol is None
    assert cost.time_s(pattern, 1e9) == pytest.approx(pattern.time_s(1e9))
    assert cost.latency_s == pytest.approx(14e-6)


def test_links_without_calibration_stay_ideal():
    network = switch(8, 1e-6)
    for name, pattern in candidates("all-reduce", one_group(8), network).items():
        cost = Library(network).cost(name, pattern, 8, 1e6)
        assert cost == library.ideal(pattern)


def test_a_ring_inside_one_switch_takes_its_steps_and_the_share_of_the_bandwidth_reached():
    """By hand from the constants of the links: base + 14 steps + bytes over the share reached."""
    network, groups, size = topology_of("dgx-a100", 8), one_group(8), 1e9
    pattern = lay_out("all-reduce", "ring", groups, network)
    calibration = load_calibration(network.protocol(groups))
    link = network.capacity_bytes_per_s[0]
    # A rank's own block costs as well: 1/14 of what 14 steps send.
    sent = 2 * 7 / 8 * size * (1 + calibration.own_block / 14)
    want = min(k.base_s + 14 * k.step_s + sent / (link * k.share) for k in calibration.protocols)
    cost = Library(network).cost("ring", pattern, 8, size)
    assert cost.time_s(pattern, size) == pytest.approx(want)


@given(
    st.sampled_from(CALIBRATED),
    st.sampled_from([2, 8, 16, 24]),
    st.sampled_from(["all-reduce", "all-gather", "reduce-scatter"]),
    st.floats(0, 1e11),
    st.floats(0, 1e11),
)
def test_the_best_protocol_never_takes_longer_for_fewer_bytes(name, ranks, op, one, other):
    network, groups = topology_of(name, ranks), one_group(ranks)
    less, more = sorted((one, other))
    for algorithm, pattern in candidates(op, groups, network).items():
        known = Library(network)
        costs = [known.cost(algorithm, pattern, ranks, size) for size in (less, more)]
        if costs[0] is None:
            assert costs[1] is None
            continue
        times = [c.time_s(pattern, s) for c, s in zip(costs, (less, more), strict=True)]
        assert times[0] <= times[1] * (1 + 1e-12)
        # The other's protocol is there as well and would have been taken if it were sooner.
        assert times[0] <= costs[1].time_s(pattern, less) * (1 + 1e-12)


@pytest.mark.parametrize("name", CALIBRATED)
@pytest.mark.parametrize("ranks", [2, 8, 16])
def test_calibrated_large_messages_are_not_faster_than_the_links(name, ranks):
    network, groups = topology_of(name, ranks), one_group(ranks)
    pattern = lay_out("all-gather", "ring", groups, network)
    cost = Library(network).cost("ring", pattern, ranks, 1e10)
    assert cost.protocol is not None
    assert cost.time_s(pattern, 1e10) >= pattern.seconds_per_byte * 1e10


def test_what_the_library_has():
    assert library.has("all-reduce", "ring", hosts=False)
    assert not library.has("all-reduce", "hierarchical", hosts=False)
    assert library.has("all-reduce", "hierarchical", hosts=True)
    assert not library.has("all-reduce", "halving-doubling", hosts=True)
    for op in ("all-to-all", "send"):
        assert library.has(op, "direct", hosts=True)
        assert not library.has(op, "ring", hosts=True)


def test_in_network_where_the_switches_have_been_measured():
    network, groups = topology_of("dgx-h100", 8), one_group(8)
    pattern = lay_out("all-reduce", "in-network", groups, network)
    cost = Library(network).cost("in-network", pattern, 8, 1e9)
    reached = load_calibration(network.protocol(groups)).in_network
    # (1 + 1/n) S passes each rank's links.
    want = 9 / 8 * 1e9 / (network.capacity_bytes_per_s[0] * reached.share)
    assert cost.time_s(pattern, 1e9) - cost.latency_s == pytest.approx(want)
