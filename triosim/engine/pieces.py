"""Pieces of a program, written once and put in any order: composite tasks that wait for nothing."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import add
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from triosim.engine.program import MAX_TASKS, Part, Program, refuse_more
from triosim.engine.tiling import Extent, Integers

Value = TypeVar("Value")


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """Columns of some composite tasks, which are counted from the first of them.

    Names are without the label that tells one use of the piece from others; `labelled` says which
    of them end with it.
    """

    name: Sequence[str]
    labelled: Sequence[bool]
    stream: Sequence[int]
    phase: Sequence[str]
    duration_s: Sequence[float]
    parts: Sequence[tuple[Part, ...]]
    memory_task: Sequence[int]
    memory_category: Sequence[str]
    memory_bytes: Sequence[int]
    marks: Sequence[int]


def cut(program: Program, since: Extent, label: str) -> Piece | None:
    """What has been written since a point; None where that is not a piece."""
    first, end = since.tasks, f" {label}"
    parts = [program.parts.get(task) for task in range(first, len(program))]
    if None in parts or any(program.waits[first:]):
        return None
    labelled = [name.endswith(end) for name in program.name[first:]]
    names = zip(program.name[first:], labelled, strict=True)
    return Piece(
        name=[name.removesuffix(label) if own else name for name, own in names],
        labelled=labelled,
        stream=program.stream[first:],
        phase=program.phase[first:],
        duration_s=program.duration_s[first:],
        parts=[own for own in parts if own is not None],
        memory_task=[task - first for task in program.memory_task[since.changes :]],
        memory_category=program.memory_category[since.changes :],
        memory_bytes=program.memory_bytes[since.changes :],
        marks=[task - first for task in program.marks[since.marks :]],
    )


def put(
    program: Program, pieces: Sequence[Piece], order: Integers, labels: Sequence[str]
) -> Integers:
    """Append pieces, of which `order` has the numbers, with their labels; returns the first task of
    each.

    NOTE: a whole column at a time, a tenth of the time of writing each task.
    """
    tasks = _Turns([piece.stream for piece in pieces], order)
    count, firsts = len(tasks.uses), len(program) + tasks.begins
    if len(program) + count > MAX_TASKS:
        refuse_more()
    labelled = tasks.numbers(piece.labelled for piece in pieces)
    which = np.where(labelled > 0, tasks.uses, len(labels)).tolist()
    stems = tasks.values(piece.name for piece in pieces)
    program.name += map(add, stems, map([*labels, ""].__getitem__, which))
    program.stream.frombytes(tasks.numbers(piece.stream for piece in pieces).tobytes())
    program.phase += tasks.values(piece.phase for piece in pieces)
    program.duration_s.frombytes(tasks.floats(piece.duration_s for piece in pieces).tobytes())
    program.waits += [()] * count
    program.transfer += array("q", [-1]) * count
    program.bytes += array("d", [0.0]) * count
    program.sent_bytes += array("d", [0.0]) * count

    parts = tasks.values(piece.parts for piece in pieces)
    program.parts.update(zip(range(len(program) - count, len(program)), parts, strict=True))
    changes = _Turns([piece.memory_task for piece in pieces], order)
    own = firsts[changes.uses] + changes.numbers(piece.memory_task for piece in pieces)
    program.memory_task.frombytes(own.tobytes())
    program.memory_category += changes.values(piece.memory_category for piece in pieces)
    program.memory_bytes.frombytes(changes.numbers(p.memory_bytes for p in pieces).tobytes())

    if any(piece.marks for piece in pieces):
        marks = _Turns([piece.marks for piece in pieces], order)
        own = firsts[marks.uses] + marks.numbers(piece.marks for piece in pieces)
        program.marks += own.tolist()
    return firsts


class _Turns:
    """Entries of pieces' columns that are equally long, in the order in which pieces are put.

    `begins` is where each use of a piece begins, `uses` of each entry the use that it belongs to.
    """

    def __init__(self, columns: Sequence[Sequence[object]], order: Integers) -> None:
        sizes = np.array([len(column) for column in columns], dtype=np.int64)
        offsets, own = np.cumsum(sizes) - sizes, sizes[order]
        self.begins: Integers = np.cumsum(own) - own
        self.uses = np.repeat(np.arange(len(order)), own)
        self._places = np.arange(len(self.uses)) + (offsets[order] - self.begins)[self.uses]
        self._turns: list[int] = self._places.tolist()

    def numbers(self, columns: Iterable[Sequence[int]]) -> Integers:
        return np.array([*chain.from_iterable(columns)], dtype=np.int64)[self._places]

    def floats(self, columns: Iterable[Sequence[float]]) -> npt.NDArray[np.float64]:
        return np.array([*chain.from_iterable(columns)], dtype=np.float64)[self._places]

    def values(self, columns: Iterable[Sequence[Value]]) -> Iterator[Value]:
        return map([*chain.from_iterable(columns)].__getitem__, self._turns)
