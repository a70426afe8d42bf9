"""Which module each operator belongs to, where the collector put ranges around the modules.

A forward operator belongs to the innermost range around it on its thread, a backward operator to
the module of its forward operator. What is computed again in backward has ranges of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from tracer.convert.cut import Piece
from tracer.convert.kineto import MODULE_RANGE, Row


def find_modules(operators: Sequence[Piece], ranges: Sequence[Row]) -> None:
    """Set the module of each operator; `ranges` in any order, partners and forward rows are set."""
    if not ranges:
        return
    around = _innermost(ranges, {row for op in operators for row in (op.row, op.forward) if row})
    for piece in operators:
        if piece.stage != "optimizer":
            own = around.get((piece.partner or piece).row, "")
            piece.module = own or (around.get(piece.forward, "") if piece.forward else "")


def _innermost(ranges: Sequence[Row], rows: Iterable[Row]) -> dict[Row, str]:
    """The path of the range that each row starts in, where there is one."""
    by_thread: dict[int, list[Row]] = defaultdict(list)
    for row in (*ranges, *rows):
        by_thread[row.thread].append(row)
    around: dict[Row, str] = {}
    names = {row: row.name.removeprefix(MODULE_RANGE) for row in ranges}
    for ordered in by_thread.values():
        ordered.sort(key=lambda row: (row.start, -row.end))
        stack: list[Row] = []
        for row in ordered:
            while stack and stack[-1].end <= row.start:
                stack.pop()
            if row in names:
                stack.append(row)
            elif stack:
                around[row] = names[stack[-1]]
    return around
