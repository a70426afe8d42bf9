"""Every micro-batch passes every virtual stage exactly once each way, forward first."""

from __future__ import annotations

from collections.abc import Iterator

from triosim.errors import ConfigError
from triosim.schedules.schedule import Schedule, Task

Key = tuple[str, int, int]  # kind, chunk, micro-batch


def check_complete(schedule: Schedule) -> None:
    """Raise `ConfigError` naming the first cell that is missing, twice there, or too early.

    What a row cannot show, tasks of several stages that wait for each other, is found by
    `Schedule.wiring`.
    """
    seen = [_read_row(stage, row) for stage, row in enumerate(schedule.rows)]
    for microbatch in range(schedule.microbatches):
        for stage, chunk in schedule.route(microbatch):
            for kind in "FB":
                if (kind, chunk, microbatch) not in seen[stage]:
                    cell = Task(kind, microbatch, chunk).cell
                    _refuse(cell, f"missing on stage {stage}; every stage runs every "
                                "micro-batch forward and backward once")  # fmt: skip


def _read_row(stage: int, row: tuple[Task, ...]) -> set[Key]:
    seen: set[Key] = set()
    for task in row:
        for kind, chunk, microbatch in _parts(task):
            cell = Task(kind, microbatch, chunk).cell
            if (kind, chunk, microbatch) in seen:
                _refuse(cell, f"stands twice on stage {stage}; once is right")
            before = {"B": "F", "W": "B"}.get(kind)
            if before is not None and (before, chunk, microbatch) not in seen:
                needed = Task(before, microbatch, chunk).cell
                _refuse(cell, f"on stage {stage} {needed} must stand before it")
            seen.add((kind, chunk, microbatch))
    return seen


def _parts(task: Task) -> Iterator[Key]:
    yield task.kind[0], task.chunk, task.microbatch
    if task.kind == "F&B":
        yield "B", task.backward_chunk, task.backward_microbatch


def _refuse(cell: str, problem: str) -> None:
    raise ConfigError("grid", cell, problem)
