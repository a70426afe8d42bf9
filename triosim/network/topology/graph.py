"""A graph of nodes and directed links, and the route between two nodes.

A route has the fewest hops; among those the lowest latency, then the widest bottleneck, then the
smallest node ids in order.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass

from triosim.errors import Infeasible


@dataclass(frozen=True, kw_only=True, slots=True)
class Edge:
    """One direction of a connection."""

    source: int
    target: int
    bytes_per_s: float
    latency_s: float = 0.0


class Graph:
    """Nodes are integers; parallel edges are allowed."""

    def __init__(self, edges: Iterable[Edge]) -> None:
        self.edges = tuple(edges)
        self._out: dict[int, list[int]] = {}
        for i, edge in enumerate(self.edges):
            self._out.setdefault(edge.source, []).append(i)

    def route(self, source: int, target: int) -> tuple[int, ...]:
        """Positions in `edges` of the links from source to target; empty where they are the same.

        Raises `Infeasible` where no path exists.
        """
        # Best-first by the whole key. Appending an edge never improves a key and keeps the order of
        # two keys unless the bottleneck evens them out, so states are kept per node and bottleneck.
        start = (0, 0.0, -float("inf"), (source,), ())
        queue: list[tuple[int, float, float, tuple[int, ...], tuple[int, ...]]] = [start]
        best: dict[int, list[tuple[int, float, float, tuple[int, ...]]]] = {}
        while queue:
            hops, latency_s, narrow, nodes, links = heapq.heappop(queue)
            node = nodes[-1]
            if node == target:
                return links
            if any(
                self._dominates(k, (hops, latency_s, narrow, nodes)) for k in best.get(node, [])
            ):
                continue
            best.setdefault(node, []).append((hops, latency_s, narrow, nodes))
            for i in self._out.get(node, ()):
                edge = self.edges[i]
                if edge.target not in nodes:
                    heapq.heappush(
                        queue,
                        (
                            hops + 1,
                            latency_s + edge.latency_s,
                            max(narrow, -edge.bytes_per_s),
                            (*nodes, edge.target),
                            (*links, i),
                        ),
                    )
        raise Infeasible(f"No path leads from node {source} to node {target}.")

    @staticmethod
    def _dominates(
        one: tuple[int, float, float, tuple[int, ...]],
        other: tuple[int, float, float, tuple[int, ...]],
    ) -> bool:
        """Whether every continuation of `one` is at least as good as the same one of `other`.

        A wider bottleneck alone does not decide: a narrow link further on may even the two out, and
        then the node ids count.
        """
        return one[:2] < other[:2] or (
            one[:2] == other[:2] and one[2] <= other[2] and one[3] <= other[3]
        )
