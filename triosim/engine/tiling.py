"""Stretches of a program that are written once and repeated."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from triosim.engine.program import MAX_TASKS, Program, refuse_more

Integers = npt.NDArray[np.int64]


class Extent(NamedTuple):
    """How much of a program has been written."""

    tasks: int
    transfers: int
    changes: int
    marks: int


def extent(program: Program) -> Extent:
    return Extent(len(program), len(program.loads), len(program.memory_task), len(program.marks))


def repeats(program: Program, before: Extent, since: Extent) -> bool:
    """Whether what was written since one point is what was written between another one and it.

    Everything is alike but names, and waits are for tasks that are as much later.
    """
    return _relative(program, before, since) == _relative(program, since, extent(program))


def _relative(program: Program, begin: Extent, end: Extent) -> tuple[list[object], ...]:
    """What was written from one point to another, counted from the first."""
    first = begin.tasks
    tasks = slice(first, end.tasks)
    transfers = slice(begin.transfers, end.transfers)
    changes = slice(begin.changes, end.changes)
    return (
        list(program.stream[tasks]),
        list(program.phase[tasks]),
        list(program.duration_s[tasks]),
        list(program.bytes[tasks]),
        list(program.sent_bytes[tasks]),
        [tuple([wait - first for wait in own]) for own in program.waits[tasks]],
        [t - begin.transfers if t >= 0 else None for t in program.transfer[tasks]],
        list(map(id, program.loads[transfers])),
        list(program.purpose[transfers]),
        [task - first for task in program.memory_task[changes]],
        list(program.memory_category[changes]),
        list(program.memory_bytes[changes]),
        [task - first for task in program.marks[begin.marks : end.marks]],
        list(map(program.parts.get, range(first, end.tasks))),
    )


def repeat(program: Program, since: Extent, times: int) -> int:
    """Append what was written since a point so many times more; returns its number of tasks."""
    now = extent(program)
    length, transfers = now.tasks - since.tasks, now.transfers - since.transfers
    if now.tasks + length * times >= MAX_TASKS:
        refuse_more()
    program.stream += program.stream[since.tasks :] * times
    program.duration_s += program.duration_s[since.tasks :] * times
    program.bytes += program.bytes[since.tasks :] * times
    program.sent_bytes += program.sent_bytes[since.tasks :] * times
    program.name += program.name[since.tasks :] * times
    program.phase += program.phase[since.tasks :] * times
    program.loads += program.loads[since.transfers :] * times
    program.purpose += program.purpose[since.transfers :] * times
    program.memory_category += program.memory_category[since.changes :] * times
    program.memory_bytes += program.memory_bytes[since.changes :] * times
    moves = np.array(program.transfer[since.tasks :], dtype=np.int64)
    further = np.where(moves >= 0, transfers, 0)
    program.transfer.frombytes(_each(moves, further, times).tobytes())
    changed = np.array(program.memory_task[since.changes :], dtype=np.int64)
    program.memory_task.frombytes(_each(changed, length, times).tobytes())
    marks = np.array(program.marks[since.marks :], dtype=np.int64)
    program.marks += _each(marks, length, times).tolist()
    repeat_ranges(program.ends, since.transfers, length, times)
    program.waits += [()] * (length * times)
    for task in range(since.tasks, now.tasks):
        later = range(task + length, task + length * (times + 1), length)
        waits = program.waits[task]
        if waits:
            # NOTE: what a task waits for in all repetitions, a sixth of the time of one by one
            again = (range(w + length, w + length * (times + 1), length) for w in waits)
            program.waits[later.start :: length] = zip(*again, strict=True)
        if task in program.parts:
            program.parts.update(dict.fromkeys(later, program.parts[task]))
    return length


def repeat_ranges(ranges: list[range], since: int, length: int, times: int) -> None:
    """Append ranges of tasks, those from a place on, as often, each time so many tasks later."""
    own, first = ranges[since:], len(ranges)
    ranges += own * times
    for place, each in enumerate(own, first):
        starts = range(each.start + length, each.start + length * (times + 1), length)
        stops = range(each.stop + length, each.stop + length * (times + 1), length)
        ranges[place :: len(own)] = map(range, starts, stops)


def _each(values: Integers, later: Integers | int, times: int) -> Integers:
    """Values in each repetition, every time so much later."""
    each: Integers = (values + np.arange(1, times + 1)[:, None] * later).ravel()
    return each
