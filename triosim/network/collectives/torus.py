"""Rings along the dimensions of a grid, one after the other."""

from __future__ import annotations

import math

import numpy as np

from triosim.errors import ConfigError
from triosim.network.collectives.moves import Phase, in_turn, there_and_back
from triosim.network.collectives.ring import scatters
from triosim.network.topology.base import Ints, Topology


def torus(op: str, groups: Ints, topology: Topology) -> list[Phase]:
    """A ring reduce-scatter along each dimension, on what the one before has left, and back.

    An all-reduce over sides a, b: 2(a-1)/a S + 2(b-1)/b S/a in 2(a-1) + 2(b-1) steps.
    """
    shape = topology.shape()
    if shape is None:
        raise ConfigError("algorithm", "torus", "needs a ring, mesh or torus of GPUs")
    blocks = _grids(groups, shape)
    if blocks is None:
        sides = " x ".join(map(str, shape))
        raise ConfigError(
            "algorithm", "torus", f"needs groups that are blocks, rows or planes of {sides} GPUs"
        )
    return there_and_back(op, in_turn(scatters(blocks)))


def _grids(groups: Ints, shape: tuple[int, ...]) -> Ints | None:
    """Every group as a grid (the first axis counts groups), None where one is none."""
    if int(groups.max()) >= math.prod(shape):
        return None
    ranks = np.sort(groups, axis=1)
    sides = tuple(len(np.unique(c)) for c in np.unravel_index(ranks[0], shape))
    if math.prod(sides) != groups.shape[1]:
        return None
    blocks = ranks.reshape(len(groups), *sides)
    for axis, coordinate in enumerate(np.unravel_index(blocks, shape), start=1):
        # Along the other axes the coordinate stays what it is at their first position.
        first = tuple(slice(None) if a in (0, axis) else slice(1) for a in range(blocks.ndim))
        if not (coordinate == coordinate[first]).all():
            return None
    return blocks
