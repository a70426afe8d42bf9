"""Tier by tier: reduce-scatters from the inside out, all-gathers back in."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from triosim.network.collectives.moves import Phase, Sends, in_turn, there_and_back
from triosim.network.collectives.ring import scatters
from triosim.network.topology.base import Floats, Ints, Topology


def hierarchical(op: str, groups: Ints, topology: Topology) -> list[Phase]:
    """Rings inside each host, then between ranks at the same place in theirs, and so outwards.

    With N hosts of G, an all-reduce takes (G-1)/G S/B1 + 2(N-1)/N S/G/B2 + (G-1)/G S/B1. Without
    tiers it is one ring. Where hosts hold different numbers of ranks there are two levels, hosts
    and the rest, and shards differ in size.
    """
    return there_and_back(op, in_turn(_levels(groups, topology)))


def hierarchical_pipelined(op: str, groups: Ints, topology: Topology) -> list[Phase]:
    """The same in chunks, so that all tiers are busy at the same time."""
    times = 2 if op == "all-reduce" else 1
    moves = [
        replace(move, share=times * move.share, steps=times * move.steps)
        for move in _levels(groups, topology)
    ]
    return [Phase(moves=tuple(moves), pipelined=True)]


def _levels(groups: Ints, topology: Topology) -> list[Sends]:
    """The reduce-scatters, from the inside out."""
    units = [unit.reshape(groups.shape) for unit in topology.units(groups.ravel())]
    if not units:
        return scatters(groups)
    key = units[-1]
    for unit in reversed(units[:-1]):
        key = key * (int(unit.max()) + 1) + unit
    if (key[:, 1:] < key[:, :-1]).any():  # neighbours come together, else in the group's order
        order = np.argsort(key, axis=1, kind="stable")
        groups = np.take_along_axis(groups, order, axis=1)
        units = [np.take_along_axis(unit, order, axis=1) for unit in units]
    inside, sides = 1, []
    for tier, unit in enumerate(units):
        size = _even_size(unit)
        if size is None and tier == 0:
            return _uneven(groups, unit)
        # An uneven tier further out is no level of its own: the next one joins its parts.
        if size is not None and size > inside and size % inside == 0:
            sides.append(size // inside)
            inside = size
    sides.append(groups.shape[1] // inside)
    return scatters(groups.reshape(len(groups), *reversed(sides)))


def _even_size(unit: Ints) -> int | None:
    """How many neighbours in a row share a unit; None where that differs."""
    n = unit.shape[1]
    change = unit[:, 1:] != unit[:, :-1]
    size = int(change[0].argmax()) + 1 if change[0].any() else n
    even = n % size == 0 and (change == (np.arange(1, n) % size == 0)).all()
    return size if even else None


def _uneven(groups: Ints, unit: Ints) -> list[Sends]:
    """Two levels; groups that are cut into hosts in the same way are laid together."""
    change = unit[:, 1:] != unit[:, :-1]
    inner: list[tuple[Ints, Ints, Floats, int]] = []
    outer: list[tuple[Ints, Ints, Floats, int]] = []
    cuts, kind = np.unique(change, axis=0, return_inverse=True)
    for k, cut in enumerate(cuts):
        ranks = groups[kind == k]
        starts = np.concatenate(([0], np.flatnonzero(cut) + 1))
        sizes = np.diff(np.append(starts, groups.shape[1]))
        onwards = np.arange(1, groups.shape[1] + 1)
        onwards[starts + sizes - 1] = starts
        share = np.repeat((sizes - 1) / sizes, sizes)
        inner.append((ranks, ranks[:, onwards], share, int(sizes.max()) - 1))
        owner, length = _owners(sizes)
        owners = ranks[:, starts[:, None] + owner]
        share = (len(sizes) - 1) / len(sizes) * length
        outer.append((owners, np.roll(owners, -1, axis=1), share, len(sizes) - 1))
    return [_joined(level) for level in (inner, outer)]


def _owners(sizes: Ints) -> tuple[Ints, Floats]:
    """For each host and each interval that no host divides further: its owner, and its length.

    A host of g ranks cuts the array into g equal shards; all hosts' cuts together make intervals.
    """
    distinct, inverse = np.unique(sizes, return_inverse=True)
    whole = math.lcm(*distinct.tolist())
    starts = sorted({j * whole // g for g in distinct.tolist() for j in range(g)})
    owner = np.array([[start * g // whole for start in starts] for g in distinct.tolist()])
    length = np.diff(np.array([start / whole for start in (*starts, whole)]))
    return owner[inverse], length


def _joined(parts: list[tuple[Ints, Ints, Floats, int]]) -> Sends:
    return Sends(
        source=np.concatenate([source.ravel() for source, _, _, _ in parts]),
        target=np.concatenate([target.ravel() for _, target, _, _ in parts]),
        share=np.concatenate(
            [np.broadcast_to(share, source.shape).ravel() for source, _, share, _ in parts]
        ),
        steps=max(steps for _, _, _, steps in parts),
    )
