"""Closed forms: S = 1 GB, B = 100 GB/s."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triosim.network.closed_forms import (
    bus_factor,
    halving_doubling_all_reduce,
    hierarchical_all_reduce_s,
    pipelined_all_gather_s,
    ring_all_gather,
    ring_all_reduce,
    ring_all_to_all,
    ring_reduce_scatter,
    switch_all_to_all,
    torus_all_reduce,
    tree_all_reduce,
    tree_beats_ring_below_bytes,
)
from triosim.network.topology.graph import Edge, Graph

GB = 1e9


@pytest.mark.parametrize(
    ("ranks", "ms"), [(1, 0), (2, 10), (3, 40 / 3), (4, 15), (8, 17.5), (16, 18.75)]
)
def test_all_reduce(ranks, ms):
    assert ring_all_reduce(ranks, GB).time_s(100 * GB) * 1e3 == pytest.approx(ms, rel=1e-12)


@pytest.mark.parametrize("cost", [ring_reduce_scatter, ring_all_gather])
def test_half_of_it(cost):
    assert cost(8, GB).time_s(100 * GB) * 1e3 == pytest.approx(8.75, rel=1e-12)


@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 8, 17])
def test_all_reduce_is_reduce_scatter_and_all_gather(ranks):
    both = ring_reduce_scatter(ranks, GB) + ring_all_gather(ranks, GB)
    assert ring_all_reduce(ranks, GB) == both
    assert ring_all_reduce(ranks, GB).steps == 2 * (ranks - 1)


def test_every_step_pays_the_latency():
    assert ring_all_reduce(8, GB).time_s(100 * GB, 5e-6) * 1e3 == pytest.approx(17.5 + 14 * 5e-3)


def test_bus_bandwidth_is_the_links_speed():
    # nccl-tests: busbw = algbw x 2(n-1)/n, and on a ring that is the link.
    seconds = ring_all_reduce(8, GB).time_s(100 * GB)
    assert GB / seconds * bus_factor(8) == pytest.approx(100 * GB)


def test_c1_of_the_seminar():
    seconds = ring_all_reduce(8, GB).time_s(100 * GB)
    assert seconds * 1e3 == pytest.approx(17.5)
    assert 1 / seconds == pytest.approx(57.1, abs=0.05)
    assert 1 / seconds * bus_factor(8) == pytest.approx(100)


@pytest.mark.parametrize(
    ("op", "factor"),
    [
        ("all-reduce", 1.75),
        ("reduce-scatter", 0.875),
        ("all-gather", 0.875),
        ("all-to-all", 0.875),
        ("broadcast", 1),
        ("reduce", 1),
        ("send", 1),
    ],
)
def test_bus_factors_of_eight_ranks(op, factor):
    assert bus_factor(8, op) == factor


@pytest.mark.parametrize(
    ("ranks", "ms", "steps"), [(8, 17.5, 6), (6, 35, 6), (2, 10, 2), (1, 0, 0)]
)
def test_halving_doubling(ranks, ms, steps):
    cost = halving_doubling_all_reduce(ranks, GB)
    assert cost.time_s(100 * GB) * 1e3 == pytest.approx(ms)
    assert cost.steps == steps


def test_tree():
    assert tree_all_reduce(8, GB).time_s(100 * GB) * 1e3 == pytest.approx(60)
    assert tree_all_reduce(1, GB).time_s(100 * GB) == 0


@pytest.mark.parametrize(("ranks", "mb"), [(8, 0.94), (64, 5.7)])
def test_crossover_of_ring_and_tree(ranks, mb):
    size = tree_beats_ring_below_bytes(ranks, 100 * GB, 5e-6)
    assert size / 1e6 == pytest.approx(mb, rel=0.01)


@given(st.integers(4, 10_000), st.floats(1e-7, 1e-3))
def test_the_crossover_is_where_both_take_as_long_and_grows_with_ranks(ranks, latency_s):
    size = tree_beats_ring_below_bytes(ranks, 100 * GB, latency_s)
    ring_s = ring_all_reduce(ranks, size).time_s(100 * GB, latency_s)
    assert tree_all_reduce(ranks, size).time_s(100 * GB, latency_s) == pytest.approx(ring_s)
    assert tree_beats_ring_below_bytes(2 * ranks, 100 * GB, latency_s) > size


def test_two_or_three_ranks_never_gain_from_a_tree():
    # ceil(log2 3) = 2 = 3 - 1 steps: no fewer than the ring's.
    assert tree_beats_ring_below_bytes(2, 100 * GB, 5e-6) == 0
    assert tree_beats_ring_below_bytes(3, 100 * GB, 5e-6) == 0


@pytest.mark.parametrize("shape", [(2, 8), (8, 2)])
def test_torus(shape):
    cost = torus_all_reduce(shape, GB)
    assert cost.steps == 16
    assert cost.time_s(100 * GB) * 1e3 == pytest.approx(18.75)


def test_hierarchical():
    # Seminar C3 and T2.
    assert hierarchical_all_reduce_s(2, 8, GB, 450 * GB, 50 * GB) * 1e3 == pytest.approx(
        6.39, abs=0.005
    )
    assert hierarchical_all_reduce_s(2, 8, GB, 100 * GB, 100 * GB) * 1e3 == pytest.approx(18.75)
    activation_bytes = 2 * 8192 * 4096 * 2
    seconds = hierarchical_all_reduce_s(2, 8, activation_bytes, 450 * GB, 50 * GB)
    assert seconds * 1e3 == pytest.approx(0.857, abs=1e-3)


def test_pipelined_all_gather():
    # Seminar F3.
    seconds = pipelined_all_gather_s(16, 8, 436e6, 450 * GB, 50 * GB)
    assert seconds * 1e3 == pytest.approx(1.02, abs=0.005)


def test_all_to_all_through_a_switch_and_around_a_ring():
    assert switch_all_to_all(8, GB).time_s(100 * GB) * 1e3 == pytest.approx(8.75)
    # In units of S/B per link and direction: it grows with the ring.
    assert ring_all_to_all(8, GB).link_bytes / GB == pytest.approx(1.0)
    assert ring_all_to_all(16, GB).link_bytes / GB == pytest.approx(2.0)


@pytest.mark.parametrize("ranks", [1, 3, 5, 7, 9])
def test_all_to_all_on_an_odd_ring_loads_links_as_routes_do(ranks):
    edges = [(a, (a + step) % ranks) for a in range(ranks) for step in (1, -1) if ranks > 1]
    ring = Graph(Edge(source=a, target=b, bytes_per_s=1.0) for a, b in edges)
    load = [0.0] * len(edges)
    for a in range(ranks):
        for b in range(ranks):
            for link in ring.route(a, b):
                load[link] += 1 / ranks
    assert load == pytest.approx([ring_all_to_all(ranks, 1.0).link_bytes] * len(edges))
