"""A program's order and waits as arrays: what its executor and its readers both need."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
import numpy.typing as npt

from triosim.engine.program import Program

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, eq=False)
class Columns:
    """Arrays over tasks: the `stream` of each and its `place` in it, its `phase` in `phases`, its
    `transfer`, -1 for a computation, and the `first_end` of that, else the task itself.

    `order` has the tasks stream by stream, those of stream s from `first[s]` on. Task t waits for
    `waits[wait_first[t]:wait_first[t + 1]]`.
    """

    stream: Integers
    phase: Integers
    phases: list[str]
    transfer: Integers
    first_end: Integers
    place: Integers
    order: Integers
    first: Integers
    waits: Integers
    wait_first: Integers

    @classmethod
    def of(cls, program: Program) -> Columns:
        count = len(program)
        stream = np.array(program.stream, dtype=np.int64)
        order = np.argsort(stream, kind="stable")
        first = np.searchsorted(stream[order], np.arange(len(program.streams) + 1))
        place = np.empty(count, dtype=np.int64)
        place[order] = np.arange(count) - first[stream[order]]
        sizes = np.fromiter(map(len, program.waits), dtype=np.int64, count=count)
        wait_first = np.concatenate(([0], np.cumsum(sizes)))
        flat = chain.from_iterable(program.waits)
        waits = np.fromiter(flat, dtype=np.int64, count=int(wait_first[-1]))
        phases = list(dict.fromkeys(program.phase))
        numbers = {phase: number for number, phase in enumerate(phases)}
        phase = np.fromiter(map(numbers.__getitem__, program.phase), dtype=np.int64, count=count)
        transfer = np.array(program.transfer, dtype=np.int64)
        moves = np.flatnonzero(transfer >= 0)
        ends = np.fromiter((own.start for own in program.ends), dtype=np.int64)
        first_end = np.arange(count)
        first_end[moves] = ends[transfer[moves]]
        return cls(
            stream=stream,
            phase=phase,
            phases=phases,
            transfer=transfer,
            first_end=first_end,
            place=place,
            order=order,
            first=first,
            waits=waits,
            wait_first=wait_first,
        )

    @cached_property
    def waiter(self) -> Integers:
        """For each entry of `waits`, the task that waits."""
        return np.repeat(np.arange(len(self.stream)), np.diff(self.wait_first))

    @cached_property
    def previous(self) -> Integers:
        """For each task the one before it in its stream, -1 for the first."""
        before = np.full(len(self.stream), -1, dtype=np.int64)
        same = self.stream[self.order[1:]] == self.stream[self.order[:-1]]
        before[self.order[1:][same]] = self.order[:-1][same]
        return before

    def are(self, *phases: str) -> Flags:
        """Which tasks are of one of these phases."""
        chosen = np.array([phase in phases for phase in self.phases], dtype=bool)
        return chosen[self.phase] if len(chosen) else np.zeros(0, dtype=bool)

    def tasks(self, stream: int) -> Integers:
        """A stream's tasks in order."""
        return self.order[self.first[stream] : self.first[stream + 1]]

    def dependents(self) -> tuple[list[int], list[int]]:
        """Those that wait for task t are `tasks[starts[t]:starts[t + 1]]`."""
        tasks = self.waiter[np.argsort(self.waits, kind="stable")]
        starts = np.cumsum(np.bincount(self.waits, minlength=len(self.stream)))
        return tasks.tolist(), [0, *starts.tolist()]
