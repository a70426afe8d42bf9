"""One link for all that are loaded alike.

Links of equal capacity on which every transfer puts the same bytes fill and empty together, so that
max-min sharing sees them as one constraint; merging them is exact and needs no symmetry of the
topology. 500,000 links under a two-tier all-reduce become a handful.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from triosim.network.collectives.pattern import PhaseLoad
from triosim.network.topology.base import Floats, Ints

# Sums of the same numbers in another order differ in the last bits; 2^-42 of a share is no load.
_UNEQUAL_BITS = 10


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class LinkClasses:
    """`first[c]` is a link of class c, `members[c]` how many links it stands for.

    `of_phase[p]` are the classes that phase p loads and its share of the array on each.
    """

    first: Ints
    members: Ints
    of_phase: list[tuple[Ints, Floats]]


def classes_of(
    phases: Sequence[PhaseLoad], capacity_bytes_per_s: Floats, *, fold: bool = True
) -> LinkClasses:
    """The loaded links in classes; without `fold` each link is a class of its own."""
    carries = np.zeros(len(capacity_bytes_per_s), dtype=bool)
    for phase in phases:
        carries[phase.links] = True
    loaded = np.flatnonzero(carries)
    if fold:
        key = _keys(phases, capacity_bytes_per_s)[loaded]
        _, index, inverse, members = np.unique(
            key, return_index=True, return_inverse=True, return_counts=True
        )
        # In the order of their first links, so that the innermost come first.
        order = np.argsort(index, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        first, members, of_link = loaded[index[order]], members[order], rank[inverse]
    else:
        first, members = loaded, np.ones(len(loaded), dtype=np.int64)
        of_link = np.arange(len(loaded))
    position = np.zeros(len(capacity_bytes_per_s), dtype=np.int64)
    position[loaded] = of_link
    of_phase = []
    for phase in phases:
        # NOTE: one pass instead of a sort, a tenth of the time: the last write of a class stays.
        share = np.zeros(len(first))
        share[position[phase.links]] = phase.share
        own = np.flatnonzero(share)
        of_phase.append((own, share[own]))
    return LinkClasses(first=first, members=members, of_phase=of_phase)


def _keys(phases: Sequence[PhaseLoad], capacity_bytes_per_s: Floats) -> Ints:
    """A 64-bit number for each link, equal where capacity and all loads are.

    NOTE: sorting rows of all loads instead takes 20 times as long at 131,072 GPUs. Two unlike links
    meet in one number with a chance of 2^-64 a pair.
    """
    random = np.random.default_rng(20_26)
    total = _bits(capacity_bytes_per_s) * _odd(random)
    for phase in phases:
        total[phase.links] += _bits(phase.share) * _odd(random)
    # Multiplying keeps high bits from low ones; the fold mixes them.
    total ^= total >> np.uint64(29)
    return (total * _odd(random)).view(np.int64)


def _bits(values: Floats) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    bits = np.ascontiguousarray(values, dtype=np.float64).view(np.uint64)
    half = np.uint64(1 << (_UNEQUAL_BITS - 1))
    rounded = (bits + half) >> np.uint64(_UNEQUAL_BITS)
    # A non-linear step: otherwise loads in another order of phases could add up to the same.
    mixed = rounded * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(32)
    return mixed * np.uint64(0xD6E8FEB86659FD93)


def _odd(random: np.random.Generator) -> np.uint64:
    return np.uint64(int(random.integers(0, 2**63)) * 2 + 1)
