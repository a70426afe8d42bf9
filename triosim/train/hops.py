"""What pipeline stages hand to each other: activations onwards, their gradients back."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from triosim.engine.program import Program
from triosim.schedules import Place, Schedule
from triosim.schedules.columns import Row
from triosim.train.network import Wires
from triosim.train.stage import Handle, Stage

_WHAT = {"F": "activations", "B": "gradients"}
NONE = -1
Integers = npt.NDArray[np.int64]


class Cells:
    """One stage's forwards ("F") and backwards ("B") as written, by chunk and micro-batch.

    `first` and `last` are their first and last tasks on the compute stream of the stage's first
    class, `NONE` before they are written; other classes' tasks follow.
    """

    def __init__(self, chunks: int, microbatches: int) -> None:
        self.first, self.last = (
            {kind: np.full((chunks, microbatches), NONE, dtype=np.int64) for kind in _WHAT}
            for _ in range(2)
        )

    def put(self, kind: str, chunk: int, microbatch: int, first: Handle, last: Handle) -> None:
        self.first[kind][chunk, microbatch] = first[0]
        self.last[kind][chunk, microbatch] = last[0]

    def copy(self, row: Row, place: int, first: Integers, last: Integers) -> None:
        """Cells of a row from a place on, of whose first and last tasks each."""
        for kind, (places, chunk, microbatch) in (("F", row.forwards), ("B", row.backwards)):
            own = slice(*np.searchsorted(places, (place, place + len(first))))
            at = (chunk[own], microbatch[own])
            self.first[kind][at] = first[places[own] - place]
            self.last[kind][at] = last[places[own] - place]

    def repeat(
        self, kind: str, chunk: int, microbatch: int, *, later: int, tasks: int, times: int
    ) -> None:
        """A cell comes so many times more, each time so many micro-batches and tasks later."""
        more = np.arange(1, times + 1)
        for written in (self.first[kind], self.last[kind]):
            if written[chunk, microbatch] != NONE:
                again = written[chunk, microbatch] + more * tasks
                written[chunk, microbatch + more * later] = again


class _Hops(NamedTuple):
    """Micro-batches on their way: what was computed last of each, and what waits for it."""

    kind: str
    target: int
    microbatch: Integers
    source: Integers
    cell: Integers


def connect(
    program: Program,
    stages: Sequence[Stage],
    schedule: Schedule,
    wires: Wires,
    cells: Sequence[Cells],
    size_bytes: float,
    *,
    back: bool,
) -> None:
    """Let every pass wait for the micro-batch from the stage before it, or behind it.

    A stage sends all that it has for another one in the order of its row. Without `back` nothing
    but activations moves.
    """
    for stage in stages:
        for hops in _sends(schedule, stage.number, cells, back=back):
            if hops.target == stage.number:
                for i in range(len(stage.classes)):
                    program.wait_each((hops.cell + i).tolist(), (hops.source + i).tolist())
            else:
                _hand_on(program, stage, stages[hops.target], wires, hops, size_bytes)


def _sends(
    schedule: Schedule, stage: int, cells: Sequence[Cells], *, back: bool
) -> Sequence[_Hops]:
    """What a stage has to hand on, in the order of its row, by what it is and for which stage."""
    row, routes = schedule.columns[stage], schedule.routes
    found: list[tuple[int, _Hops]] = []
    for kind, sent in (("F", row.forwards), ("B", row.backwards)):
        if kind == "B" and not back:
            break
        places, chunk, microbatch = sent
        following = np.array([_next(route, stage, schedule.chunks, kind) for route in routes])
        route = microbatch * len(routes) // schedule.microbatches
        targets, chunks = following[route, chunk].T
        for target in np.unique(targets[targets != NONE]).tolist():
            own = np.flatnonzero(targets == target)
            hops = _Hops(
                kind,
                target,
                microbatch[own],
                cells[stage].last[kind][chunk[own], microbatch[own]],
                cells[target].first[kind][chunks[own], microbatch[own]],
            )
            found.append((int(places[own[0]]), hops))
    return [hops for _, hops in sorted(found, key=lambda each: each[0])]


def _next(route: Sequence[Place], stage: int, chunks: int, kind: str) -> list[Place]:
    """Where micro-batches on a route go from a stage's chunks: a place for each."""
    after = dict(pairwise(route if kind == "F" else route[::-1]))
    return [after.get(Place(stage, chunk), Place(NONE, NONE)) for chunk in range(chunks)]


def _hand_on(
    program: Program, one: Stage, other: Stage, wires: Wires, hops: _Hops, size_bytes: float
) -> None:
    what = _WHAT[hops.kind]
    ends = [(c, f"send {what} to {other.number}", "send") for c in one.classes]
    ends += [(c, f"receive {what} from {one.number}", "recv") for c in other.classes]
    way = f"from stage {one.number} to {other.number}"
    sent = [list(zip((hops.source + i).tolist(), strict=True)) for i in range(len(one.classes))]
    received: list[list[tuple[int, ...]]] = [[()] * len(hops.source)] * len(other.classes)
    tasks = program.communicate_each(
        ends,
        [f"{what} {microbatch} {way}" for microbatch in hops.microbatch.tolist()],
        what,
        size_bytes,
        wires.handover(one.number, other.number, size_bytes),
        [*sent, *received],
    )
    for i in range(len(other.classes)):
        program.wait_each((hops.cell + i).tolist(), tasks[len(one.classes) + i :: len(ends)])
