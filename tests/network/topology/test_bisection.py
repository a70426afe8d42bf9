"""Bisection bandwidth against cuts counted by hand, and against pair by pair."""

import numpy as np
import pytest

from triosim.errors import Infeasible
from triosim.network.topology.base import LinkSpec
from triosim.network.topology.bisection import bisection_bytes_per_s
from triosim.network.topology.describe import topology_of
from triosim.network.topology.grid import Grid

LINK = LinkSpec(bytes_per_s=10e9)


@pytest.mark.parametrize(
    ("name", "ranks", "links"),
    [
        ("switch", 8, 4),  # each GPU of a half has one link
        ("switch", 2, 1),
        ("ring", 8, 2),
        ("ring", 2, 1),  # two GPUs are joined once
        ("mesh:8", 8, 1),
        ("mesh:4x8", 32, 4),  # cut across the longer side
        ("mesh:8x4", 32, 4),
        ("torus:4x8", 32, 8),
        ("torus:4x4x8", 128, 32),
        ("fully-connected", 8, 16),
        ("leaf-spine:4", 16, 8),
        ("leaf-spine:4x2", 16, 4),
        ("fat-tree:4", 16, 8),
        ("rail-optimised:4x2", 16, 8),
    ],
)
def test_the_links_of_the_smallest_cut(name, ranks, links):
    found = bisection_bytes_per_s(topology_of(name, ranks, LINK))
    assert found == pytest.approx(links * 10e9)


@pytest.mark.parametrize(
    ("name", "ranks"), [("switch", 5), ("torus:3x5", 15), ("leaf-spine:4x3", 11), ("mesh", 7)]
)
def test_is_the_time_of_all_pairs_between_the_halves(name, ranks):
    topology = topology_of(name, ranks, LINK)
    found = []
    for half in halves(ranks, topology.shape() or ()):
        others = [rank for rank in range(ranks) if rank not in half]
        source, target = map(np.ravel, np.meshgrid(half, others))
        there, back = np.concatenate((source, target)), np.concatenate((target, source))
        loads = topology.traffic(there, back, np.ones(len(there)))
        found.append(len(source) / (loads / topology.capacity_bytes_per_s).max())
    assert bisection_bytes_per_s(topology) == pytest.approx(min(found))


def halves(ranks, shape):
    yield list(range(-(-ranks // 2)))
    for i, side in enumerate(shape):
        if side > 1:
            at = np.unravel_index(np.arange(ranks), shape)[i]
            yield np.flatnonzero(at < -(-side // 2)).tolist()


def test_one_gpu_has_no_halves():
    with pytest.raises(Infeasible, match="One GPU cannot be cut in halves"):
        bisection_bytes_per_s(Grid((1,), True, LINK))
