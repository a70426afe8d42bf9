"""A graph of nodes and directed links, and the route between two nodes.

A route has the fewest hops; among those the lowest latency, then the widest bottleneck, then the
smallest node ids in order. All traffic of a pair takes that one route.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from triosim.errors import Infeasible
from triosim.network.topology.base import Floats, Ints, LinkSpec, Reduction
from triosim.network.topology.search import Out, Search

# Pairs of GPUs of a DGX-1 with V100 and how many of the six NVLinks of each join them: the hybrid
# cube mesh of NVIDIA's white paper WP-08437-002, "DGX-1 with Tesla V100 system architecture"; pairs
# and counts as in the NCCL topology file of such a host in github.com/NVIDIA/nccl, issue 671.
DGX_1V = (
    (0, 1, 1), (0, 2, 1), (0, 3, 2), (0, 4, 2), (1, 2, 2), (1, 3, 1), (1, 5, 2), (2, 3, 2),
    (2, 6, 1), (3, 7, 1), (4, 5, 1), (4, 6, 1), (4, 7, 2), (5, 6, 2), (5, 7, 1), (6, 7, 2),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Edge:
    """One direction of a connection; `bytes_per_s` is that of all its `strands` together."""

    source: int
    target: int
    bytes_per_s: float
    latency_s: float = 0.0
    strands: int = 1
    protocol: str | None = None


def connection(one: int, other: int, link: LinkSpec, count: int = 1) -> tuple[Edge, Edge]:
    """Both directions of `count` parallel links, over which traffic spreads evenly."""
    there, back = (
        Edge(
            source=source,
            target=target,
            bytes_per_s=link.capacity_bytes_per_s * count,
            latency_s=link.latency_s,
            strands=count,
            protocol=link.protocol,
        )
        for source, target in ((one, other), (other, one))
    )
    return there, back


class Graph:
    """Nodes are integers, the first `ranks` of them GPUs (all, where it is not given).

    `names` are what people call the first nodes. Parallel edges are allowed; only one of them
    carries a route.
    """

    def __init__(
        self, edges: Iterable[Edge], ranks: int | None = None, names: Sequence[str] = ()
    ) -> None:
        self.edges = tuple(edges)
        nodes = 1 + max((max(e.source, e.target) for e in self.edges), default=-1)
        self.ranks = nodes if ranks is None else ranks
        self._names = tuple(names)
        self._numbered = "node" if ranks is None else "GPU"
        self.capacity_bytes_per_s: Floats = np.array([e.bytes_per_s for e in self.edges], float)
        self.link_latency_s: Floats = np.array([e.latency_s for e in self.edges], float)
        self._out: dict[int, list[Out]] = {}
        for i, edge in enumerate(self.edges):
            onward = i, edge.target, edge.latency_s, edge.bytes_per_s
            self._out.setdefault(edge.source, []).append(onward)
        self._searches: dict[int, Search] = {}

    def _search(self, source: int) -> Search:
        """The search from a source, as far as it has been needed."""
        if source not in self._searches:
            self._searches[source] = Search(self._out, source)
        return self._searches[source]

    def route(self, source: int, target: int) -> tuple[int, ...]:
        """Positions in `edges` of the links from source to target; empty where they are the same.

        Raises `Infeasible` where no path exists.
        """
        search = self._search(source)
        if not search.reaches(target):
            raise self._no_path(source, target)
        return search.route(target)

    def _no_path(self, source: int, target: int) -> Infeasible:
        names = self.node_name(source), self.node_name(target)
        return Infeasible(f"No path leads from {names[0]} to {names[1]}.")

    def _states(self, source: int, targets: Ints) -> Ints:
        """The search's states in which the routes to the targets end."""
        search = self._search(source)
        distinct, position = np.unique(targets, return_inverse=True)
        for target in distinct.tolist():
            if not search.reaches(target):
                raise self._no_path(source, target)
        return np.array([search.state(target) for target in distinct.tolist()])[position]

    def traffic(self, source: Ints, target: Ints, size_bytes: Floats) -> Floats:
        loads = np.zeros(len(self.edges))
        for one, at in _by_value(source):
            states = self._states(one, target[at])
            self._search(one).add(loads, states, size_bytes[at])
        return loads

    def exchange(self, groups: Ints, size_bytes: float) -> Floats:
        source, target = self._pairs(groups)
        return self.traffic(source, target, np.ones(len(source))) * size_bytes

    def _pairs(self, groups: Ints) -> tuple[Ints, Ints]:
        """All pairs inside the groups, each rank also with itself."""
        size = groups.shape[1]
        return np.repeat(groups, size, axis=1).ravel(), np.tile(groups, size).ravel()

    def latency_s(self, source: Ints, target: Ints) -> Floats:
        latency_s = np.zeros(np.broadcast(source, target).shape)
        for one, at in _by_value(source):
            states = self._states(one, target[at])
            latency_s[at] = self._search(one).sums(self.link_latency_s)[states]
        return latency_s

    def passing(self, link: int, source: Ints, target: Ints) -> Floats:
        """The share of what each source sends to its target that passes the link."""
        share = np.zeros(len(source))
        one_link = np.zeros(len(self.edges))
        one_link[link] = 1.0
        for one, at in _by_value(source):
            states = self._states(one, target[at])
            share[at] = self._search(one).sums(one_link)[states]
        return share

    def strands(self) -> Ints:
        """Parallel connections that each link stands for."""
        return np.array([edge.strands for edge in self.edges], dtype=np.int64)

    def diameter_s(self, groups: Ints) -> float:
        return float(self.latency_s(*self._pairs(groups)).max(initial=0.0))

    def protocol(self, groups: Ints) -> str | None:
        """That of the narrowest link on the ways inside the groups."""
        used = np.flatnonzero(self.exchange(groups, 1.0))
        if not len(used):
            return None
        narrowest = int(used[np.argmin(self.capacity_bytes_per_s[used])])
        return self.edges[narrowest].protocol

    def units(self, ranks: Ints) -> list[Ints]:
        return []

    def shape(self) -> tuple[int, ...] | None:
        return None

    def reduction(self, groups: Ints) -> Reduction | None:
        return None

    def ends(self) -> tuple[Ints, Ints]:
        return (
            np.array([edge.source for edge in self.edges], dtype=np.int64),
            np.array([edge.target for edge in self.edges], dtype=np.int64),
        )

    def node_name(self, node: int) -> str:
        if node < len(self._names):
            return self._names[node]
        return f"{self._numbered if node < self.ranks else 'node'} {node}"


def hybrid_cube_mesh(link: LinkSpec) -> Graph:
    """Eight GPUs joined by NVLinks as in a DGX-1 with V100; `link` is one NVLink of 25 GB/s."""
    pairs = [connection(one, other, link, count) for one, other, count in DGX_1V]
    return Graph((edge for pair in pairs for edge in pair), 8)


def _by_value(values: Ints) -> list[tuple[int, Ints]]:
    """Each value that occurs, with its positions."""
    order = np.argsort(values, kind="stable")
    found, first = np.unique(values[order], return_index=True)
    return list(zip(found.tolist(), np.split(order, first[1:]), strict=True)) if len(order) else []
