"""A schedule typed as a grid: one row for each stage, one cell for each task.

    F0 F1 B0 W0 B1 W1
    .  F0 B0 F1 B1 W0 W1

F3 is the forward of micro-batch 3, B3 its backward, W3 its weight part (then B3 is the input part
alone); F3.1 is chunk 1, with virtual stages in loops over the stages. Dots are idle and only there
to line cells up: when a task starts follows from durations.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from triosim.errors import ConfigError
from triosim.schedules.check import check_complete
from triosim.schedules.schedule import Schedule, Task, looped

Grid = str | Sequence[str] | Sequence[Sequence[str]]

MAX_NUMBER = 100_000
_CELL = re.compile(r"([FBW])(\d{1,6})(?:\.(\d{1,6}))?", re.ASCII | re.IGNORECASE)
_IDLE = re.compile(r"[.\-_]+")


def read_grid(grid: Grid) -> Schedule:
    """The schedule that a grid says.

    Text with a line for each stage, a list of such lines, or a list of lists of cells. Raises
    `ConfigError` naming the cell that is wrong, missing, or never gets to run.
    """
    rows = tuple(_row(stage, line) for stage, line in enumerate(_lines(grid)))
    tasks = [task for row in rows for task in row]
    if not tasks:
        raise ConfigError("grid", grid, "must hold a row of cells for each stage, such as F0 B0")
    schedule = Schedule(
        name="grid",
        microbatches=1 + max(task.microbatch for task in tasks),
        rows=rows,
        routes=(looped(len(rows), 1 + max(task.chunk for task in tasks)),),
    )
    check_complete(schedule)
    _ = schedule.wiring  # refuses circles
    return schedule


def write_grid(schedule: Schedule) -> str:
    """A schedule's cells, one line for each stage; `read_grid` takes loops without pairs back."""
    return "\n".join(" ".join(task.cell for task in row) for row in schedule.rows)


def _lines(grid: object) -> list[Sequence[object]]:
    if isinstance(grid, str):
        grid = [line for line in grid.splitlines() if line.strip()]
    if not isinstance(grid, list | tuple):
        raise ConfigError("grid", grid, "must be text or a list of rows")
    for row in grid:
        if not isinstance(row, str | list | tuple):
            raise ConfigError("grid", row, "a row must be text or a list of cells")
    return [row.split() if isinstance(row, str) else row for row in grid]


def _row(stage: int, cells: Sequence[object]) -> tuple[Task, ...]:
    row = []
    for column, cell in enumerate(cells, 1):
        text = str(cell).strip()
        if not text or _IDLE.fullmatch(text):
            continue
        found = _CELL.fullmatch(text)
        numbers = [int(number or 0) for number in found.groups()[1:]] if found else []
        if found is None or max(numbers) > MAX_NUMBER:
            raise ConfigError(
                "grid",
                text,
                f"cell {column} of stage {stage} must be F, B or W and a micro-batch, as F0, B12 "
                f"or W3.1 (chunk 1), numbers up to {MAX_NUMBER:,}, or . for idle",
            )
        row.append(Task(found[1].upper(), *numbers))
    return tuple(row)
