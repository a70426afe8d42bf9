"""The mesh of a training plan as plain values: ranks by host, and their group along each axis.

The page's drawing shows them and links what is pointed at; nothing here depends on how.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triosim.figures.train_colours import GROUP_COLOURS
from triosim.train import Plan

Ints = NDArray[np.int64]
MAX_RANKS = 1024  # that are drawn
MAX_LISTED = 8  # members of a group by number
MAX_COLUMNS = 16  # ranks of a host side by side
ALONE = 8  # the same where the network has no hosts


def groups_along(plan: Plan, axis: str) -> Ints:
    """The groups of an axis of the mesh or of ep: shape (groups, members)."""
    if axis == "ep":
        return np.concatenate([plan.groups("ep", stage) for stage in range(plan.stages)])
    return plan.mesh.groups(axis)


def mesh_map(
    plan: Plan,
    axes: Sequence[str],
    per_host: int | None,
    link_of: Callable[[Ints], str],
) -> dict[str, Any]:
    """Everything that a drawing of the mesh needs, for JSON; the first ranks of a large one.

    `hosts` are a label and the ranks of each host, `columns` how many of them stand side by side,
    `places` a rank's place on every axis that is longer than 1. `axes[i].group[r]` is the group of
    rank r along an axis, whose `members` and `link` (what `link_of` says of a group) are text.
    """
    size = plan.mesh.size
    shown = min(size, MAX_RANKS)
    host = min(per_host or size, size)
    return {
        "size": size,
        "shown": shown,
        "columns": _columns(host) if per_host else min(ALONE, size),
        "hosts": [
            {
                "label": f"host {first // host}" if per_host else "",
                "ranks": list(range(first, min(first + host, shown))),
            }
            for first in range(0, shown, host)
        ],
        "places": _places(plan, shown),
        "axes": [_axis(axis, groups_along(plan, axis), shown, link_of) for axis in axes],
        "colours": GROUP_COLOURS,
    }


def _columns(host: int) -> int:
    """All ranks of a host side by side, or lines that are equally long."""
    if host <= ALONE:
        return host
    return max(count for count in range(1, MAX_COLUMNS + 1) if host % count == 0)


def _places(plan: Plan, shown: int) -> list[str]:
    mesh = plan.mesh
    long = [i for i, size in enumerate(mesh.shape) if size > 1]
    places = mesh.coordinates(np.arange(shown))
    return [", ".join(f"{mesh.names[i]} {place[i]}" for i in long) for place in places]


def _axis(name: str, groups: Ints, shown: int, link_of: Callable[[Ints], str]) -> dict[str, Any]:
    group_of = np.empty(groups.size, dtype=np.int64)
    group_of[groups.ravel()] = np.repeat(np.arange(len(groups)), groups.shape[1])
    seen, own = np.unique(group_of[:shown], return_inverse=True)
    # Numbered by their first rank, so that neighbours have different colours.
    return {
        "name": name,
        "size": groups.shape[1],
        "group": own.tolist(),
        "members": [_members(groups[group]) for group in seen],
        "link": [link_of(groups[group : group + 1]) for group in seen],
    }


def _members(group: Ints) -> str:
    """The first ranks of a group, or where it begins and ends if there is no gap."""
    ranks = sorted(group.tolist())
    if len(ranks) > 2 and ranks[-1] - ranks[0] == len(ranks) - 1:
        return f"{ranks[0]:,} to {ranks[-1]:,}"
    listed = ", ".join(f"{rank:,}" for rank in ranks[:MAX_LISTED])
    return listed if len(ranks) <= MAX_LISTED else f"{listed}, ... ({len(ranks):,})"
