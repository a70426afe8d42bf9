"""Stretches of a program that are written once and repeated."""

from __future__ import annotations

from typing import NamedTuple

from triosim.engine.program import MAX_TASKS, Program, refuse_more


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
    program.name += program.name[since.tasks :] * times
    program.phase += program.phase[since.tasks :] * times
    program.duration_s += program.duration_s[since.tasks :] * times
    program.bytes += program.bytes[since.tasks :] * times
    program.sent_bytes += program.sent_bytes[since.tasks :] * times
    program.loads += program.loads[since.transfers :] * times
    program.purpose += program.purpose[since.transfers :] * times
    program.memory_category += program.memory_category[since.changes :] * times
    program.memory_bytes += program.memory_bytes[since.changes :] * times
    waits, moves = program.waits[since.tasks :], program.transfer[since.tasks :]
    ends, changed = program.ends[since.transfers :], program.memory_task[since.changes :]
    own, marks = range(since.tasks, now.tasks), program.marks[since.marks :]
    composed = [(task, program.parts[task]) for task in own if task in program.parts]
    for k in range(1, times + 1):
        later, further = k * length, k * transfers
        # NOTE: lists inside take a third less time than generators
        program.waits += [tuple([wait + later for wait in each]) for each in waits]
        program.transfer += [t + further if t >= 0 else t for t in moves]
        program.ends += [[end + later for end in each] for each in ends]
        program.memory_task += [task + later for task in changed]
        program.marks += [task + later for task in marks]
        program.parts.update([(task + later, parts) for task, parts in composed])
    return length
