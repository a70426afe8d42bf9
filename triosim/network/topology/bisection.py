"""Bisection bandwidth: how fast one half of the GPUs can send to the other half."""

from __future__ import annotations

import numpy as np

from triosim.errors import Infeasible
from triosim.network.topology.base import Floats, Ints, Topology, one_group


def bisection_bytes_per_s(topology: Topology) -> float:
    """Bytes/s in one direction between two halves when every GPU sends alike to all of the other.

    The least over the natural halves: the first and the second half of the ranks, and of a grid
    the halves of every dimension. It is what the topology's own routes reach, at most the smallest
    cut between the halves.

    Raises `Infeasible` for one GPU, which has no halves.
    """
    if topology.ranks < 2:
        raise Infeasible("One GPU cannot be cut in halves; a bisection needs at least 2.")
    ranks = one_group(topology.ranks)[0]
    return min(_between(topology, ranks[half], ranks[~half]) for half in _halves(topology))


def _halves(topology: Topology) -> list[np.typing.NDArray[np.bool_]]:
    ranks = np.arange(topology.ranks)
    halves = [ranks < (topology.ranks + 1) // 2]
    stride = topology.ranks
    for side in topology.shape() or ():
        stride //= side
        if side > 1:
            halves.append(ranks // stride % side < (side + 1) // 2)
    return halves


def _between(topology: Topology, one: Ints, other: Ints) -> float:
    everyone = np.concatenate((one, other))
    # All to all, less what stays inside a half: linear in the ranks, where pairs are quadratic.
    loads = _exchanged(topology, everyone)
    loads -= _exchanged(topology, one) + _exchanged(topology, other)
    seconds = (loads / topology.capacity_bytes_per_s).max()
    return float(len(one)) * len(other) / float(seconds)


def _exchanged(topology: Topology, ranks: Ints) -> Floats:
    return topology.exchange(ranks[None, :], 1.0)
