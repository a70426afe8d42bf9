"""Rings: every rank sends to the next one of its group."""

from __future__ import annotations

import numpy as np

from triosim.network.collectives.moves import Phase, Sends, in_turn, there_and_back
from triosim.network.topology.base import Ints, Topology


def ring(op: str, groups: Ints, topology: Topology) -> list[Phase]:
    """n-1 steps of 1/n of the array around the ring for a reduce-scatter and for an all-gather.

    Together an all-reduce of 2(n-1)/n S in 2(n-1) steps (Patarasu and Yuan, 2009). Broadcast and
    reduce are a chain through which chunks follow each other: S, after n-1 steps. In an all-to-all
    each message goes the shorter way round, n/8 S on each link and direction.
    """
    n = groups.shape[1]
    onwards = np.roll(groups, -1, axis=1)
    if op == "all-to-all":
        # Distances add up to n^2/8 each way; messages to the opposite rank split in halves.
        share, steps = (n * n - n % 2) / 8 / n, n // 2
        there = Sends(source=groups, target=onwards, share=share, steps=steps)
        back = Sends(source=onwards, target=groups, share=share, steps=steps)
        return [Phase(moves=(there, back))]
    if op in ("broadcast", "reduce"):
        near, far = groups[:, :-1], groups[:, 1:]
        source, target = (near, far) if op == "broadcast" else (far, near)
        return in_turn([Sends(source=source, target=target, share=1.0, steps=n - 1)])
    return there_and_back(op, in_turn(scatters(groups)))


def bidirectional_ring(op: str, groups: Ints, topology: Topology) -> list[Phase]:
    """Two rings in opposite directions, each for half of the array."""
    n = groups.shape[1]
    onwards = np.roll(groups, -1, axis=1)
    half, steps = (n - 1) / n / 2, n - 1
    there = Sends(source=groups, target=onwards, share=half, steps=steps)
    back = Sends(source=onwards, target=groups, share=half, steps=steps)
    return there_and_back(op, [Phase(moves=(there, back))])


def scatters(blocks: Ints) -> list[Sends]:
    """Ring reduce-scatters along every axis of `blocks` but the first, the last axis first.

    Each leaves a rank with its part of what the one before has left it.
    """
    found: list[Sends] = []
    left = 1.0
    for axis in reversed(range(1, blocks.ndim)):
        n = blocks.shape[axis]
        if n > 1:
            onwards = np.roll(blocks, -1, axis=axis)
            share = (n - 1) / n * left
            found.append(Sends(source=blocks, target=onwards, share=share, steps=n - 1))
            left /= n
    return found
