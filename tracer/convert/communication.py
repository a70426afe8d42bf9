"""The communications of a step: which collective, how many bytes, in which group, how long.

`record_param_comms` says it, in the profiler file, in the kernel or in the execution trace,
depending on the version; else the name and the tensors do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tracer.convert.arguments import sized
from tracer.convert.cut import Piece
from tracer.convert.graph import Node
from tracer.convert.kineto import Row
from tracer.convert.shares import busy

HEADER = ("name", "collective", "bytes", "group", "start_us", "duration_us")
_ELEMENT_BYTES = {
    "float": 4, "int": 4, "half": 2, "bfloat16": 2, "double": 8, "long": 8, "short": 2, "byte": 1,
    "char": 1, "bool": 1, "complexfloat": 8, "complexdouble": 16,
}  # fmt: skip
_WAITS = ("wait", "init", "wait_tensor")


@dataclass(frozen=True, kw_only=True, slots=True)
class Communication:
    """One collective. `bytes` is the larger of what goes in and what comes out of this rank.

    `start_us` counts from the first row of the step. `duration_us` is the time of its kernels,
    without kernels that of the row that carried it out.
    """

    name: str
    collective: str
    bytes: int
    group: str
    start_us: float
    duration_us: float


def communications(
    pieces: Sequence[Piece], nodes: Mapping[Row, Node], origin: int
) -> list[Communication]:
    """`origin` (ns) is the start of the step. Mere waiting is left out."""
    found = []
    for piece, runs in _paired(pieces):
        facts = list(_facts(piece, nodes))
        collective = _collective(piece, facts)
        if collective in _WAITS and not piece.kernels:
            continue
        if piece.kernels:
            start = min(kernel.start for kernel in piece.kernels)
            length = busy((kernel.start, kernel.end) for kernel in piece.kernels)
        else:
            start, length = runs.row.start, runs.row.end - runs.row.start
        found.append(
            Communication(
                name=piece.name,
                collective=collective,
                bytes=_bytes([*piece.rows, *runs.rows], facts, nodes),
                group=_group(facts),
                start_us=(start - origin) / 1e3,
                duration_us=length / 1e3,
            )
        )
    return sorted(found, key=lambda one: one.start_us)


def _paired(pieces: Sequence[Piece]) -> Iterator[tuple[Piece, Piece]]:
    """Each communication with the piece that carried it out.

    gloo works on a thread of its own: the c10d call and the gloo row are one communication.
    """
    workers: dict[str, list[Piece]] = {}
    for piece in pieces:
        if piece.name.startswith("gloo:"):
            workers.setdefault(_plain(piece.name), []).append(piece)
    taken: set[Piece] = set()
    pairs = []
    for piece in pieces:
        if piece.name.startswith("gloo:"):
            continue
        waiting = workers.get(_plain(piece.name), [])
        worker = waiting.pop(0) if waiting and not piece.kernels else piece
        taken.add(worker)
        pairs.append((piece, worker))
    yield from pairs
    yield from ((p, p) for p in pieces if p.name.startswith("gloo:") and p not in taken)


def _plain(name: str) -> str:
    return re.sub(r"[_\W]|coalesced", "", name.rsplit(":", 1)[-1]).lower()


def _facts(piece: Piece, nodes: Mapping[Row, Node]) -> Iterator[Mapping[str, Any]]:
    for row in piece.rows:
        if row.collective is not None:
            yield row.collective
    for kernel in piece.kernels:
        if kernel.collective is not None:
            yield kernel.collective
    for row in piece.rows:
        if row in nodes and nodes[row].attributes:
            yield nodes[row].attributes


def _first(facts: Sequence[Mapping[str, Any]], *keys: str) -> object:
    for fact in facts:
        for key in keys:
            if fact.get(key) not in (None, ""):
                return fact[key]
    return None


def _collective(piece: Piece, facts: Sequence[Mapping[str, Any]]) -> str:
    named = _first(facts, "Collective name", "collective_name")
    if isinstance(named, str):
        return named
    return piece.name.rsplit(":", 1)[-1].strip("_")


def _group(facts: Sequence[Mapping[str, Any]]) -> str:
    ranks = _first(facts, "Process Group Ranks")
    name = _first(facts, "Process Group Name", "pg_name")
    return " ".join(str(part) for part in (name, ranks) if part is not None)


def _bytes(
    rows: Sequence[Row], facts: Sequence[Mapping[str, Any]], nodes: Mapping[Row, Node]
) -> int:
    size = _ELEMENT_BYTES.get(str(_first(facts, "dtype")).lower(), 0)
    counts = (
        _first(facts, "In msg nelems", "in_msg_nelems"),
        _first(facts, "Out msg nelems", "out_msg_nelems"),
    )
    elements = max((n for n in counts if type(n) is int), default=0)
    if size and elements:
        return size * elements
    best = 0
    for row in rows:
        node = nodes.get(row)
        if node is not None:
            for side in (node.inputs, node.outputs):
                best = max(best, sum(t.numel * t.element_bytes for t in side))
        elif best == 0:
            best = sum(t.numel * t.element_bytes for t in sized(row))
    return best
