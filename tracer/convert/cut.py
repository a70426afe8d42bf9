"""Cut the rows of one step into operators, and say to which stage each belongs.

An operator is the outermost row below annotations, one evaluate_function of autograd, or one child
of Optimizer.step; everything that runs inside it belongs to it. Communication is cut out wherever
it stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tracer.convert.graph import Node
from tracer.convert.kineto import Kernel, Row
from tracer.convert.names import (
    OPTIMIZER_STEP,
    is_annotation,
    is_backward,
    is_communication,
    is_communication_kernel,
    is_evaluation,
    is_optimizer,
    is_step,
)


@dataclass(kw_only=True, eq=False, slots=True)
class Piece:
    """An operator, or a communication, with what runs inside it."""

    row: Row
    stage: str
    rows: list[Row] = field(default_factory=list)
    kernels: list[Kernel] = field(default_factory=list)
    partner: Piece | None = None  # of a backward operator: its forward operator
    forward: Row | None = None  # the row that autograd numbered as it, or as what is around it
    module: str = ""  # path; "": none, or not known

    @property
    def name(self) -> str:
        return self.row.name


@dataclass(kw_only=True)
class Cut:
    """One step: operators in the order of their starts, communications likewise.

    `left` holds the kernels that belong to neither, with the reason in each.
    """

    operators: list[Piece] = field(default_factory=list)
    communications: list[Piece] = field(default_factory=list)
    left: list[Kernel] = field(default_factory=list)
    owner: dict[Row, Piece] = field(default_factory=dict)


def cut(rows: Sequence[Row], kernels: Sequence[Kernel], nodes: Mapping[Row, Node]) -> Cut:
    """`rows` with parents before their children on each thread."""
    result = Cut()
    stages: dict[Row, str] = {}
    open_rows = _reentrant(rows)
    for row in rows:
        above = stages.get(row.parent, "") if row.parent else ""
        stages[row] = above or _stage(row, nodes)
        owner = result.owner.get(row.parent) if row.parent else None
        if is_communication(row.name) and (owner is None or owner.stage != "communication"):
            owner = Piece(row=row, stage="communication")
            result.communications.append(owner)
        elif owner is None and row not in open_rows and not is_annotation(row):
            owner = Piece(row=row, stage=stages[row] or "forward")
            result.operators.append(owner)
        if owner is not None:
            owner.rows.append(row)
            result.owner[row] = owner
    _hand_out(kernels, result, stages)
    result.operators.sort(key=lambda piece: (piece.row.start, piece.row.order))
    result.communications.sort(key=lambda piece: (piece.row.start, piece.row.order))
    _between(result.operators, rows)
    return result


def _stage(row: Row, nodes: Mapping[Row, Node]) -> str:
    """ "" where the row alone does not tell; then it is the forward pass, or what is around it."""
    if is_optimizer(row.name):
        return "optimizer"
    node = nodes.get(row)
    return "backward" if is_backward(row.name) or (node and node.scope == 1) else ""


def _reentrant(rows: Sequence[Row]) -> set[Row]:
    """Rows inside which autograd runs again (checkpointing): they wrap operators."""
    found: set[Row] = set()
    for row in rows:
        if is_evaluation(row.name):
            above = row.parent
            while above is not None and above not in found:
                found.add(above)
                above = above.parent
    return found


def _hand_out(kernels: Sequence[Kernel], result: Cut, stages: Mapping[Row, str]) -> None:
    """Give each kernel to its operator.

    What an annotation launches itself (a CUDA graph) becomes an operator of that name.
    """
    for kernel in kernels:
        if kernel.row is None:
            result.left.append(kernel)
            continue
        owner = result.owner.get(kernel.row)
        if is_communication_kernel(kernel.name) and (
            owner is None or owner.stage != "communication"
        ):
            owner = Piece(row=kernel.row, stage="communication")
            result.communications.append(owner)
        elif owner is None:
            if is_step(kernel.row):
                kernel.reason = "launched outside any operator"
                result.left.append(kernel)
                continue
            owner = Piece(row=kernel.row, stage=stages.get(kernel.row) or "forward")
            result.owner[kernel.row] = owner
            result.operators.append(owner)
        owner.kernels.append(kernel)


def _between(operators: Sequence[Piece], rows: Sequence[Row]) -> None:
    """What runs after the last backward operator and before the end of Optimizer.step.

    Gradient clipping and unscaling belong to the optimizer; DDP's copies out of its buckets still
    belong to backward.
    """
    end = max((row.end for row in rows if row.name.startswith(OPTIMIZER_STEP)), default=None)
    last = max((i for i, op in enumerate(operators) if op.stage == "backward"), default=None)
    if end is None or last is None:
        return
    reducer = max((i for i, op in enumerate(operators) if "reducer::" in op.name), default=last)
    for i, op in enumerate(operators[last + 1 :], last + 1):
        if op.stage == "forward" and op.row.start < end:
            op.stage = "backward" if i <= reducer else "optimizer"
