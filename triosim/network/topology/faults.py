"""Topologies with degraded and dead links.

A degraded link is narrower. What would cross a dead one takes the way that is best without it: the
fewest hops, then the lowest latency, the widest bottleneck, the smallest node numbers. Everything
else goes where it went before.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import cached_property

import numpy as np
import numpy.typing as npt

from triosim.errors import ConfigError, Infeasible
from triosim.network.topology.base import Floats, Ints, Reduction, Topology
from triosim.network.topology.graph import Edge, Graph

MAX_EXCHANGE = 1024  # ranks whose pairs are followed one by one
MAX_EXAMPLES = 6  # of links, in a sentence

Bools = npt.NDArray[np.bool_]


def degrade(topology: Topology, faults: Mapping[str, float]) -> Topology:
    """The topology with some links left only a share of their bandwidth, in both directions.

    `faults` has the share for each connection, 0 for a dead one. A connection is named by its two
    ends, "GPU 3-GPU 4" or "3-4" for short, with any capitals; a number behind a colon, "host 0-leaf
    0:3", picks one of several parallel connections, which are all meant otherwise.

    Traffic stays on a link as long as anything of it is left, as communication libraries do not
    rebalance; only that of a dead one goes another way. So a nearly dead link can be slower than a
    dead one.

    Raises `ConfigError` on field "dead_links" for a name or a share that there cannot be.
    """
    if not faults:
        return topology
    left = _left(topology, faults)
    return Degraded(topology, left)


class Degraded:
    """`left[i]` is the share of the bandwidth that link i still has.

    Parallel links take over from a dead one in proportion to their bandwidth.
    """

    def __init__(self, topology: Topology, left: Floats) -> None:
        self._whole = topology
        self.ranks = topology.ranks
        self.capacity_bytes_per_s: Floats = topology.capacity_bytes_per_s * left
        self.link_latency_s = topology.link_latency_s
        self._dead = np.flatnonzero(left == 0.0)

    @cached_property
    def _bundles(self) -> dict[tuple[int, int], list[int]]:
        """The links that are left between two nodes."""
        found: dict[tuple[int, int], list[int]] = {}
        ends = (end.tolist() for end in self.ends())
        for link, pair in enumerate(zip(*ends, strict=True)):
            if self.capacity_bytes_per_s[link] > 0.0:
                found.setdefault(pair, []).append(link)
        return found

    @cached_property
    def _rest(self) -> Graph:
        """What is left; parallel links are one edge, in the order of `_bundles`."""
        return Graph(
            Edge(
                source=source,
                target=target,
                bytes_per_s=float(self.capacity_bytes_per_s[links].sum()),
                latency_s=float(self.link_latency_s[links].max()),
            )
            for (source, target), links in self._bundles.items()
        )

    def _detours(self, source: Ints, target: Ints) -> Ints:
        """The positions of pairs whose way leads over a dead link."""
        lost = np.zeros(len(source), dtype=bool)
        if self._whole.traffic(source, target, np.ones(len(source)))[self._dead].any():
            for link in self._dead.tolist():
                lost |= self._whole.passing(link, source, target) > 0.0
        return np.flatnonzero(lost)

    def _cut_off(self, source: Ints, target: Ints) -> Infeasible:
        """The error that names the first pair without a way, and a dead link between the two."""
        for one, other in zip(source.tolist(), target.tolist(), strict=True):
            try:
                self._rest.route(one, other)
            except Infeasible:
                break
        pair, dead = (np.array([one]), np.array([other])), self._dead.tolist()
        link = next(k for k in dead if self._whole.passing(k, *pair)[0] > 0.0)
        return Infeasible(
            f"{self.node_name(one)} and {self.node_name(other)} are cut off from each other: "
            f"no way is left without the dead link {_name(self._whole, link)}."
        )

    def traffic(self, source: Ints, target: Ints, size_bytes: Floats) -> Floats:
        lost = self._detours(source, target)
        if not len(lost):
            return self._whole.traffic(source, target, size_bytes)
        size = np.array(size_bytes, dtype=np.float64)
        try:
            moved = self._rest.traffic(source[lost], target[lost], size[lost])
        except Infeasible:
            raise self._cut_off(source[lost], target[lost]) from None
        size[lost] = 0.0
        loads = self._whole.traffic(source, target, size)
        bundles = list(self._bundles.values())
        for edge in np.flatnonzero(moved).tolist():
            width = self.capacity_bytes_per_s[bundles[edge]]
            loads[bundles[edge]] += moved[edge] * width / width.sum()
        return loads

    def exchange(self, groups: Ints, size_bytes: float) -> Floats:
        lost = self._disturbed(groups)
        loads = self._whole.exchange(groups[~lost], size_bytes)
        for group in groups[lost]:
            source, target = _pairs(group)
            loads += self.traffic(source, target, np.full(len(source), size_bytes))
        return loads

    def _disturbed(self, groups: Ints) -> Bools:
        """For each group, whether an exchange in it crosses a dead link."""
        if not self._whole.exchange(groups, 1.0)[self._dead].any():
            return np.zeros(len(groups), dtype=bool)
        if len(groups) == 1:
            if groups.size > MAX_EXCHANGE:
                raise Infeasible(
                    f"All-to-all among {groups.size:,} GPUs crosses a dead link, and ways round it "
                    f"are followed for at most {MAX_EXCHANGE:,} GPUs."
                )
            return np.ones(1, dtype=bool)
        halves = np.array_split(groups, 2)
        return np.concatenate([self._disturbed(half) for half in halves])

    def latency_s(self, source: Ints, target: Ints) -> Floats:
        latency_s = self._whole.latency_s(source, target)
        lost = self._detours(source, target)
        try:
            latency_s[lost] = self._rest.latency_s(source[lost], target[lost])
        except Infeasible:
            raise self._cut_off(source[lost], target[lost]) from None
        return latency_s

    def diameter_s(self, groups: Ints) -> float:
        lost = self._disturbed(groups)
        whole = self._whole.diameter_s(groups[~lost]) if not lost.all() else 0.0
        detours = (float(self.latency_s(*_pairs(group)).max()) for group in groups[lost])
        return max((whole, *detours))

    def passing(self, link: int, source: Ints, target: Ints) -> Floats:
        """The share of what each source sends to its target that passes the link."""
        share = self._whole.passing(link, source, target)
        lost = self._detours(source, target)
        share[lost] = 0.0
        for edge, links in enumerate(self._bundles.values()):
            if link in links:
                width = self.capacity_bytes_per_s
                part = width[link] / width[links].sum()
                share[lost] = part * self._rest.passing(edge, source[lost], target[lost])
        return share

    def strands(self) -> Ints:
        """Parallel connections that each link stands for."""
        return self._whole.strands()

    def protocol(self, groups: Ints) -> str | None:
        return self._whole.protocol(groups)

    def units(self, ranks: Ints) -> list[Ints]:
        return self._whole.units(ranks)

    def shape(self) -> tuple[int, ...] | None:
        return self._whole.shape()

    def reduction(self, groups: Ints) -> Reduction | None:
        """None where a dead link is in the way of it."""
        found = self._whole.reduction(groups)
        if found is not None and (found.up + found.down)[self._dead].any():
            return None
        return found

    def ends(self) -> tuple[Ints, Ints]:
        """All links, the dead ones included."""
        return self._whole.ends()

    def node_name(self, node: int) -> str:
        return self._whole.node_name(node)


def _pairs(group: Ints) -> tuple[Ints, Ints]:
    """All pairs of ranks, each also with itself."""
    return np.repeat(group, len(group)), np.tile(group, len(group))


def _left(topology: Topology, faults: Mapping[str, float]) -> Floats:
    """The share of each link's bandwidth that the faults leave."""
    source, target = topology.ends()
    strands = topology.strands()
    nodes = _nodes(topology)
    left: dict[tuple[int, int], float] = {}  # of each strand of a link that a fault names
    for name, share in faults.items():
        if not (isinstance(share, (int, float)) and 0.0 <= share <= 1.0):
            raise ConfigError(
                "dead_links", f"{name} = {share}", "the share that is left must be from 0 to 1"
            )
        one, other, number = _ends(topology, name, nodes)
        for ends in ((one, other), (other, one)):
            links = np.flatnonzero((source == ends[0]) & (target == ends[1]))
            each = [(int(link), i) for link in links for i in range(int(strands[link]))]
            if not each:
                raise _unknown(topology, name)
            if number is not None and number >= len(each):
                raise ConfigError(
                    "dead_links",
                    name,
                    f"the parallel links there are numbered from 0 to {len(each) - 1}",
                )
            left |= dict.fromkeys(each if number is None else [each[number]], float(share))
    shares = np.ones(len(strands))
    for link in {link for link, _ in left}:
        count = int(strands[link])
        shares[link] = math.fsum(left.get((link, i), 1.0) for i in range(count)) / count
    return shares


