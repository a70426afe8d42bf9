"""Who takes part in a collective: groups of ranks from a choice, or from what a person types."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from triosim.errors import ConfigError
from triosim.network.topology.base import Ints, Topology, one_group

ASSUMED_HOST = 8
MAX_LISTED = 131_072
_PART = re.compile(r"(\d{1,7})(?:-(\d{1,7})(?::(\d{1,6}))?)?", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class Members:
    """`kind` is one of `MEMBERS`; `siblings` says whether the others like it act as well."""

    kind: str = "all"
    siblings: bool = True
    text: str = ""


def host_of(topology: Topology) -> tuple[Ints, bool]:
    """The host of each rank; False where the topology has none and hosts of 8 are assumed."""
    ranks = np.arange(topology.ranks, dtype=np.int64)
    units = topology.units(ranks)
    if units:
        return np.unique(units[0], return_inverse=True)[1].astype(np.int64), True
    return ranks // ASSUMED_HOST, False


def groups_of(members: Members, topology: Topology, operation: str) -> tuple[Ints, list[str]]:
    """One row for each group, and sentences on what was assumed or left out.

    A send joins the first and the last rank of each group. Raises `ConfigError` on field "group".
    """
    notes: list[str] = []
    if members.kind == "all":
        groups = one_group(topology.ranks)
    elif members.kind == "list":
        groups = read_groups(members.text, topology.ranks)
    else:
        groups = _by_host(members, topology, notes)
    if operation == "send" and groups.shape[1] > 2:
        groups = groups[:, [0, -1]]
        notes.append(f"A send goes from GPU {groups[0, 0]} to GPU {groups[0, 1]}.")
    if operation == "send" and groups.shape[1] < 2:
        raise ConfigError("group", "1 GPU", "a send joins two of them")
    return groups, notes


def _by_host(members: Members, topology: Topology, notes: list[str]) -> Ints:
    host, known = host_of(topology)
    if not known:
        notes.append(
            f"This network has no hosts of its own: {ASSUMED_HOST} GPUs in a row count as one."
        )
    size = np.bincount(host)
    full = np.flatnonzero(size == size.max())
    if len(full) < len(size):
        notes.append("Only full hosts take part, so that all groups have the same size.")
    ranks = np.flatnonzero(np.isin(host, full)).reshape(len(full), -1)
    groups = ranks if members.kind == "host" else ranks.T
    return groups if members.siblings else groups[:1]


def read_groups(text: str, ranks: int) -> Ints:
    """Groups from "0-3, 8; 4-7, 9" or "0-62:8" (every eighth rank)."""
    groups = [_ranks(part) for part in text.split(";") if part.strip()]
    if not groups:
        raise ConfigError("group", "(empty)", "type ranks, as in 0-7 or 0,4; 1,5")
    if len({len(group) for group in groups}) > 1:
        sizes = " and ".join(str(len(group)) for group in groups[:4])
        raise ConfigError("group", f"groups of {sizes}", "all groups must have the same size")
    every = [rank for group in groups for rank in group]
    beyond = [rank for rank in every if rank >= ranks]
    if beyond:
        raise ConfigError("group", beyond[0], f"ranks here are 0 to {ranks - 1:,}")
    found, times = np.unique(every, return_counts=True)
    if times.max() > 1:
        raise ConfigError("group", found[times > 1][0], "a rank can take part only once")
    return np.array(groups, dtype=np.int64)


def _ranks(text: str) -> Sequence[int]:
    found: list[int] = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        match = _PART.fullmatch(part)
        if match is None:
            raise ConfigError("group", part, "must be a rank or a range, as in 5, 0-7 or 0-56:8")
        first, last, step = match.groups()
        high = int(last or first)
        if high < int(first) or (step is not None and int(step) == 0):
            raise ConfigError("group", part, "a range goes up, as in 0-7 or 0-56:8")
        found += range(int(first), high + 1, int(step or 1))
        if len(found) > MAX_LISTED:
            raise ConfigError("group", part, f"at most {MAX_LISTED:,} ranks can be listed")
    return found
