"""All-to-all along the parallel lines of a grid, from counts of ranks alone.

A line is a row of n coordinates, open or closed to a ring. In each group every source on a line
sends one message to every target of that line, by the shorter way; half way round counts one half
each way.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from triosim.network.topology.base import Floats, Ints


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Changes:
    """How the messages that pass ahead and back change at some coordinates of some lines.

    `sending[i]` and `receiving[i]` are the keys of line i's sources and targets, `at[i]` its
    coordinates. `ahead_around[i]` and `back_around[i]` pass the seam between n - 1 and 0.
    """

    sending: Ints
    receiving: Ints
    at: Ints
    ahead: Floats
    ahead_around: Floats
    back: Floats
    back_around: Floats


def exchange(
    at: Ints, before: Ints, after: Ints, sides: tuple[int, int, int], ring: bool
) -> Changes:
    """Each rank of a group (row) sends to every other one; shapes (groups, ranks in each).

    `at` are the ranks' coordinates along the lines, `before` and `after` number the coordinates of
    earlier and later dimensions; `sides` bound all three (before, at, after). With dimension-order
    routing, a line is one pair of its sources' `before` and its targets' `after`.
    """
    lines, n, spread = sides
    group = np.arange(len(at))[:, None]
    columns, column = _columns(at, n)
    k = columns.shape[1]
    reach = _Reach(columns, n) if ring else None
    sending, sources = _count(group * lines + before, column, len(at) * lines, k)
    receiving, targets = _count(group * spread + after, column, len(at) * spread, k)
    s, t = joined(sending // lines, receiving // spread)
    source = _Seen(sources, sending // lines, reach)
    target = _Seen(targets, receiving // spread, reach)
    ahead, ahead_around = _changes(source, target, s, t)
    # The way back from a to b passes the same cables as the way ahead from b to a.
    back, back_around = _changes(target, source, t, s)
    return Changes(
        sending=sending[s] % lines,
        receiving=receiving[t] % spread,
        at=columns[sending[s] // lines],
        ahead=ahead,
        ahead_around=ahead_around,
        back=back,
        back_around=back_around,
    )


def widest(at: Ints, n: int, ring: bool) -> tuple[Ints, Ints]:
    """For each group (row): how many coordinates it uses, and the most hops between two of them."""
    columns, column = _columns(at, n)
    if not ring:
        return column.max(axis=1) + 1, columns[:, -1] - columns[:, 0]
    up = _Reach(columns, n).up[0]
    around = np.concatenate((columns, columns + n), axis=1)
    far = np.take_along_axis(around, up - columns.shape[1], axis=1)
    return column.max(axis=1) + 1, (far - columns).max(axis=1)


class _Reach:
    """For each group's columns, laid out three times round a ring: how far half way round gets.

    `up[h]` and `down[h]` are positions of the last column within reach above, and of the last one
    out of reach below.
    """

    def __init__(self, columns: Ints, n: int) -> None:
        groups, k = columns.shape
        row = np.arange(groups)[:, None]
        around = np.concatenate((columns - n, columns, columns + n), axis=1)
        keys = (around + (1 + 4 * row) * n).ravel()
        here = columns + (1 + 4 * row) * n
        self.halves = (n // 2, (n - 1) // 2)  # the same on an odd ring
        self.up = [np.searchsorted(keys, here + h, "right") - 1 - 3 * k * row for h in self.halves]
        self.down = [np.searchsorted(keys, here - h) - 1 - 3 * k * row for h in self.halves]


class _Seen:
    """Ranks at each column of many lines: how many are ahead of a coordinate and how many behind.

    `across` are those ahead beyond the seam of a ring.
    """

    def __init__(self, count: Floats, group: Ints, reach: _Reach | None) -> None:
        self.count = count
        k = count.shape[1]
        if reach is None:
            upto = np.cumsum(count, axis=1)
            self.ahead = upto[:, -1:] - upto
            self.behind = upto - count
            self.across = np.zeros_like(count)
            return
        upto = np.cumsum(np.tile(count, 3), axis=1)  # three times round; the middle one is ours
        row = np.arange(len(count))[:, None]
        seam, here = upto[:, 2 * k - 1 : 2 * k], upto[:, k : 2 * k]
        self.ahead, self.behind, self.across = (np.zeros_like(count) for _ in range(3))
        for up, down in zip(reach.up, reach.down, strict=True):
            there = upto[row, up[group]]
            self.ahead += (there - here) / 2
            self.behind += (here - count - upto[row, down[group]]) / 2
            self.across += np.maximum(there - seam, 0.0) / 2


def _changes(source: _Seen, target: _Seen, s: Ints, t: Ints) -> tuple[Floats, Floats]:
    """Of messages ahead: what starts less what ends at each column, and what passes the seam.

    On line i every source of row s[i] sends to every target of row t[i].
    """
    around: Floats = (source.count[s] * target.across[t]).sum(axis=1)
    change: Floats = source.count[s] * target.ahead[t] - target.count[t] * source.behind[s]
    return change, around


def _columns(at: Ints, n: int) -> tuple[Ints, Ints]:
    """The coordinates that each group uses, ascending, and each rank's position among them.

    Shorter rows repeat their last coordinate, where no rank is counted.
    """
    group = np.arange(len(at))[:, None]
    used, number = _numbered(group * n + at, len(at) * n)
    first = np.searchsorted(used, np.arange(len(at)) * n)
    width = int(np.diff(first, append=len(used)).max())
    columns = np.zeros((len(at), width), dtype=np.int64)
    columns[used // n, np.arange(len(used)) - first[used // n]] = used % n
    return np.maximum.accumulate(columns, axis=1), number - first[:, None]


def _count(key: Ints, column: Ints, keys: int, columns: int) -> tuple[Ints, Floats]:
    """The keys that occur, ascending, and for each how often each column does."""
    used, row = _numbered(key, keys)
    counts = np.bincount((row * columns + column).ravel(), minlength=len(used) * columns)
    return used, np.asarray(counts.reshape(len(used), columns), dtype=np.float64)


def _numbered(key: Ints, keys: int) -> tuple[Ints, Ints]:
    """The keys that occur, ascending, and the position of each key among them."""
    if keys > 8 * key.size:
        used, number = np.unique(key, return_inverse=True)
        return used, number.reshape(key.shape)
    used = np.flatnonzero(np.bincount(key.ravel(), minlength=keys))
    position = np.zeros(keys, dtype=np.int64)
    position[used] = np.arange(len(used))
    return used, position[key]


def joined(left: Ints, right: Ints) -> tuple[Ints, Ints]:
    """Positions of all pairs of a left and a right entry with the same value; both ascend."""
    first = np.searchsorted(right, left)
    matches = np.searchsorted(right, left, side="right") - first
    l_index = np.repeat(np.arange(len(left)), matches)
    skip = np.repeat(np.cumsum(matches) - matches - first, matches)
    return l_index, np.arange(len(l_index)) - skip
