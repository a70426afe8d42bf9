"""What every rank does, in order: the input of the executor.

Ranks that do the same thing at the same time are one `RankClass` with one set of streams. A stream
is an in-order queue. A task is one entry of a stream: a computation with a duration, or one end of
a transfer. A task starts when its stream is free and the tasks that it waits for have ended; a
transfer that joins several streams starts when all of its ends are ready.

Columns instead of objects: a program of 100,000 tasks is a few lists, and arrays where there are
numbers, which Python's search for garbage passes over.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NoReturn

from triosim.errors import Infeasible
from triosim.network.links import Link, Load

MAX_TASKS = 2_000_000

COMPUTE_PHASES = ("forward", "backward", "optimizer")
LAUNCH_PHASE = "launch"  # the CPU hands a task to the GPU; on a stream of its own
COPY_ENGINE_PHASES = ("fetch", "store")  # these take nothing from the computation beside them
_UNSENT = ("fetch", "store", "recv")  # phases of ends that send nothing to another GPU
TRANSFER_PHASES = ("fetch", "store", "all-reduce", "send", "recv")


@dataclass(frozen=True, kw_only=True, slots=True)
class RankClass:
    """Ranks with identical timelines; the first member stands for all."""

    members: Sequence[int]
    speed: float = 1.0
    stage: int | None = None

    @property
    def rank(self) -> int:
        return self.members[0]


@dataclass(frozen=True, slots=True)
class Stream:
    """An in-order queue on a rank class."""

    rank_class: int
    name: str


@dataclass(frozen=True, slots=True)
class Part:
    """What a share of a composite task's time is: a class of the breakdown, and which kind of it.

    `key` is the phase of a computation ("compute"), phase and purpose of a transfer
    ("exposed_communication"), else ("", "").
    """

    kind: str
    key: tuple[str, str]
    seconds: float


def _ints() -> array[int]:
    return array("q")


def _floats() -> array[float]:
    return array("d")


@dataclass(kw_only=True)
class Program:
    """Tasks in columns; `transfer[t]` is a position in `loads`, or -1 for a computation.

    The tasks of a transfer, its `ends`, follow each other.

    Memory is three columns of changes: `memory_bytes` of a category are given out when the task
    starts, or taken back (negative) when it ends. `resident` is what each class has from the start.
    `provenance_s` is the computing time of all ranks by where it is from. While at least one GPU to
    GPU transfer of a rank is under way, its computations take 1 + `overlap_slowdown` times as long.
    `parts` has the composite tasks: a whole layer or stage, simulated once on its own, as one
    computation whose seconds are the parts' sum. `marks` are tasks of one stream at which the step
    may begin to repeat itself, such as the first of each micro-batch.
    """

    classes: list[RankClass] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)
    stream: array[int] = field(default_factory=_ints)
    name: list[str] = field(default_factory=list)
    phase: list[str] = field(default_factory=list)
    duration_s: array[float] = field(default_factory=_floats)
    waits: list[tuple[int, ...]] = field(default_factory=list)
    transfer: array[int] = field(default_factory=_ints)
    bytes: array[float] = field(default_factory=_floats)
    sent_bytes: array[float] = field(default_factory=_floats)
    loads: list[Load] = field(default_factory=list)
    purpose: list[str] = field(default_factory=list)
    ends: list[range] = field(default_factory=list)
    memory_task: array[int] = field(default_factory=_ints)
    memory_category: list[str] = field(default_factory=list)
    memory_bytes: array[int] = field(default_factory=_ints)
    resident: list[list[tuple[str, int]]] = field(default_factory=list)
    provenance_s: dict[str, float] = field(default_factory=dict)
    overlap_slowdown: float = 0.0
    parts: dict[int, tuple[Part, ...]] = field(default_factory=dict)
    marks: list[int] = field(default_factory=list)
    _stream_index: dict[tuple[int, str], int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.stream)

    def add_class(self, rank_class: RankClass) -> int:
        self.classes.append(rank_class)
        self.resident.append([])
        return len(self.classes) - 1

    def add_computing(self, rank_class: int, provenance: str, seconds: float) -> None:
        """Computing time of one rank of a class, measured, scaled or from a roofline."""
        total = len(self.classes[rank_class].members) * seconds
        self.provenance_s[provenance] = self.provenance_s.get(provenance, 0.0) + total

    def add_link(self, link: Link) -> int:
        self.links.append(link)
        return len(self.links) - 1

    def compute(
        self, rank_class: int, name: str, phase: str, duration_s: float, waits: Iterable[int] = ()
    ) -> int:
        """A computation at the end of the class's compute stream; returns the task."""
        return self._append(rank_class, "compute", name, phase, duration_s, waits, -1, 0.0, 0.0)

    def compose(
        self,
        rank_class: int,
        name: str,
        phase: str,
        parts: Sequence[Part],
        waits: Iterable[int] = (),
    ) -> int:
        """A composite task at the end of the class's compute stream."""
        seconds = sum(part.seconds for part in parts)
        task = self.compute(rank_class, name, phase, seconds, waits)
        self.parts[task] = tuple(parts)
        return task

    def launch(self, rank_class: int, name: str, seconds: float, waits: Iterable[int] = ()) -> int:
        """Time that the CPU takes to hand something to the GPU."""
        return self._append(
            rank_class, LAUNCH_PHASE, name, LAUNCH_PHASE, seconds, waits, -1, 0.0, 0.0
        )

    def communicate(
        self,
        ends: Sequence[tuple[int, str, str]],
        name: str,
        purpose: str,
        size_bytes: float,
        load: Load,
        waits: Sequence[Iterable[int]],
    ) -> list[int]:
        """One transfer at the end of several streams; returns one task for each end.

        `ends` holds (rank class, stream, phase), `waits` what each end waits for; `purpose` says
        what is moved, for totals over many transfers.
        """
        first, transfer = len(self.stream), len(self.loads)
        self.loads.append(load)
        self.purpose.append(purpose)
        tasks = []
        for (rank_class, stream, phase), wait in zip(ends, waits, strict=True):
            sent = 0.0 if phase in _UNSENT else load.sent_bytes
            tasks.append(
                self._append(rank_class, stream, name, phase, 0.0, wait, transfer, size_bytes, sent)
            )
        self.ends.append(range(first, len(self.stream)))
        return tasks

    def communicate_each(
        self,
        ends: Sequence[tuple[int, str, str]],
        names: Sequence[str],
        purpose: str,
        size_bytes: float,
        load: Load,
        waits: Sequence[Sequence[tuple[int, ...]]],
    ) -> range:
        """Transfers between the same streams one after the other; `waits` has a column for each
        end. Returns their tasks, those of a transfer next to each other.

        NOTE: a whole column at a time, a tenth of the time of one by one.
        """
        count, width, transfer = len(names), len(ends), len(self.loads)
        own = self._room(count * width)
        self.stream += array("q", [self._stream_at(c, stream) for c, stream, _ in ends]) * count
        self.name += chain.from_iterable(zip(*[names] * width, strict=True))
        self.phase += [phase for _, _, phase in ends] * count
        self.duration_s += array("d", [0.0]) * (count * width)
        self.waits += chain.from_iterable(zip(*waits, strict=True))
        moved = range(transfer, transfer + count)
        self.transfer.extend(chain.from_iterable(zip(*[moved] * width, strict=True)))
        self.bytes += array("d", [size_bytes]) * (count * width)
        sent = [load.sent_bytes if phase not in _UNSENT else 0.0 for *_, phase in ends]
        self.sent_bytes += array("d", sent) * count
        self.loads += [load] * count
        self.purpose += [purpose] * count
        self.ends += map(range, own[::width], range(own.start + width, own.stop + width, width))
        return own

    def wait(self, task: int, on: int) -> None:
        """Let a task also wait for another one."""
        self.waits[task] += (on,)

    def wait_each(self, tasks: Iterable[int], on: Iterable[int]) -> None:
        """The same for many, each for one."""
        waits = self.waits
        for task, other in zip(tasks, on, strict=True):
            waits[task] += (other,)

    def allocate(self, task: int, category: str, size_bytes: int) -> None:
        """Memory comes into use when the task starts."""
        self._change(task, category, size_bytes)

    def free(self, task: int, category: str, size_bytes: int) -> None:
        """Memory goes out of use when the task ends."""
        self._change(task, category, -size_bytes)

    def _change(self, task: int, category: str, size_bytes: int) -> None:
        self.memory_task.append(task)
        self.memory_category.append(category)
        self.memory_bytes.append(size_bytes)

    def _append(
        self,
        rank_class: int,
        stream: str,
        name: str,
        phase: str,
        duration_s: float,
        waits: Iterable[int],
        transfer: int,
        size_bytes: float,
        sent_bytes: float,
    ) -> int:
        task = self._room(1)[0]
        self.stream.append(self._stream_at(rank_class, stream))
        self.name.append(name)
        self.phase.append(phase)
        self.duration_s.append(duration_s)
        self.waits.append(tuple(waits))
        self.transfer.append(transfer)
        self.bytes.append(size_bytes)
        self.sent_bytes.append(sent_bytes)
        return task

    def _room(self, count: int) -> range:
        """The numbers of the next so many tasks."""
        first = len(self.stream)
        if first + count > MAX_TASKS:
            refuse_more()
        return range(first, first + count)

    def _stream_at(self, rank_class: int, name: str) -> int:
        key = (rank_class, name)
        position = self._stream_index.get(key)
        if position is None:
            position = self._stream_index[key] = len(self.streams)
            self.streams.append(Stream(rank_class, name))
        return position


def check_tasks(tasks: int, what: str, remedy: str) -> None:
    """Refuse a step before it is written, in one sentence with its estimated number of tasks.

    `what` makes it so large, in the plural; `remedy` says what would be small enough. Raises
    `Infeasible` above `MAX_TASKS`.
    """
    if tasks > MAX_TASKS:
        raise Infeasible(f"{what} need about {tasks:,} tasks, more than {MAX_TASKS:,}; {remedy}.")


def refuse_more() -> NoReturn:
    """For what no estimate counts: tensors that are evicted and fetched again."""
    raise Infeasible(
        f"This scenario needs more than {MAX_TASKS:,} tasks; use fewer micro-batches or "
        "accumulated batches, or more memory where tensors are fetched time and again."
    )
