"""What happened: one row per task, in columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from triosim.engine.program import Program
from triosim.network.fabric import step_function

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Timeline:
    """Starts and ends of a program's tasks, in seconds.

    `log` is the order of events: t for the start of task t, ~t for its end. `carried_bytes` and
    `peak_bytes_per_s` are per link, `link_steps` what `usage` reads; `events` counts the engine's
    steps. Equality is identity.
    """

    program: Program
    start_s: Floats
    end_s: Floats
    log: Integers
    carried_bytes: Floats
    peak_bytes_per_s: Floats
    link_steps: list[list[float]]
    events: int

    def __post_init__(self) -> None:
        for times in (self.start_s, self.end_s, self.log):
            times.setflags(write=False)

    @property
    def total_s(self) -> float:
        return float(self.end_s.max(initial=0.0))

    def usage(self, link: int) -> tuple[Floats, Floats]:
        """What a link carried when, as `network.fabric.step_function` says it."""
        return step_function(self.link_steps[link])

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
        critical: list[int] = []
        for task, before in enumerate(self.predecessors):
            transfer = self.program.transfer[task]
            first = task if transfer < 0 else self.program.ends[transfer][0]
            # All ends of a transfer wait for the same: the first one's answer is theirs.
            known = first < task
            last = critical[first] if known else max(before, key=end.__getitem__, default=-1)
            critical.append(last)
        return critical

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

    @cached_property
    def joined(self) -> list[frozenset[int]]:
        """The rank classes that each transfer joins."""
        return [frozenset(self.class_list[end] for end in ends) for ends in self.program.ends]

    def tasks(self, rank_class: int, stream: str | None = None) -> Integers:
        """The tasks of a class (of one of its streams), in order of emission."""
        chosen = [
            tasks
            for name, tasks in self._by_class.get(rank_class, ())
            if stream is None or name == stream
        ]
        return np.sort(np.concatenate(chosen)) if chosen else np.zeros(0, dtype=np.int64)

    @cached_property
    def _by_class(self) -> dict[int, list[tuple[str, Integers]]]:
        """Each class's streams by name, with their tasks."""
        stream = np.array(self.program.stream, dtype=np.int64)
        order = np.argsort(stream, kind="stable")
        starts = np.searchsorted(stream[order], np.arange(1, len(self.program.streams)))
        by_class: dict[int, list[tuple[str, Integers]]] = {}
        for own, tasks in zip(self.program.streams, np.split(order, starts), strict=False):
            by_class.setdefault(own.rank_class, []).append((own.name, tasks))
        return by_class

    @cached_property
    def phase(self) -> npt.NDArray[np.object_]:
        """The phase of each task, as an array."""
        return np.array(self.program.phase, dtype=object)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is derived, so that a result travels light between processes."""
        fields = self.__dataclass_fields__
        return {name: value for name, value in self.__dict__.items() if name in fields}
