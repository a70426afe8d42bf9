"""What pipeline stages hand to each other: activations onwards, their gradients back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from triosim.engine.program import Program
from triosim.schedules import Place, Schedule
from triosim.train.network import Wires
from triosim.train.stage import Handle, Stage

_WHAT = {"F": "activations", "B": "gradients"}


class Cell(NamedTuple):
    """One task of the schedule as written: its first and last tasks on the compute stream."""

    first: Handle
    last: Handle

    def moved(self, tasks: int) -> Cell:
        """The same so many tasks later."""
        first = tuple([task + tasks for task in self.first])
        same = self.last is self.first
        return Cell(first, first if same else tuple([task + tasks for task in self.last]))


Cells = Sequence[Mapping[tuple[str, int, int], Cell]]
"""Of each stage, by kind, chunk and micro-batch."""


class _Hop(NamedTuple):
    """One micro-batch on its way: what was computed last, and what waits for it."""

    microbatch: int
    source: Handle
    cell: Handle


def connect(
    program: Program,
    stages: Sequence[Stage],
    schedule: Schedule,
    wires: Wires,
    cells: Cells,
    size_bytes: float,
    *,
    back: bool,
) -> None:
    """Let every pass wait for the micro-batch from the stage before it, or behind it.

    A stage sends all that it has for another one in the order of its row. Without `back` nothing
    but activations moves.
    """
    targets: dict[tuple[int, Place, str], Place | None] = {}
    for stage in stages:
        hops: dict[tuple[str, int], list[_Hop]] = {}
        for kind, place, microbatch in _sends(schedule, stage.number, back=back):
            route = schedule.route(microbatch)
            way = (id(route), place, kind)
            if way not in targets:
                targets[way] = _next(route, place, kind)
            target = targets[way]
            if target is not None:
                source = cells[place.stage][kind, place.chunk, microbatch].last
                cell = cells[target.stage][kind, target.chunk, microbatch].first
                hop = _Hop(microbatch, source, cell)
                hops.setdefault((kind, target.stage), []).append(hop)
        for (kind, number), own in hops.items():
            if number == stage.number:
                for hop in own:
                    stage.wait(hop.cell, hop.source)
            else:
                _hand_on(program, stage, stages[number], wires, kind, own, size_bytes)


def _next(route: Sequence[Place], place: Place, kind: str) -> Place | None:
    """Where a micro-batch goes from a place."""
    there = route.index(place) + (1 if kind == "F" else -1)
    return route[there] if 0 <= there < len(route) else None


def _sends(schedule: Schedule, stage: int, *, back: bool) -> Iterator[tuple[str, Place, int]]:
    """What a stage has to hand on, in the order of its row."""
    for task in schedule.rows[stage]:
        if task.kind in ("F", "F&B"):
            yield "F", Place(stage, task.chunk), task.microbatch
        if task.kind == "B" and back:
            yield "B", Place(stage, task.chunk), task.microbatch
        elif task.kind == "F&B" and back:
            yield "B", Place(stage, task.backward_chunk), task.backward_microbatch


def _hand_on(
    program: Program,
    one: Stage,
    other: Stage,
    wires: Wires,
    kind: str,
    hops: Sequence[_Hop],
    size_bytes: float,
) -> None:
    what = _WHAT[kind]
    ends = [(c, f"send {what} to {other.number}", "send") for c in one.classes]
    ends += [(c, f"receive {what} from {one.number}", "recv") for c in other.classes]
    way = f"from stage {one.number} to {other.number}"
    received: list[tuple[int, ...]] = [()] * len(other.classes)
    sent = program.communicate_each(
        ends,
        [f"{what} {hop.microbatch} {way}" for hop in hops],
        what,
        size_bytes,
        wires.handover(one.number, other.number, size_bytes),
        [[*((task,) for task in hop.source), *received] for hop in hops],
    )
    for hop, tasks in zip(hops, sent, strict=True):
        other.wait(hop.cell, tuple(tasks[len(one.classes) :]))
