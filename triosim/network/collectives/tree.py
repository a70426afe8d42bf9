"""Trees: the first rank of a group is the root of everything."""

from __future__ import annotations

import numpy as np

from triosim.network.collectives.moves import Phase, Sends, in_turn
from triosim.network.topology.base import Ints, Topology


def tree(op: str, groups: Ints, topology: Topology) -> list[Phase]:
    """A binomial tree without pipelining: ceil(log2 n) steps of the whole array each way."""
    n = groups.shape[1]
    reduce: list[Phase] = []
    broadcast: list[Phase] = []
    distance = 1
    while distance < n:
        child = np.arange(distance, n, 2 * distance)
        low, high = groups[:, child], groups[:, child - distance]
        reduce += in_turn([Sends(source=low, target=high, share=1.0)])
        broadcast += in_turn([Sends(source=high, target=low, share=1.0)])
        distance *= 2
    broadcast.reverse()
    return {"reduce": reduce, "broadcast": broadcast}.get(op, reduce + broadcast)


def double_binary_tree(op: str, groups: Ints, topology: Topology) -> list[Phase]:
    """Two pipelined binary trees, each for half of the array (Sanders, Speck and Traff, 2009).

    A rank has children in one of them at most, so that no link carries more than S each way, 2S for
    an all-reduce. Chunks pass ceil(log2 n) levels.
    """
    child, parent = double_tree_edges(groups.shape[1])
    low, high = groups[:, child], groups[:, parent]
    levels = (groups.shape[1] - 1).bit_length()
    reduce = Sends(source=low, target=high, share=0.5, steps=levels)
    broadcast = Sends(source=high, target=low, share=0.5, steps=levels)
    moves = {"reduce": (reduce,), "broadcast": (broadcast,)}.get(op, (reduce, broadcast))
    return [Phase(moves=moves, pipelined=True)]


def double_tree_edges(n: int) -> tuple[Ints, Ints]:
    """Children and their parents, the n-1 of the first tree and then those of the second.

    Rank 0 feeds both. The others are numbered in order from 1, so that the lowest set bit of a
    number is its height, and odd numbers have no children. The second tree mirrors the numbers, or
    shifts them by one where mirroring would keep odd numbers odd.
    """
    others = n - 1
    node = np.arange(1, n)
    bit = node & -node
    parent = (node ^ bit) | (bit << 1)
    parent = np.where(parent > others, node ^ bit, parent)
    second = node % others + 1 if others % 2 else n - node
    rank = np.concatenate(([0], second))
    return np.concatenate((node, rank[node])), np.concatenate((parent, rank[parent]))
