"""A stage's row of a schedule, cut into stretches that repeat, so that each is written once.

With one stage it is a forward and a backward for every micro-batch, and what is gathered for one
pass waits for those before it. Of a pipeline's rows cells are copied (`triosim.train.copies`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

from triosim.schedules import Task

LEAST = 5  # periods: fewer are not worth it
PERIODS = (1, 2, 3, 4, 6)  # lengths that are looked for


@dataclass(frozen=True, slots=True)
class Run:
    """`times` periods of so many tasks each, from `start` on; in each the micro-batches are
    `later` ones by the same number."""

    start: int
    period: int
    times: int
    later: int


def runs(row: Sequence[Task], split: Set[tuple[int, int]] = frozenset()) -> Iterator[Run]:
    """The whole row in order; what does not repeat is one run.

    `split` are the backwards, by chunk and micro-batch, whose weight parts come later.
    """
    whole = [task.kind == "B" and (task.chunk, task.microbatch) not in split for task in row]
    alone = start = 0
    while start < len(row):
        for period in PERIODS:
            times, later = _times(row, whole, start, period)
            if times >= LEAST:
                if alone < start:
                    yield Run(alone, start - alone, 1, 0)
                yield Run(start, period, times, later)
                alone = start = start + period * times
                break
        else:
            start += 1
    if alone < len(row):
        yield Run(alone, len(row) - alone, 1, 0)


def _times(row: Sequence[Task], whole: Sequence[bool], start: int, period: int) -> tuple[int, int]:
    """How often a period comes, and by how much its micro-batches grow."""
    if start + period * LEAST > len(row):
        return 1, 0
    later = row[start + period].microbatch - row[start].microbatch
    end = start + period
    while end < len(row) and _alike(row[end - period], row[end], later):
        if whole[end - period] != whole[end]:
            break
        end += 1
    return (end - start) // period, later


def _alike(one: Task, other: Task, later: int) -> bool:
    """An overlapped pair, whose name has two micro-batches, counts as unlike any other."""
    return (
        one.kind == other.kind != "F&B"
        and one.chunk == other.chunk
        and other.microbatch - one.microbatch == later
    )
