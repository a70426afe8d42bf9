"""What holds for every algorithm and network: sums, lower bounds, symmetry."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.network.collectives.networks import (
    GB,
    cluster,
    mesh_of,
    one_group,
    ring_of,
    rows,
    switch,
    torus_of,
)
from triosim.network.closed_forms import (
    halving_doubling_all_reduce,
    hierarchical_all_reduce_s,
    pipelined_all_gather_s,
    ring_all_reduce,
    torus_all_reduce,
    tree_all_reduce,
)
from triosim.network.collectives.choose import ALGORITHMS, candidates, lay_out

POINT_TO_POINT = [
    name
    for name, entry in ALGORITHMS.items()
    if "all-reduce" in entry.operations and name not in ("in-network", "torus")
]
HALVES = [name for name in POINT_TO_POINT if "all-gather" in ALGORITHMS[name].operations]
US = 1e-6
networks = st.sampled_from([switch, ring_of, mesh_of, lambda n, a=0.0: cluster(n, 4, latency_s=a)])


def time_s(op, algorithm, topology, size_bytes, groups=None):
    groups = one_group(topology.ranks) if groups is None else groups
    return lay_out(op, algorithm, groups, topology).time_s(size_bytes)


@given(st.sampled_from(HALVES), networks, st.integers(1, 40), st.floats(0, 1e12))
def test_c3_an_all_reduce_is_a_reduce_scatter_and_an_all_gather(algorithm, make, n, size_bytes):
    whole, scatter, gather = (
        lay_out(op, algorithm, one_group(n), make(n, US))
        for op in ("all-reduce", "reduce-scatter", "all-gather")
    )
    both_s = scatter.time_s(size_bytes) + gather.time_s(size_bytes)
    assert whole.time_s(size_bytes) == pytest.approx(both_s, rel=1e-12)
    assert whole.shares() == pytest.approx(scatter.shares() + gather.shares(), rel=1e-12)
    assert whole.steps == scatter.steps + gather.steps


@given(st.integers(1, 5), st.integers(1, 5))
def test_c3_on_a_torus(a, b):
    network = torus_of(a, b, latency_s=US)
    parts = [time_s(op, "torus", network, GB) for op in ("reduce-scatter", "all-gather")]
    assert time_s("all-reduce", "torus", network, GB) == pytest.approx(sum(parts), rel=1e-12)


@given(st.integers(2, 64))
def test_c3_switches_carry_the_bytes_of_both_halves_at_once(n):
    network = switch(n, reduces=True)
    parts = [
        lay_out(op, "in-network", one_group(n), network).shares()
        for op in ("reduce-scatter", "all-gather")
    ]
    whole = lay_out("all-reduce", "in-network", one_group(n), network).shares()
    assert whole == pytest.approx(sum(parts), rel=1e-12)


@given(st.integers(1, 200), st.floats(0, 1e12), st.floats(0, 1e-3))
def test_c1_c5_c6_closed_forms(n, size_bytes, latency_s):
    network = switch(n, latency_s)
    for algorithm, cost in (
        ("ring", ring_all_reduce),
        ("halving-doubling", halving_doubling_all_reduce),
        ("tree", tree_all_reduce),
    ):
        expected_s = cost(n, size_bytes).time_s(100 * GB, latency_s)
        actual_s = time_s("all-reduce", algorithm, network, size_bytes)
        assert actual_s == pytest.approx(expected_s, rel=1e-9)


speeds = st.floats(1, 1000)


@given(st.integers(1, 9), st.integers(1, 9), speeds, speeds)
def test_c4_c11_closed_forms(hosts, gpus, one, other):
    # A NIC faster than the GPU's own link would not be the middle term's bottleneck.
    inside, nic = max(one, other), min(one, other)
    network = cluster(hosts * gpus, gpus, inside, nic)
    expected_s = hierarchical_all_reduce_s(hosts, gpus, GB, inside * GB, nic * GB)
    assert time_s("all-reduce", "hierarchical", network, GB) == pytest.approx(expected_s, rel=1e-9)
    expected_s = pipelined_all_gather_s(hosts, gpus, GB, inside * GB, nic * GB)
    pipelined_s = time_s("all-gather", "hierarchical-pipelined", network, GB)
    assert pipelined_s == pytest.approx(expected_s, rel=1e-9)


@given(st.integers(2, 6), st.integers(2, 6), st.integers(1, 4))
def test_c4_a_shared_nic_multiplies_the_middle_term(hosts, gpus, factor):
    inside_s = ring_all_reduce(gpus, GB).time_s(1e6 * GB)
    own = cluster(hosts * gpus, gpus, 1e6, factor)
    shared = cluster(hosts * gpus, gpus, 1e6, factor, shared_nic=True)
    middle_s = time_s("all-reduce", "hierarchical", own, GB) - inside_s
    actual_s = time_s("all-reduce", "hierarchical", shared, GB)
    assert actual_s == pytest.approx(inside_s + gpus * middle_s, rel=1e-9)


@given(st.lists(st.integers(1, 6), min_size=1, max_size=3).filter(lambda s: np.prod(s) > 1))
def test_c10_closed_form(shape):
    network = torus_of(*shape, latency_s=US)
    cost = torus_all_reduce(shape[::-1], GB)
    # A side of 2 has one cable, and a ring of 2 uses it both ways: the same as any other side.
    assert time_s("all-reduce", "torus", network, GB) == pytest.approx(
        cost.time_s(100 * GB, US), rel=1e-9
    )


@given(st.integers(2, 40), st.floats(1, 1e12))
def test_c7_nothing_between_ranks_beats_the_bound(n, size_bytes):
    # The links of a rank in one direction, in 100 GB/s.
    for network, links in (
        (switch(n), 1),
        (ring_of(n), min(2, n - 1)),
        (mesh_of(n), n - 1),
        (cluster(n, 8), 4.5),
    ):
        bound_s = 2 * (n - 1) / n * size_bytes / (links * 100 * GB)
        for algorithm in POINT_TO_POINT:
            actual_s = time_s("all-reduce", algorithm, network, size_bytes)
            assert actual_s >= bound_s * (1 - 1e-9)


@pytest.mark.parametrize("n", [2, 3, 8, 33])
def test_c7_direct_messages_over_links_between_any_two_reach_the_bound(n):
    seconds = time_s("all-reduce", "direct", mesh_of(n), GB)
    assert seconds == pytest.approx(2 * (n - 1) / n * GB / ((n - 1) * 100 * GB), rel=1e-12)


@given(st.data(), st.integers(2, 24))
def test_c9_an_all_to_all_cannot_beat_any_cut(data, n):
    inside = data.draw(st.sets(st.integers(0, n - 1), min_size=1, max_size=n - 1))
    crossing_bytes = len(inside) * (n - len(inside)) / n * GB
    # Links out of the set: its GPUs' own on a switch, those to outsiders on a ring and a mesh.
    cables = sum((rank + way) % n not in inside for rank in inside for way in {1, n - 1})
    pairs = len(inside) * (n - len(inside))
    for network, links in ((switch(n), len(inside)), (ring_of(n), cables), (mesh_of(n), pairs)):
        for algorithm in ("ring", "direct"):
            bound_s = crossing_bytes / (links * 100 * GB)
            assert time_s("all-to-all", algorithm, network, GB) >= bound_s * (1 - 1e-9)


def test_c9_it_grows_on_a_ring_and_stays_on_a_switch():
    around = [time_s("all-to-all", "direct", ring_of(n), GB) for n in (8, 16, 32)]
    assert around == pytest.approx([1e-2, 2e-2, 4e-2])
    through = [time_s("all-to-all", "direct", switch(n), GB) for n in (8, 16, 32)]
    assert through == pytest.approx([(n - 1) / n * 1e-2 for n in (8, 16, 32)])


@given(st.data(), st.integers(2, 16), st.sampled_from(["all-reduce", "all-gather", "all-to-all"]))
def test_renumbering_ranks_on_a_symmetric_network_changes_nothing(data, n, op):
    order = data.draw(st.permutations(range(n)))
    network = switch(n, US, reduces=True)
    straight = candidates(op, one_group(n), network)
    renumbered = candidates(op, np.array([order]), network)
    assert list(straight) == list(renumbered)
    for name, pattern in straight.items():
        assert renumbered[name].time_s(GB) == pytest.approx(pattern.time_s(GB), rel=1e-12)
        # What a rank's link carries follows the rank.
        moved = pattern.shares().reshape(2, n)
        assert renumbered[name].shares().reshape(2, n)[:, order] == pytest.approx(moved)


@given(st.integers(2, 9), st.integers(0, 8))
def test_turning_a_ring_changes_nothing(n, turn):
    straight = candidates("all-reduce", one_group(n), ring_of(n, US))
    turned = candidates("all-reduce", np.roll(one_group(n), turn), ring_of(n, US))
    for name, pattern in straight.items():
        assert turned[name].time_s(GB) == pytest.approx(pattern.time_s(GB), rel=1e-12)


@given(st.sampled_from(["all-reduce", "all-to-all", "broadcast"]), st.data())
def test_siblings_load_the_network_together(op, data):
    network = cluster(24, 8)
    order = data.draw(st.permutations(range(24)))
    groups = np.array(order).reshape(data.draw(st.sampled_from([(2, 12), (4, 6), (3, 8)])))
    for name in ALGORITHMS:
        if op in ALGORITHMS[name].operations and name != "torus":
            together = lay_out(op, name, groups, network).shares()
            alone = [lay_out(op, name, row[None], network).shares() for row in groups]
            assert together == pytest.approx(sum(alone), rel=1e-9)


def test_siblings_that_share_a_link_share_its_time():
    # Four groups across two hosts: each alone has the shared NIC for itself.
    network = cluster(8, 4, shared_nic=True)
    alone_s = time_s("all-reduce", "ring", network, GB, rows(8, 4).T[:1])
    assert time_s("all-reduce", "ring", network, GB, rows(8, 4).T) == pytest.approx(4 * alone_s)
