"""Rings, meshes and tori, routed dimension by dimension.

Traffic first travels along the last dimension, then along the one before it, and so on, each time
by the shorter way round; what goes exactly half way round goes half each way (an assumption: the
routers balance it). Messages cross the places between without leaving the network.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from triosim.errors import ConfigError
from triosim.network.topology import lines
from triosim.network.topology.base import Floats, Ints, LinkSpec, Reduction

PAIRS_AT_ONCE = 1 << 20  # whose latencies are held in memory together


class Grid:
    """`ranks` GPUs on the first places of a grid; numbers run along the last dimension first.

    The places that stay free pass traffic on. `wrap` closes a dimension to a ring; a side of 2 has
    one connection either way. Link numbers: for each dimension all links towards higher
    coordinates (round the ring included), then all links back, each in the order of the places
    where the cables start.
    """

    def __init__(
        self,
        shape: Sequence[int],
        wrap: bool | Sequence[bool],
        links: LinkSpec | Sequence[LinkSpec],
        ranks: int | None = None,
    ) -> None:
        sides = tuple(shape)
        if not sides or min(sides) < 1:
            raise ConfigError("topology", "x".join(map(str, sides)), "every side must be 1 or more")
        places = math.prod(sides)
        self.ranks = places if ranks is None else ranks
        if not 1 <= self.ranks <= places:
            raise ConfigError(
                "topology",
                f"{self.ranks} GPUs",
                f"a grid of {'x'.join(map(str, sides))} has places for 1 to {places:,}",
            )
        wraps = (wrap,) * len(sides) if isinstance(wrap, bool) else tuple(wrap)
        self._links = (links,) * len(sides) if isinstance(links, LinkSpec) else tuple(links)
        if not len(wraps) == len(self._links) == len(sides):
            raise ConfigError(
                "topology",
                f"{len(wraps)} wraps and {len(self._links)} links",
                f"needs one of each for every one of the {len(sides)} dimensions",
            )
        self._sides = sides
        self._places = places
        self._wrapped = tuple(w and n > 2 for w, n in zip(wraps, sides, strict=True))
        self._strides = tuple(math.prod(sides[j + 1 :]) for j in range(len(sides)))
        place = np.arange(self._places, dtype=np.int64)
        # NOTE: looking coordinates up takes a third of the time of dividing for them.
        self._at = [place // stride % n for n, stride in zip(sides, self._strides, strict=True)]
        self._cables = [self._starts(j) for j in range(len(sides))]
        # By end - start, negative ones from the back: what goes ahead, and the way's latency.
        self._ahead = [self._shares_ahead(j) for j in range(len(sides))]
        self._way_s = [self._ways_s(j) for j in range(len(sides))]
        counts = [2 * len(cables) for cables in self._cables]
        self.capacity_bytes_per_s: Floats = np.repeat(
            [link.capacity_bytes_per_s for link in self._links], counts
        )
        self.link_latency_s: Floats = np.repeat([link.latency_s for link in self._links], counts)

    def _starts(self, j: int) -> Ints:
        """The places that a cable along dimension j leads on from, towards higher coordinates."""
        place = np.arange(self._places, dtype=np.int64)
        if self._wrapped[j]:
            return place
        return place.reshape(-1, self._sides[j], self._strides[j])[:, :-1].reshape(-1)

    def _by_link(self, loads: Sequence[tuple[Floats, Floats]]) -> Floats:
        """From loads there and back by starting place, for each dimension, to loads by link."""
        return np.concatenate(
            [
                way if len(c) == len(way) else way[c]
                for c, ways in zip(self._cables, loads, strict=True)
                for way in ways
            ]
        )

    def traffic(self, source: Ints, target: Ints, size_bytes: Floats) -> Floats:
        largest = float(np.max(size_bytes, initial=0.0))
        if largest <= 0.0:
            return np.zeros(len(self.capacity_bytes_per_s))
        # In units of the largest, equal sizes are added exactly.
        size = np.asarray(size_bytes, dtype=np.float64) / largest
        place = source
        loads: list[tuple[Floats, Floats]] = []
        for j in reversed(range(len(self._sides))):
            start, end = self._at[j][source], self._at[j][target]
            moves = np.flatnonzero(start != end)
            if not len(moves):
                loads.insert(0, (np.zeros(self._places),) * 2)
                continue
            moved = place + (end - start) * self._strides[j]
            pairs = (place, moved, start, end, size)
            if len(moves) < len(source):
                pairs = (place[moves], moved[moves], start[moves], end[moves], size[moves])
            loads.insert(0, self._along(j, *pairs))
            place = moved
        total = self._by_link(loads)
        # Running sums leave rounding where nothing passes; what passes is half a message or more.
        total[total < size[size > 0].min() / 4] = 0.0
        total *= largest
        return total

    def _along(
        self, j: int, place: Ints, moved: Ints, start: Ints, end: Ints, size: Floats
    ) -> tuple[Floats, Floats]:
        """Loads of messages that move along dimension j, there and back."""
        ahead = self._ahead[j][end - start]
        return (
            self._covered(j, place, moved, start, end, size * ahead),
            self._covered(j, moved, place, end, start, size * (1.0 - ahead)),
        )

    def _shares_ahead(self, j: int) -> Floats:
        """The share of what goes between coordinates that goes towards higher ones."""
        n = self._sides[j]
        if not self._wrapped[j]:
            return np.repeat([1.0, 0.0], n)
        twice = 2 * np.arange(n)
        return np.tile(np.where(twice < n, 1.0, 0.5 * (twice == n)), 2)

    def _ways_s(self, j: int) -> Floats:
        """Seconds that a message pays between coordinates."""
        n = self._sides[j]
        up = np.arange(n)
        hops = np.concatenate((up, up[::-1] + 1))
        if self._wrapped[j]:
            hops = np.minimum(hops, n - hops)
        return np.asarray(hops * self._links[j].latency_s, dtype=np.float64)

    def _covered(
        self, j: int, first: Ints, last: Ints, start: Ints, end: Ints, size: Floats
    ) -> Floats:
        """Sums over the cables from each first place up to its last, round the ring if need be."""
        going = np.flatnonzero(size)
        if not len(going):  # NOTE: halves an algorithm whose messages all go one way
            return np.zeros(self._places)
        if len(going) < len(size):
            first, last, size = first[going], last[going], size[going]
            start, end = start[going], end[going]
        around = end < start
        place, change = np.concatenate((first, last)), np.concatenate((size, -size))
        line = first[around] - start[around] * self._strides[j]
        return self._running(j, place, change, line, size[around])

    def _running(self, j: int, place: Ints, change: Floats, line: Ints, around: Floats) -> Floats:
        """Sums over each line of the changes at places, from what comes round to its start."""
        total = _summed(place, change, self._places) + _summed(line, around, self._places)
        by_line = total.reshape(-1, self._sides[j], self._strides[j])
        return np.asarray(np.cumsum(by_line, axis=1).reshape(-1), dtype=np.float64)

    def exchange(self, groups: Ints, size_bytes: float) -> Floats:
        nothing = np.zeros(self._places)
        loads = []
        for j, (n, stride) in enumerate(zip(self._sides, self._strides, strict=True)):
            at = groups // stride % n
            varies = (at != at[:, :1]).any(axis=1)
            loads.append(
                self._exchange_along(j, groups[varies], at[varies])
                if varies.any()
                else (nothing, nothing)
            )
        return size_bytes * self._by_link(loads)

    def _exchange_along(self, j: int, groups: Ints, at: Ints) -> tuple[Floats, Floats]:
        """Messages on the cables along dimension j, there and back.

        By then a message has its target's coordinates in later dimensions and its source's in
        earlier ones.
        """
        n, stride = self._sides[j], self._strides[j]
        sides = self._places // (n * stride), n, stride
        found = lines.exchange(at, groups // (n * stride), groups % stride, sides, self._wrapped[j])
        line = found.sending * (n * stride) + found.receiving
        place = (line[:, None] + found.at * stride).ravel()
        return (
            self._running(j, place, found.ahead.ravel(), line, found.ahead_around),
            self._running(j, place, found.back.ravel(), line, found.back_around),
        )

    def latency_s(self, source: Ints, target: Ints) -> Floats:
        total = np.zeros(np.broadcast(source, target).shape)
        for at, way_s in zip(self._at, self._way_s, strict=True):
            total += way_s[at[target] - at[source]]
        return total

    def passing(self, link: int, source: Ints, target: Ints) -> Floats:
        """The share of what each source sends to its target that passes the link."""
        j = 0
        while link >= 2 * len(self._cables[j]):
            link -= 2 * len(self._cables[j])
            j += 1
        back, cable = divmod(link, len(self._cables[j]))
        place = self._cables[j][cable]
        n, stride = self._sides[j], self._strides[j]
        block = n * stride
        here = (source // block == place // block) & (target % stride == place % stride)
        start, end, at = source // stride % n, target // stride % n, place // stride % n
        ahead = self._ahead[j][end - start]
        if back:
            start, end, ahead = end, start, 1.0 - ahead
        passes = here & ((at - start) % n < (end - start) % n)
        return np.where(passes, ahead, 0.0)

    def strands(self) -> Ints:
        """Parallel connections that each link stands for."""
        return np.ones(len(self.capacity_bytes_per_s), dtype=np.int64)

    def diameter_s(self, groups: Ints) -> float:
        box = np.ones(len(groups), dtype=np.int64)  # places that the ranks' coordinates span
        largest = np.zeros(len(groups))
        for j, (n, stride) in enumerate(zip(self._sides, self._strides, strict=True)):
            used, hops = lines.widest(groups // stride % n, n, self._wrapped[j])
            box *= used
            largest += hops * self._links[j].latency_s
        full = box == groups.shape[1]
        return max(float(largest[full].max(initial=0.0)), self._loose_diameter_s(groups[~full]))

    def _loose_diameter_s(self, groups: Ints) -> float:
        """Of groups that leave out places between: rank by rank, or coordinate by coordinate."""
        if groups.shape[1] ** 2 > 16 * self._places:
            return max((self._far_s(group) for group in groups), default=0.0)
        rows = max(1, PAIRS_AT_ONCE // groups.shape[1] ** 2)
        parts = [groups[i : i + rows] for i in range(0, len(groups), rows)]
        pairs = (self.latency_s(part[:, :, None], part[:, None, :]) for part in parts)
        return max((float(latency_s.max()) for latency_s in pairs), default=0.0)

    def _far_s(self, group: Ints) -> float:
        """The largest latency between two ranks, found along one dimension after the other."""
        far = np.full(self._places, -np.inf)
        far[group] = 0.0
        for j, n in enumerate(self._sides):
            by_line = np.moveaxis(far.reshape(-1, n, self._strides[j]), 1, -1)
            by_line = _farthest(by_line, self._links[j].latency_s, self._wrapped[j])
            far = np.moveaxis(by_line, -1, 1).reshape(-1)
        return float(far[group].max())

    def protocol(self, groups: Ints) -> str | None:
        for link, n, stride in zip(self._links, self._sides, self._strides, strict=True):
            at = groups // stride % n
            if (at != at[:, :1]).any():
                return link.protocol
        return None

    def units(self, ranks: Ints) -> list[Ints]:
        return []

    def shape(self) -> tuple[int, ...] | None:
        return self._sides if self.ranks == self._places else None

    def reduction(self, groups: Ints) -> Reduction | None:
        return None

    def ends(self) -> tuple[Ints, Ints]:
        source, target = [], []
        for lower, n, stride in zip(self._cables, self._sides, self._strides, strict=True):
            at = lower // stride % n
            upper = lower + ((at + 1) % n - at) * stride
            source += [lower, upper]
            target += [upper, lower]
        return np.concatenate(source), np.concatenate(target)

    def node_name(self, node: int) -> str:
        return f"GPU {node}" if node < self.ranks else f"free place {node}"


def _summed(index: Ints, size: Floats, length: int) -> Floats:
    return np.asarray(np.bincount(index, size, length), dtype=np.float64)


def _farthest(start_s: Floats, step_s: float, wrapped: bool) -> Floats:
    """The largest start_s[a] plus the way from a, for each coordinate along the last axis."""
    n = start_s.shape[-1]
    way = np.arange(n) * step_s
    if not wrapped:
        up = np.maximum.accumulate(start_s - way, axis=-1) + way
        down = np.maximum.accumulate((start_s + way)[..., ::-1], axis=-1)[..., ::-1] - way
    else:
        up = _upwards(start_s, step_s)
        down = _upwards(start_s[..., ::-1], step_s)[..., ::-1]
    return np.asarray(np.maximum(up, down), dtype=np.float64)


def _upwards(start_s: Floats, step_s: float) -> Floats:
    """`_farthest` on a ring from those at most half way round below each coordinate."""
    best: Floats = start_s
    reach, half = 0, start_s.shape[-1] // 2
    while reach < half:  # `best` covers what lies up to `reach` below
        step = min(reach + 1, half - reach)
        best = np.maximum(best, np.roll(best, step, axis=-1) + step * step_s)
        reach += step
    return best
