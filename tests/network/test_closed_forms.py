"""Closed forms of the ring: S = 1 GB, B = 100 GB/s."""

import pytest

from triosim.network.closed_forms import (
    bus_factor,
    ring_all_gather,
    ring_all_reduce,
    ring_all_to_all,
    ring_reduce_scatter,
    switch_all_to_all,
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
