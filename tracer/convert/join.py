"""Which node of the execution trace each row of the profiler file is.

By the id of the record function where both files have it (torch from about 2.3) and the names
agree. Else by the sequence of names on each thread, which may begin elsewhere in the iteration.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tracer.convert.graph import Graph, Node
from tracer.convert.kineto import Row
from tracer.convert.names import is_step, same_name
from tracer.convert.nesting import in_order

BY_ID = "record function id"
BY_ORDER = "order of names"
BY_ROTATION = "order of names, rotated"
BY_COUNT = "count of names"


@dataclass(frozen=True, kw_only=True, slots=True)
class Join:
    """The node of each row, and how it was found; `rows` counts those that could have one."""

    nodes: Mapping[Row, Node]
    rows: int
    how: str

    @property
    def share(self) -> float:
        return len(self.nodes) / self.rows if self.rows else 0.0


def join(rows: Sequence[Row], graph: Graph) -> Join:
    """The better of the two ways for the rows of one step."""
    candidates = [row for row in rows if not is_step(row)]
    by_id = _by_id(candidates, graph)
    if by_id.share >= 0.5:
        return by_id
    by_name = _by_names(candidates, graph)
    return by_name if by_name.share > by_id.share else by_id


def _by_id(rows: Sequence[Row], graph: Graph) -> Join:
    nodes: dict[int, Node] = {}
    for node in graph.nodes:
        if node.rf_id:
            nodes.setdefault(node.rf_id, node)
    found = {}
    for row in rows:
        other = nodes.get(row.rf_id) if row.rf_id else None
        if other is not None and same_name(row.name, other.name):
            found[row] = other
    return Join(nodes=found, rows=len(rows), how=BY_ID)


def _by_names(rows: Sequence[Row], graph: Graph) -> Join:
    """Threads are matched by their sequences, longest first."""
    theirs: dict[int, list[Node]] = defaultdict(list)
    for node in graph.nodes:
        if not node.is_special:
            theirs[node.thread].append(node)
    grouped: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        grouped[row.thread].append(row)
    ours = {thread: in_order(group) for thread, group in grouped.items()}
    found: dict[Row, Node] = {}
    how = BY_ORDER
    left = dict(ours)
    for nodes in sorted(theirs.values(), key=len, reverse=True):
        best: tuple[int, int, list[Node]] | None = None
        for thread, group in left.items():
            shift = _rotation(group, nodes)
            if shift is not None and (best is None or shift == 0):
                best = thread, shift, nodes[shift:] + nodes[:shift]
        if best is not None:
            found.update(zip(left.pop(best[0]), best[2], strict=True))
            how = BY_ROTATION if best[1] else how
    if len(found) < len(rows) and left:
        counted = _by_counts([row for group in left.values() for row in group], found, graph)
        how = BY_COUNT if counted else how
        found.update(counted)
    return Join(nodes=found, rows=len(rows), how=how)


def _rotation(rows: Sequence[Row], nodes: Sequence[Node]) -> int | None:
    """Where in `nodes` the sequence of `rows` begins; None where it is another sequence."""
    if len(rows) != len(nodes):
        return None
    ours = "\n".join(row.name.replace("\n", " ") for row in rows) + "\n"
    theirs = "\n".join(node.name.replace("\n", " ") for node in nodes) + "\n"
    at = ("\n" + theirs + theirs).find("\n" + ours)
    return None if at < 0 else (theirs + theirs)[:at].count("\n")


def _by_counts(rows: Sequence[Row], found: Mapping[Row, Node], graph: Graph) -> dict[Row, Node]:
    """Names that stand equally often in what is left, matched in their order."""
    taken = set(found.values())
    theirs: dict[str, list[Node]] = defaultdict(list)
    for node in graph.nodes:
        if node not in taken and not node.is_special:
            theirs[node.name].append(node)
    ours: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        ours[row.name].append(row)
    return {
        row: node
        for name, group in ours.items()
        if len(group) == len(theirs[name])
        for row, node in zip(group, theirs[name], strict=True)
    }
