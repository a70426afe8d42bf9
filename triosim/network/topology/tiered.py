"""Tiers of switches: GPU, NVSwitch, NIC, top-of-rack, spine, from the inside out.

Each tier joins groups of the tier below. A GPU's way up is one link for each tier; two ranks meet
at the lowest tier where both are under the same switch. Several parallel links of one child are
either each the way of some of its GPUs (one NIC for each GPU) or one bundle over which traffic
spreads evenly (the uplinks of a leaf switch; an assumption: perfect load balance). On rails, link i
of every child goes to switch i of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from triosim.errors import ConfigError
from triosim.network.topology.base import Floats, Ints, LinkSpec, Reduction


@dataclass(frozen=True, kw_only=True, slots=True)
class Tier:
    """Switches that join `children` groups of the tier below (GPUs, for the innermost) each.

    `name` is what a switch of this tier is called. Every child has `links` links of `link` to it.
    `per_gpu`: each link is the way of its own share of the child's GPUs; otherwise they are one
    bundle. `rails`: link i of every child leads to switch i. `children` 0 joins all there are.
    `reduces`: its switches can add up what passes (NVLS, SHARP).
    """

    name: str
    children: int
    link: LinkSpec
    links: int = 1
    per_gpu: bool = False
    rails: bool = False
    reduces: bool = False


class Tiered:
    """`ranks` GPUs under tiers of switches; the last switch of a tier may be partly empty.

    Link numbers: for each tier from the inside, all ways up, then all ways down.
    """

    def __init__(self, tiers: Sequence[Tier], ranks: int) -> None:
        if not tiers:
            raise ConfigError("topology", "no tiers", "needs at least one tier of switches")
        self.tiers = tuple(tiers)
        self.ranks = ranks
        gpu = np.arange(ranks, dtype=np.int64)
        self._switch: list[Ints] = []  # of each tier: the switch that each GPU is under
        self._link: list[Ints] = []  # of each tier: the way up of each GPU, numbered in the tier
        self._offset: list[int] = []  # of each tier: its first way up among all links
        self._count: list[int] = []  # of each tier: ways up
        self._met: tuple[Ints, Ints, Ints] | None = None  # the pairs that were last asked about
        child, inside = gpu, 1
        capacity: list[Floats] = []
        latency: list[Floats] = []
        for tier in self.tiers:
            size = inside * tier.children if tier.children else max(ranks, inside)
            rail = gpu % inside * tier.links // inside
            separate = tier.per_gpu or tier.rails
            link = child * tier.links + rail if separate else child
            link = (np.cumsum(np.bincount(link) > 0) - 1)[link]  # only links that someone uses
            switch = gpu // size
            if tier.rails:
                switch = switch * tier.links + rail
            width = tier.link.capacity_bytes_per_s * (1 if separate else tier.links)
            self._offset.append(sum(len(c) for c in capacity))
            self._count.append(int(link.max()) + 1)
            capacity.append(np.full(2 * self._count[-1], width))
            # The way up pays a tier's latency, the way down is free: together one step's alpha.
            latency += [np.full(self._count[-1], s) for s in (tier.link.latency_s, 0.0)]
            self._switch.append(switch)
            self._link.append(link)
            child, inside = switch, size
        self.capacity_bytes_per_s: Floats = np.concatenate(capacity)
        self.link_latency_s: Floats = np.concatenate(latency)
        if int(self._switch[-1].max()) > 0:
            raise ConfigError(
                "topology",
                f"{ranks} GPUs",
                f"the outermost tier, {self.tiers[-1].name}, joins at most {inside:,} of them",
            )

    def traffic(self, source: Ints, target: Ints, size_bytes: Floats) -> Floats:
        loads = np.zeros(len(self.capacity_bytes_per_s))
        meet = self._meeting(source, target)
        for t in range(len(self.tiers)):
            above = meet >= t
            if not above.all():
                source, target, size_bytes = source[above], target[above], size_bytes[above]
                meet = meet[above]
            self._add(loads, t, self._link[t][source], self._link[t][target], size_bytes)
        return loads

    def _add(self, loads: Floats, t: int, up: Ints, down: Ints, size_bytes: Floats) -> None:
        first, count = self._offset[t], self._count[t]
        loads[first : first + count] = np.bincount(up, size_bytes, count)
        loads[first + count : first + 2 * count] = np.bincount(down, size_bytes, count)

    def _meeting(self, source: Ints, target: Ints) -> Ints:
        """The tier whose switch joins each pair; -1 for a rank and itself."""
        # NOTE: a move's traffic and its latency are asked about the same arrays.
        met = self._met  # read once: threads share a topology
        if met is not None and met[0] is source and met[1] is target:
            return met[2]
        meet = np.full(len(source), len(self.tiers) - 1, dtype=np.int64)
        for t in reversed(range(len(self.tiers) - 1)):
            meet[self._switch[t][source] == self._switch[t][target]] = t
        meet[source == target] = -1
        self._met = source, target, meet
        return meet

    def exchange(self, groups: Ints, size_bytes: float) -> Floats:
        loads = np.zeros(len(self.capacity_bytes_per_s))
        row = np.repeat(np.arange(len(groups)), groups.shape[1])
        ranks = groups.ravel()
        near = np.ones(len(ranks))  # partners that meet below the tier, and the rank itself
        for t in range(len(self.tiers)):
            size = size_bytes * (groups.shape[1] - near)
            self._add(loads, t, self._link[t][ranks], self._link[t][ranks], size)
            near = self._within(t, row, ranks)
        return loads

    def _within(self, t: int, row: Ints, ranks: Ints) -> Floats:
        """How many ranks of its own group each rank meets at tier t or below, itself included."""
        near = _peers(row, self._switch[t][ranks])
        if t and self.tiers[t].rails:
            # Rails cut across the groups below: both kinds of neighbours, none counted twice.
            below = self._switch[t - 1][ranks]
            near = near + _peers(row, below) - _peers(row, self._switch[t][ranks], below)
        return near

    def latency_s(self, source: Ints, target: Ints) -> Floats:
        steps = np.concatenate(([0.0], np.cumsum([tier.link.latency_s for tier in self.tiers])))
        total: Floats = steps[self._meeting(source, target) + 1]
        return total

    def passing(self, link: int, source: Ints, target: Ints) -> Floats:
        """The share of what each source sends to its target that passes the link."""
        t = max(t for t, first in enumerate(self._offset) if first <= link)
        down, number = divmod(link - self._offset[t], self._count[t])
        here = self._link[t][target if down else source] == number
        return np.asarray(here & (self._meeting(source, target) >= t), dtype=np.float64)

    def strands(self) -> Ints:
        """Parallel connections that each link stands for."""
        each = [1 if tier.per_gpu or tier.rails else tier.links for tier in self.tiers]
        return np.repeat(each, 2 * np.array(self._count))

    def diameter_s(self, groups: Ints) -> float:
        top = self._top(groups)
        return sum(tier.link.latency_s for tier in self.tiers[: top + 1])

    def _top(self, groups: Ints) -> int:
        """The outermost tier that traffic inside the groups passes; -1 for groups of one."""
        if groups.shape[1] < 2:
            return -1
        if groups.shape[1] == 2:  # NOTE: a tenth of the time for pairs
            return int(self._meeting(groups[:, 0], groups[:, 1]).max(initial=0))
        for t in range(len(self.tiers)):
            switch = self._switch[t][groups]
            # Group by group: one that a host joins need not be on one rail.
            groups = groups[(switch != switch[:, :1]).any(axis=1)]
            if not len(groups):
                return t
        return len(self.tiers) - 1

    def protocol(self, groups: Ints) -> str | None:
        top = self._top(groups)
        return self.tiers[top].link.protocol if top >= 0 else None

    def units(self, ranks: Ints) -> list[Ints]:
        found = []
        for t, tier in enumerate(self.tiers[:-1]):
            switch = self._switch[t][ranks]
            # The switches of a rail see one GPU of each host: no unit that shares a fast link.
            if not tier.rails and 1 < len(np.unique(switch)) < len(ranks):
                found.append(switch)
        return found

    def shape(self) -> tuple[int, ...] | None:
        return None

    def reduction(self, groups: Ints) -> Reduction | None:
        top = self._top(groups)
        if top < 0 or not all(tier.reduces for tier in self.tiers[: top + 1]):
            return None
        latency_s = self.diameter_s(groups) / 2
        up = np.zeros(len(self.capacity_bytes_per_s))
        down = up.copy()
        child = groups
        for t in range(top + 1):
            first, count = self._offset[t], self._count[t]
            row = np.repeat(np.arange(len(groups)), groups.shape[1])
            sender = row * (int(child.max()) + 1) + child.ravel()
            sender, link = np.divmod(
                np.unique(sender * count + self._link[t][groups.ravel()]), count
            )
            # What one child of one group sends is spread over the links that its members use.
            loads = np.bincount(link, 1.0 / _peers(sender), count)
            up[first : first + count] += loads
            down[first + count : first + 2 * count] += loads
            child = self._switch[t][groups]
            # A group whose ranks have all met goes no further up.
            apart = (child != child[:, :1]).any(axis=1)
            groups, child = groups[apart], child[apart]
            if not len(groups):
                break
        return Reduction(up=up, down=down, latency_s=latency_s)

    @cached_property
    def _first_node(self) -> list[int]:
        """The node number of each tier's first switch."""
        counts = [self.ranks, *(int(switch.max()) + 1 for switch in self._switch)]
        return [int(first) for first in np.cumsum(counts)[:-1]]

    def ends(self) -> tuple[Ints, Ints]:
        source, target = [], []
        child = np.arange(self.ranks)
        for t in range(len(self.tiers)):
            lower = np.zeros(self._count[t], dtype=np.int64)
            upper = np.zeros(self._count[t], dtype=np.int64)
            lower[self._link[t]] = child
            upper[self._link[t]] = self._first_node[t] + self._switch[t]
            source += [lower, upper]
            target += [upper, lower]
            child = upper[self._link[t]]
        return np.concatenate(source), np.concatenate(target)

    def node_name(self, node: int) -> str:
        if node < self.ranks:
            return f"GPU {node}"
        t = max(t for t, first in enumerate(self._first_node) if first <= node)
        return f"{self.tiers[t].name} {node - self._first_node[t]}"


def _peers(row: Ints, *keys: Ints) -> Floats:
    """How many entries share each entry's row and keys."""
    combined = row
    for key in keys:
        combined = combined * (int(key.max(initial=0)) + 1) + key
    _, inverse, counts = np.unique(combined, return_inverse=True, return_counts=True)
    return counts[inverse].astype(np.float64)
