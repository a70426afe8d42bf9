"""A dragonfly: groups of routers, all routers of a group joined, and all groups joined.

Each group has one link to each other group. Its links are numbered in the order of the groups they
lead to and dealt to its routers in equal runs: the arrangement called consecutive or absolute
(Hastings et al., "Comparing global link arrangements for dragonfly networks", CLUSTER 2015).
Routing is minimal: to the router with the link to the target's group, across, to the target's
router (Kim, Dally, Scott and Abts, "Technology-driven, highly-scalable dragonfly topology", 2008).
"""

from __future__ import annotations

import numpy as np

from triosim.errors import ConfigError
from triosim.network.topology.base import Floats, Ints, LinkSpec, Reduction

COUNTS_AT_ONCE = 1 << 21  # of ranks on routers, for some of the groups that exchange


class Dragonfly:
    """`ranks` GPUs on the first places; numbers run along a router's GPUs, then a group's routers.

    Link numbers: GPUs to routers, routers to GPUs, between routers of each group in turn, between
    groups. The way up pays a GPU link's latency, the way down is free.
    """

    def __init__(
        self,
        groups: int,
        routers: int,
        gpus_per_router: int,
        *,
        gpu_link: LinkSpec,
        local_link: LinkSpec,
        global_link: LinkSpec,
        ranks: int | None = None,
    ) -> None:
        sizes = (groups, routers, gpus_per_router)
        name = "dragonfly " + "x".join(map(str, sizes))
        if min(sizes) < 1:
            raise ConfigError("topology", name, "groups, routers and GPUs must be 1 or more")
        places = groups * routers * gpus_per_router
        self.ranks = places if ranks is None else ranks
        if not 1 <= self.ranks <= places:
            raise ConfigError(
                "topology", f"{self.ranks} GPUs", f"a {name} has places for 1 to {places:,}"
            )
        self._groups, self._routers, self._gpus = sizes
        self._ports = max(1, -(-(groups - 1) // routers))  # links to other groups of one router
        self._links = (gpu_link, local_link, global_link)
        counts = [
            self.ranks,
            self.ranks,
            groups * routers * (routers - 1),
            groups * (groups - 1),
        ]
        # NOTE: looking these up takes a quarter of the time of dividing.
        self._router = np.arange(self.ranks, dtype=np.int64) // gpus_per_router
        self._group = self._router // routers
        self._within = np.arange(groups * routers, dtype=np.int64) % routers
        self._last: tuple[Ints, Ints, list[tuple[Ints, Ints]]] | None = None
        self._first = [0, *np.cumsum(counts).tolist()]
        widths = [self._links[i].capacity_bytes_per_s for i in (0, 0, 1, 2)]
        self.capacity_bytes_per_s: Floats = np.repeat(widths, counts)
        delays = [gpu_link.latency_s, 0.0, local_link.latency_s, global_link.latency_s]
        self.link_latency_s: Floats = np.repeat(delays, counts)

    def _gateway(self, group: Ints, other: Ints) -> Ints:
        """The router of a group with the link to another one, numbered over all groups."""
        return group * self._routers + (other - (other > group)) // self._ports

    def _local(self, source: Ints, target: Ints) -> Ints:
        """The link between two routers of one group."""
        n = self._routers
        one, other = self._within[source], self._within[target]
        link: Ints = self._first[2] + source * (n - 1) + other - (other > one)
        return link

    def _global(self, group: Ints, other: Ints) -> Ints:
        link: Ints = self._first[3] + group * (self._groups - 1) + other - (other > group)
        return link

    def _hops(self, source: Ints, target: Ints) -> list[tuple[Ints, Ints]]:
        """Links in the order of a way, each with the positions of the pairs that use it."""
        # NOTE: loads and latencies of the same pairs are asked for in turn; this halves them.
        last = self._last
        if last is None or last[0] is not source or last[1] is not target:
            last = self._last = source, target, self._ways(source, target)
        return last[2]

    def _ways(self, source: Ints, target: Ints) -> list[tuple[Ints, Ints]]:
        moves = np.flatnonzero(source != target)
        one, other = source[moves], target[moves]
        start, end = self._router[one], self._router[other]
        group, away = self._group[one], self._group[other]
        far = np.flatnonzero(group != away)
        leave, enter = end.copy(), end.copy()
        leave[far] = self._gateway(group[far], away[far])
        enter[far] = self._gateway(away[far], group[far])
        out, back = np.flatnonzero(start != leave), far[enter[far] != end[far]]
        return [
            (one, moves),
            (self._local(start[out], leave[out]), moves[out]),
            (self._global(group[far], away[far]), moves[far]),
            (self._local(enter[back], end[back]), moves[back]),
            (self.ranks + other, moves),
        ]

    def traffic(self, source: Ints, target: Ints, size_bytes: Floats) -> Floats:
        hops = self._hops(source, target)
        links = np.concatenate([link for link, _ in hops])
        sizes = size_bytes[np.concatenate([pair for _, pair in hops])]
        count = len(self.capacity_bytes_per_s)
        return np.asarray(np.bincount(links, sizes, count), dtype=np.float64)

    def exchange(self, groups: Ints, size_bytes: float) -> Floats:
        size = groups.shape[1]
        if size * size <= self._groups * self._routers:  # NOTE: 8 ms, not 200, for 2,048 of 8
            source, target = np.repeat(groups, size, axis=1).ravel(), np.tile(groups, size).ravel()
            return self.traffic(source, target, np.ones(len(source))) * size_bytes
        loads = np.zeros(len(self.capacity_bytes_per_s))
        loads[: 2 * self.ranks] = np.tile(
            np.bincount(groups.ravel(), minlength=self.ranks) * (size - 1.0), 2
        )
        rows = max(1, COUNTS_AT_ONCE // (self._groups * self._routers))
        for i in range(0, len(groups), rows):
            self._add_exchange(loads, groups[i : i + rows])
        return loads * size_bytes

    def _add_exchange(self, loads: Floats, groups: Ints) -> None:
        """Between routers only the number of ranks on each one matters."""
        shape = (len(groups), self._groups, self._routers)
        router = np.arange(len(groups))[:, None] * shape[1] * shape[2] + groups // self._gpus
        here = np.bincount(router.ravel(), minlength=shape[0] * shape[1] * shape[2]).reshape(shape)
        here = here.astype(np.float64)
        away = self._beyond(here.sum(axis=2))
        # From a router to another one of its group: its ranks to that one's and to those beyond
        # it, and those beyond itself to that one's ranks.
        here, away = here.transpose(1, 2, 0), away.transpose(1, 2, 0)
        local = here @ (here + away).swapaxes(1, 2) + away @ here.swapaxes(1, 2)
        loads[self._first[2] : self._first[3]] += local[:, ~np.eye(shape[2], dtype=bool)].ravel()
        total = here.sum(axis=1)
        between = total @ total.T
        loads[self._first[3] :] += between[~np.eye(shape[1], dtype=bool)]

    def _beyond(self, ranks: Floats) -> Floats:
        """From ranks in each group (last axis) to ranks in the groups that each router leads to."""
        upto = np.concatenate((np.zeros((len(ranks), 1)), np.cumsum(ranks, axis=1)), axis=1)
        group = np.arange(self._groups)[:, None]
        port = np.minimum(np.arange(self._routers + 1) * self._ports, self._groups - 1)
        low, high = port[:-1], port[1:]
        own = (low < group) & (group < high)  # a router's run of groups leaves out its own
        first, last = low + (low >= group), high + (high > group)
        found: Floats = upto[:, np.maximum(first, last)] - upto[:, first]
        return found - own * ranks[:, :, None]

    def latency_s(self, source: Ints, target: Ints) -> Floats:
        total = np.zeros(len(source))
        up, local, across = (link.latency_s for link in self._links)
        delays = (up, local, across, local, 0.0)
        for (_, pair), delay_s in zip(self._hops(source, target), delays, strict=True):
            if delay_s:
                total[pair] += delay_s
        return total

    def passing(self, link: int, source: Ints, target: Ints) -> Floats:
        """The share of what each source sends to its target that passes the link."""
        share = np.zeros(len(source))
        for links, pair in self._hops(source, target):
            share[pair] += links == link
        return share

    def strands(self) -> Ints:
        """Parallel connections that each link stands for."""
        return np.ones(len(self.capacity_bytes_per_s), dtype=np.int64)

    def diameter_s(self, groups: Ints) -> float:
        if groups.shape[1] > 2 * self._groups:
            # Two ranks on different routers speak for a group: one of them is off any gateway.
            return max(self.diameter_s(self._outermost(row)[None]) for row in groups)
        size = groups.shape[1]
        source, target = np.repeat(groups, size, axis=1), np.tile(groups, size)
        return float(self.latency_s(source.ravel(), target.ravel()).max(initial=0.0))

    def _outermost(self, ranks: Ints) -> Ints:
        """The first and the last rank of each group."""
        ranks = np.sort(ranks)
        group = ranks // (self._gpus * self._routers)
        edge = np.flatnonzero(np.diff(group))
        return np.unique(np.concatenate((ranks[:1], ranks[edge], ranks[edge + 1], ranks[-1:])))

    def protocol(self, groups: Ints) -> str | None:
        if groups.shape[1] < 2:
            return None
        sizes = (self._routers * self._gpus, self._gpus, 1)
        for link, size in zip(self._links[::-1], sizes, strict=True):
            unit = groups // size
            if (unit != unit[:, :1]).any():
                return link.protocol
        return None

    def units(self, ranks: Ints) -> list[Ints]:
        found = (ranks // size for size in (self._gpus, self._gpus * self._routers))
        return [unit for unit in found if 1 < len(np.unique(unit)) < len(ranks)]

    def shape(self) -> tuple[int, ...] | None:
        return None

    def reduction(self, groups: Ints) -> Reduction | None:
        return None

    def ends(self) -> tuple[Ints, Ints]:
        gpu = np.arange(self.ranks)
        up = self.ranks + gpu // self._gpus
        one, other = _all_others(self._routers)
        base = self.ranks + np.arange(self._groups)[:, None] * self._routers
        group, away = _all_others(self._groups)
        source = (gpu, up, (base + one).ravel(), self.ranks + self._gateway(group, away))
        target = (up, gpu, (base + other).ravel(), self.ranks + self._gateway(away, group))
        return np.concatenate(source), np.concatenate(target)

    def node_name(self, node: int) -> str:
        return f"GPU {node}" if node < self.ranks else f"router {node - self.ranks}"


def _all_others(count: int) -> tuple[Ints, Ints]:
    """Every ordered pair of different numbers below count."""
    one = np.repeat(np.arange(count), count - 1)
    other = np.tile(np.arange(count - 1), count)
    return one, other + (other >= one)
