"""From the operators of one step to a `triosim.trace.Trace`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tracer.convert.arguments import Arguments, TensorTable, arguments
from tracer.convert.cut import Cut, Piece
from tracer.convert.graph import Graph, Node
from tracer.convert.kineto import Row
from tracer.convert.partners import is_split
from tracer.convert.shares import Piece as Interval
from tracer.convert.shares import shares, spans, without
from triosim.trace import Operator


@dataclass(frozen=True, kw_only=True, slots=True)
class Times:
    """ns per operator: its part of the union, and from its first start to its last end."""

    share: Sequence[int]
    span: Sequence[int]
    ran: Sequence[bool]


def kernel_times(cut: Cut) -> Times:
    """An operator's time is that of its kernels."""
    intervals = [
        (kernel.start, kernel.end, i)
        for i, piece in enumerate(cut.operators)
        for kernel in piece.kernels
    ]
    return _times(intervals, cut, [bool(piece.kernels) for piece in cut.operators])


def cpu_times(cut: Cut) -> Times:
    """An operator's time is that of its row, without the communication inside it."""
    holes: dict[Piece, list[tuple[int, int]]] = {}
    for piece in cut.communications:
        owner = cut.owner.get(piece.row.parent) if piece.row.parent else None
        if owner is not None:
            holes.setdefault(owner, []).append((piece.row.start, piece.row.end))
    intervals = [
        (start, end, i)
        for i, piece in enumerate(cut.operators)
        for start, end in without(piece.row.start, piece.row.end, holes.get(piece, []))
    ]
    return _times(intervals, cut, [piece.row.end > piece.row.start for piece in cut.operators])


def _times(intervals: Sequence[Interval], cut: Cut, ran: Sequence[bool]) -> Times:
    count = len(cut.operators)
    return Times(share=shares(intervals, count), span=spans(intervals, count), ran=ran)


def build(
    cut: Cut, times: Times, nodes: Mapping[Row, Node], graph: Graph | None, tp_ops: Sequence[str]
) -> tuple[list[Operator], int]:
    """The operators that took time, and how many tensors needed an id of their own.

    The id is the position among all operators that were found, also those without time, as in the
    original converter.
    """
    used = [t.id for n in (graph.nodes if graph else ()) for t in (*n.inputs, *n.outputs)]
    storages = [t.storage for n in (graph.nodes if graph else ()) for t in (*n.inputs, *n.outputs)]
    table = TensorTable(used + storages)
    operators = [
        _operator(i, piece, times, arguments(piece, nodes), table, tp_ops)
        for i, piece in enumerate(cut.operators)
        if times.ran[i]
    ]
    return operators, table.renamed


def _operator(
    i: int,
    piece: Piece,
    times: Times,
    known: Arguments,
    table: TensorTable,
    tp_ops: Sequence[str],
) -> Operator:
    names = known.names or ("",) * len(known.inputs)
    return Operator(
        id=i + 1,
        name=piece.name,
        phase=piece.stage,
        time_s=times.share[i] / 1e3 * 1e-6,  # as the reader computes it
        busy_time_s=times.span[i] / 1e3 * 1e-6,
        inputs=tuple(
            table.tensor(ref, name or "input", synthetic=known.synthetic)
            for ref, name in zip(known.inputs, names, strict=True)
        ),
        outputs=tuple(
            table.tensor(ref, "output", synthetic=known.synthetic) for ref in known.outputs
        ),
        tensor_parallel=is_split(piece, tp_ops),
        module=piece.module,
        bytes=float(known.bytes) if known.inputs or known.outputs else None,
        dtype=known.dtype,
    )
