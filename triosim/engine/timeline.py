"""What happened: one row per task, in columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from triosim.engine.columns import Columns, Integers
from triosim.engine.program import Program
from triosim.network.record import Record

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


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
    link_steps: Record
    events: int

    def __post_init__(self) -> None:
        for times in (self.start_s, self.end_s, self.log):
            times.setflags(write=False)

    @property
    def total_s(self) -> float:
        return float(self.end_s.max(initial=0.0))

    def usage(self, link: int) -> tuple[Floats, Floats]:
        """What a link carried when, as `network.record.step_function` says it."""
        return self.link_steps.usage(link)

    @cached_property
    def columns(self) -> Columns:
        """The program's order and waits."""
        return Columns.of(self.program)

    def predecessors(self, task: int) -> list[int]:
        """What had to end before a task could start.

        What it waits for and what its stream did before; for a transfer, those of all its ends.
        """
        program, previous = self.program, self.columns.previous
        transfer = program.transfer[task]
        before: list[int] = []
        for end in (task,) if transfer < 0 else program.ends[transfer]:
            before += program.waits[end]
            before += [int(previous[end])] if previous[end] >= 0 else []
        return before

    @cached_property
    def critical(self) -> list[int]:
        """For each task the predecessor that ended last (-1: none): why it did not start before."""
        last: list[int] = self.critical_task.tolist()
        return last

    @cached_property
    def critical_task(self) -> Integers:
        """`critical` as an array.

        The ends of a transfer follow each other, so that their predecessors do in one array.
        """
        columns, count = self.columns, len(self.start_s)
        if not count:
            return np.zeros(0, dtype=np.int64)
        follows = np.flatnonzero(columns.previous >= 0)
        own = np.concatenate((columns.waiter, follows))
        before = np.concatenate((columns.waits, columns.previous[follows]))
        order = np.argsort(own, kind="stable")
        unit, before = self.first_end[own[order]], before[order]
        begins = np.flatnonzero(np.diff(unit, prepend=-1))
        found = np.full(count, -1, dtype=np.int64)
        if len(begins):
            ended = self.end_s[before]
            latest = np.repeat(
                np.maximum.reduceat(ended, begins), np.diff(begins, append=len(unit))
            )
            place = np.where(ended == latest, np.arange(len(unit)), len(unit))
            found[unit[begins]] = before[np.minimum.reduceat(place, begins)]
        return found[self.first_end]

    @property
    def first_end(self) -> Integers:
        """For each task the first of the ends of its transfer, or itself."""
        return self.columns.first_end

    @cached_property
    def transfer_kind(self) -> Integers:
        """Of each end of a transfer a position in `transfer_kinds`, -1 of a computation."""
        columns, purposes = self.columns, list(dict.fromkeys(self.program.purpose))
        numbers = {purpose: number for number, purpose in enumerate(purposes)}
        purpose = np.fromiter(map(numbers.__getitem__, self.program.purpose), dtype=np.int64)
        ends = np.flatnonzero(self.is_transfer)
        pair = columns.phase[ends] * len(purposes) + purpose[columns.transfer[ends]]
        kinds = np.flatnonzero(np.bincount(pair))
        rank = np.zeros(len(columns.phases) * len(purposes), dtype=np.int64)
        rank[sorted(kinds.tolist(), key=lambda kind: int((pair == kind).argmax()))] = range(
            len(kinds)
        )
        found = np.full(len(self.start_s), -1, dtype=np.int64)
        found[ends] = rank[pair]
        return found

    @cached_property
    def transfer_kinds(self) -> list[tuple[str, str]]:
        """Phase and purpose of each kind of ends, in the order of their first ones."""
        program, kind = self.program, self.transfer_kind
        firsts = [int((kind == number).argmax()) for number in range(1 + kind.max(initial=-1))]
        return [(program.phase[t], program.purpose[program.transfer[t]]) for t in firsts]

    @cached_property
    def rank_class(self) -> Integers:
        """The rank class of each task."""
        of_stream = np.array([s.rank_class for s in self.program.streams], dtype=np.int64)
        stream = self.columns.stream
        return of_stream[stream] if len(stream) else stream

    @cached_property
    def class_list(self) -> list[int]:
        """`rank_class` as a list: single items are read several times faster."""
        of_task: list[int] = self.rank_class.tolist()
        return of_task

    @cached_property
    def is_transfer(self) -> Flags:
        return self.columns.transfer >= 0

    @cached_property
    def duration_s(self) -> Floats:
        """Of each computation if nothing slows it down."""
        return np.array(self.program.duration_s)

    @cached_property
    def composite(self) -> Flags:
        """Which tasks are composite."""
        found = np.zeros(len(self.start_s), dtype=bool)
        found[list(self.program.parts)] = True
        return found

    def of_class(self, rank_class: int) -> Flags:
        """Which tasks are a class's own, or an end of a transfer that it takes part in."""
        if rank_class not in self._of_class:
            ends = np.zeros(len(self.start_s), dtype=bool)
            ends[self.first_end[self.tasks(rank_class)]] = True
            self._of_class[rank_class] = ends[self.first_end]
        return self._of_class[rank_class]

    @cached_property
    def _of_class(self) -> dict[int, Flags]:
        return {}

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
        by_class: dict[int, list[tuple[str, Integers]]] = {}
        for number, own in enumerate(self.program.streams):
            tasks = self.columns.tasks(number)
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
