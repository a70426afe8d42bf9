"""Closed forms of the ring: S = 1 GB, B = 100 GB/s."""

import pytest

from triosim.network.collectives import (
    bus_factor,
    ring_all_gather,
    ring_all_reduce,
    ring_reduce_scatter,
)

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