def _nodes(topology: Topology) -> dict[str, int]:
    """Nodes by name, in small letters; GPUs by their number, too."""
    count = 1 + max((int(end.max(initial=-1)) for end in topology.ends()), default=-1)
    nodes = {topology.node_name(node).strip().casefold(): node for node in range(count)}
    return {str(rank): rank for rank in range(topology.ranks)} | nodes


def _ends(topology: Topology, name: str, nodes: Mapping[str, int]) -> tuple[int, int, int | None]:
    """Both nodes of a named connection, and the number among parallel ones if it has one."""
    words, colon, number = name.rpartition(":")
    readings: list[tuple[str, int | None]] = [(name, None)]
    if colon and number.strip().isdecimal():
        readings.append((words, int(number)))
    for ends, picked in readings:
        parts = ends.casefold().split("-")
        for i in range(1, len(parts)):
            one, other = "-".join(parts[:i]).strip(), "-".join(parts[i:]).strip()
            if one in nodes and other in nodes:
                return nodes[one], nodes[other], picked
    raise _unknown(topology, name)


def _name(topology: Topology, link: int) -> str:
    source, target = topology.ends()
    return f"{topology.node_name(int(source[link]))}-{topology.node_name(int(target[link]))}"


def _unknown(topology: Topology, name: str) -> ConfigError:
    examples = ", ".join(_examples(topology)) or "none here"
    return ConfigError("dead_links", name, f"no such link; there are, for example, {examples}")


def _examples(topology: Topology) -> list[str]:
    """A connection between each two kinds of nodes; three where there is one kind only."""
    source, target = topology.ends()
    kinds: dict[frozenset[str], list[int]] = {}
    for link, ends in enumerate(zip(source.tolist(), target.tolist(), strict=True)):
        kind = frozenset(re.sub(r"\d+", "", topology.node_name(end)) for end in ends)
        kinds.setdefault(kind, []).append(link)
    each = 1 if len(kinds) > 1 else 3
    some = [link for links in kinds.values() for link in links[:each]]
    return [_picked(topology, link) for link in some[:MAX_EXAMPLES]]


def _picked(topology: Topology, link: int) -> str:
    """The last one of parallel connections by its number, any other by its ends."""
    source, target = topology.ends()
    beside = (source == source[link]) & (target == target[link])
    count = int(topology.strands()[beside].sum())
    return _name(topology, link) + (f":{count - 1}" if count > 1 else "")
