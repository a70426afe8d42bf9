"""The search for the routes from one node.

The best have the fewest hops, then the lowest latency, the widest bottleneck, the smallest ids. The
search goes hop by hop and only as far as it is asked. A wider bottleneck alone does not decide
between two ways to a node: a narrow link further on may even the two out, and then the node ids
count. So each node keeps every way that is wider than those with smaller ids.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from triosim.network.topology.base import Floats, Ints

Out = tuple[int, int, float, float]  # link, the node it leads to, latency_s, bytes_per_s


# A way from the source to a node: latency_s, minus the width, the place of the way up to the node
# before it in the order of node ids, the last link, and the state before. Of those with as many
# hops the least is the best.
_Way = tuple[float, float, int, int, int]


class Search:
    """States are ways to nodes, numbered in order of hops; state 0 is the source itself."""

    def __init__(self, out: Mapping[int, Sequence[Out]], source: int) -> None:
        self._out = out
        self._parent, self._link = [0], [-1]
        self._best = {source: 0}
        # Of each node just reached: latency, minus the width, place and number of its states.
        self._front = {source: [(0.0, -np.inf, 0, 0)]}

    def reaches(self, target: int) -> bool:
        while target not in self._best and self._front:
            self._advance()
        return target in self._best

    def route(self, target: int) -> tuple[int, ...]:
        """The links to a node that has been reached."""
        links, state = [], self._best[target]
        while state:
            links.append(self._link[state])
            state = self._parent[state]
        return tuple(reversed(links))

    def state(self, target: int) -> int:
        """The best way to a node that has been reached."""
        return self._best[target]

    def add(self, loads: Floats, states: Ints, size_bytes: Floats) -> None:
        """Add to the loads of all links what goes the ways of these states."""
        size = np.bincount(states, size_bytes, len(self._parent)).tolist()
        for state in range(len(size) - 1, 0, -1):  # a way's states come in its order
            size[self._parent[state]] += size[state]
        np.add.at(loads, self._link[1:], size[1:])

    def sums(self, values: Floats) -> Floats:
        """For each state, the sum over the links of its way."""
        each = values[self._link].tolist()
        total = [0.0]
        for parent, value in zip(self._parent[1:], each[1:], strict=True):
            total.append(total[parent] + value)
        return np.array(total)

    def _advance(self) -> None:
        """One more hop."""
        ways: dict[int, list[_Way]] = {}
        for node, states in self._front.items():
            for link, target, latency_s, width in self._out.get(node, ()):
                if target not in self._best:
                    ways.setdefault(target, []).extend(
                        (s + latency_s, max(narrow, -width), place, link, state)
                        for s, narrow, place, state in states
                    )
        kept = {node: _undominated(found) for node, found in ways.items()}
        orders = sorted({(way[2], node) for node, found in kept.items() for way in found})
        place = {order: i for i, order in enumerate(orders)}
        self._front = {}
        for node, found in kept.items():
            self._best[node] = len(self._parent)
            states = []
            for latency_s, minus_width, before, link, parent in found:
                states.append((latency_s, minus_width, place[before, node], len(self._parent)))
                self._parent.append(parent)
                self._link.append(link)
            self._front[node] = states


def _undominated(ways: list[_Way]) -> list[_Way]:
    """The best way, and those with smaller ids that are narrower but no slower."""
    if len(ways) == 1:
        return ways
    ways.sort()
    kept = ways[:1]
    for way in ways[1:]:
        if way[0] == kept[0][0] and way[2] < kept[-1][2]:
            kept.append(way)
    return kept
