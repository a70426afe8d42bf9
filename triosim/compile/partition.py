"""What backward keeps from forward and what it computes again: the cheapest cut.

As AOTAutograd's partitioner: element-wise operators may run a second time in backward, where they
fuse; products, attention, communications, random numbers and reductions may not. Among the sets of
tensors from which backward can start, the one with the least bytes is kept (minimum cut of a
network in which a tensor is an edge as wide as its bytes; Ford and Fulkerson 1956). A tensor that
would be stored only for backward counts twice; what a call of backward reads must be in memory
anyway and is kept. Left out: the partitioner's bans on long chains.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from triosim.compile.graph import Buffer, Node

# Tensors a little nearer to backward are preferred: bytes grow by this per step away from it.
STEP_AWAY = 1.1
_FOREVER = float("inf")
# A tensor has two places in the network, before and after the edge that is as wide as its bytes.
Place = tuple[str, int]
SOURCE, SINK = ("", 0), ("", 1)


def partition(
    forward: Sequence[Node],
    backward: Sequence[Node],
    buffers: Mapping[str, Buffer],
    free: frozenset[str],
) -> tuple[frozenset[str], tuple[Node, ...]]:
    """Buffers that backward keeps, and backward with what it computes again in front.

    A kept buffer may be an input of the block; those in `free` cost nothing.
    """
    writer = {access.buffer: node for node in forward for access in node.writes}
    own = {access.buffer for node in backward for access in node.writes}
    wanted = {a.buffer for node in backward for a in node.reads} - own
    called = {a.buffer for node in backward if not node.loops for a in node.reads}
    again = {name for name, node in writer.items() if _repeatable(node) and name not in called}
    kept = _cut(writer, wanted, again, buffers, free)
    needed, repeated = wanted - kept, []
    for node in reversed(forward):
        if any(access.buffer in needed for access in node.writes):
            repeated.append(node)
            needed |= {access.buffer for access in node.reads} - kept
    return frozenset(kept), (*reversed(repeated), *backward)


def _repeatable(node: Node) -> bool:
    return node.kind == "pointwise" and not node.random


def _cut(
    writer: Mapping[str, Node],
    wanted: set[str],
    again: set[str],
    buffers: Mapping[str, Buffer],
    free: frozenset[str],
) -> set[str]:
    """The cheapest set of buffers that separates backward from all that must not run twice."""
    depth = dict.fromkeys(wanted, 0)
    todo = deque(wanted)
    while todo:
        name = todo.popleft()
        for access in writer[name].reads if name in again else ():
            if access.buffer not in depth:
                depth[access.buffer] = depth[name] + 1
                todo.append(access.buffer)
    called = {a.buffer for node in writer.values() if not node.loops for a in node.reads}
    flow = _Flow()
    for name, steps in depth.items():
        weight = 0.0 if name in free else buffers[name].bytes * STEP_AWAY ** max(1, steps)
        stored_for_this = name in writer and writer[name].loops and name not in called
        flow.edge((name, 0), (name, 1), weight * (2 if stored_for_this else 1))
        if name in wanted:
            flow.edge((name, 1), SINK, _FOREVER)
        if name not in again:
            flow.edge(SOURCE, (name, 0), _FOREVER)
        for access in writer[name].reads if name in again else ():
            flow.edge((access.buffer, 1), (name, 0), _FOREVER)
    beyond = flow.cut_near_the_sink()
    return {name for name in depth if (name, 0) not in beyond and (name, 1) in beyond}


class _Flow:
    """Maximum flow by shortest augmenting paths (Edmonds and Karp 1972)."""

    def __init__(self) -> None:
        self.room: dict[Place, dict[Place, float]] = {SOURCE: {}, SINK: {}}

    def edge(self, start: Place, end: Place, room: float) -> None:
        outgoing = self.room.setdefault(start, {})
        outgoing[end] = outgoing.get(end, 0.0) + room
        self.room.setdefault(end, {}).setdefault(start, 0.0)

    def cut_near_the_sink(self) -> set[Place]:
        """After the flow is greatest, all from which the sink can still be reached."""
        while path := self._path():
            least = min(self.room[a][b] for a, b in path)
            for a, b in path:
                self.room[a][b] -= least
                self.room[b][a] += least
        beyond = {SINK}
        todo = deque(beyond)
        while todo:
            end = todo.popleft()
            for start in self.room[end]:
                if start not in beyond and self.room[start][end] > 0:
                    beyond.add(start)
                    todo.append(start)
        return beyond

    def _path(self) -> list[tuple[Place, Place]]:
        """The edges of a shortest way with room left, from the sink back to the source."""
        came = {SOURCE: SOURCE}
        todo = deque([SOURCE])
        while todo and SINK not in came:
            start = todo.popleft()
            for end, room in self.room[start].items():
                if room > 0 and end not in came:
                    came[end] = start
                    todo.append(end)
        path, end = [], SINK
        while end in came and end != SOURCE:
            path.append((came[end], end))
            end = came[end]
        return path
