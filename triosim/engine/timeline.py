"""What happened: one row per task, in columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from triosim.engine.program import Program

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """Starts and ends of a program's tasks, in seconds.

    `log` is the order of events: t for the start of task t, ~t for its end. `carried_bytes` and
    `peak_bytes_per_s` are per link; `events` counts the engine's steps.
    """

    program: Program
    start_s: Floats
    end_s: Floats
    log: Integers
    carried_bytes: Floats
    peak_bytes_per_s: Floats
    events: int

    @property
    def total_s(self) -> float:
        return float(self.end_s.max(initial=0.0))

    @cached_property
    def predecessors(self) -> list[tuple[int, ...]]:
        """For each task, what had to end before it could start.

        What it waits for and what its stream did before; for a transfer, those of all its ends.
        """
        program = self.program
        own = list(program.waits)
        previous: dict[int, int] = {}
        for task, stream in enumerate(program.stream):
            if stream in previous:
                own[task] = (*own[task], previous[stream])
            previous[stream] = task
        for ends in program.ends:
            if len(ends) > 1:
                joined = tuple(p for end in ends for p in own[end])
                for end in ends:
                    own[end] = joined
        return own

    @cached_property
    def critical(self) -> list[int]:
        """For each task the predecessor that ended last (-1: none): why it did not start before."""
        end = self.end_s.tolist()
        return [max(p, key=end.__getitem__) if p else -1 for p in self.predecessors]

    @cached_property
    def rank_class(self) -> Integers:
        """The rank class of each task."""
        of_stream = np.array([s.rank_class for s in self.program.streams], dtype=np.int64)
        stream = np.array(self.program.stream, dtype=np.int64)
        return of_stream[stream] if len(stream) else stream

    @cached_property
    def class_list(self) -> list[int]:
        """`rank_class` as a list: single items are read several times faster."""
        of_task: list[int] = self.rank_class.tolist()
        return of_task

    def tasks(self, rank_class: int, stream: str | None = None) -> Integers:
        """The tasks of a class (of one of its streams), in order of emission."""
        chosen = self.rank_class == rank_class
        if stream is not None:
            named = np.array([s.name == stream for s in self.program.streams], dtype=bool)
            chosen &= named[np.array(self.program.stream, dtype=np.int64)]
        return np.flatnonzero(chosen)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is derived, so that a result travels light between processes."""
        fields = self.__dataclass_fields__
        return {name: value for name, value in self.__dict__.items() if name in fields}
