"""Which forward operator each backward operator belongs to, and what tensor parallelism splits.

Autograd numbers forward rows and repeats the number in backward: of the forward rows with that
number, on the thread that backward names, the last one before it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from tracer.convert.cut import Cut, Piece
from tracer.convert.graph import Node
from tracer.convert.kineto import Row
from tracer.convert.names import is_backward

# Prefixes of the forward operators that tensor parallelism splits: convolutions, linear layers and
# other matrix products, embeddings.
TP_OPS = (
    "aten::conv", "aten::linear", "aten::embedding", "aten::matmul", "aten::mm", "aten::addmm",
    "aten::bmm", "aten::baddbmm",
)  # fmt: skip


def find_partners(rows: Sequence[Row], cut: Cut, nodes: Mapping[Row, Node]) -> None:
    """Set the partner and the forward row of each backward operator of `cut`."""
    forward: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        if row.sequence >= 0 and not is_backward(row.name) and row.forward_thread == 0:
            forward[row.sequence].append(row)
    for piece in cut.operators:
        if piece.stage == "backward":
            own = next((row for row in piece.rows if _starts(row)), None)
            numbered = own or _around(piece.row)
            piece.forward = _forward_row(numbered, forward, nodes) if numbered else None
            owner = cut.owner.get(piece.forward) if own and piece.forward else None
            piece.partner = owner if owner is not piece else None


def _starts(row: Row) -> bool:
    return row.sequence >= 0 and is_backward(row.name)


def _around(row: Row) -> Row | None:
    """What torch.compile makes of backward runs inside one function of autograd."""
    above = row.parent
    while above is not None and not _starts(above):
        above = above.parent
    return above


def _forward_row(
    row: Row, forward: Mapping[int, Sequence[Row]], nodes: Mapping[Row, Node]
) -> Row | None:
    """Threads have other numbers here than in the file's rows; the execution trace knows them."""
    before = [
        other
        for other in forward.get(row.sequence, ())
        if other.start < row.start
        and (other not in nodes or nodes[other].thread == row.forward_thread)
    ]
    return max(before, key=lambda other: (other.rf_id, other.start, other.index), default=None)


def is_split(piece: Piece, tp_ops: Sequence[str]) -> bool:
    """Whether tensor parallelism splits an operator: by its name, or by its partner's."""
    prefixes = tuple(tp_ops)
    if piece.stage == "optimizer":
        return False
    return piece.name.startswith(prefixes) or (
        piece.partner is not None and piece.partner.name.startswith(prefixes)
    )
