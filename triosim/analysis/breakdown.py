"""Where every instant of a rank's step goes.

Each instant belongs to exactly one class, the first that matches::

    compute                its compute stream is busy
    launch wait            the next task could run but the CPU has not launched it (no launch cost
                           is modelled in a trace's cases, so 0)
    exposed communication  the next task waits for a transfer of this rank that is moving or in its
                           latency, fetches included
    bubble                 it waits, through any chain, for another pipeline stage
    imbalance              it waits for a peer of its own group
    idle                   no task is left

Once a rank has computed for the last time, its own transfers that are still under way are exposed
communication too; after the last of them it is idle.

A gap is explained by walking back from the task that ends it, each time to the predecessor that
ended last. A composite task (a layer or a stage that was simulated on its own) brings its parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, overload

import numpy as np

from triosim.engine.columns import Integers
from triosim.engine.program import COMPUTE_PHASES, LAUNCH_PHASE
from triosim.engine.timeline import Floats, Timeline

SLOWDOWN = "slowdown"  # the part of compute that is there only because communication overlaps it
ROUNDING = 1e-12  # of the step: differences of clock readings below it say nothing

CLASSES = (
    "compute",
    "launch_wait",
    "exposed_communication",
    "bubble",
    "imbalance",
    "idle",
)


class Gap(NamedTuple):
    """A stretch in which the compute stream stands still, and why.

    `kind` is one of `CLASSES`; `cause` the task that was being waited for, -1 for none; `before`
    the compute task that could not start, -1 at the end of the step.
    """

    start_s: float
    end_s: float
    kind: str
    cause: int
    before: int

    @property
    def seconds(self) -> float:
        return self.end_s - self.start_s


class Gaps(Sequence[Gap]):
    """Gaps in columns; `kind` counts in `CLASSES`.

    NOTE: of a long step nobody looks at most of them; making each one took a tenth of its time.
    """

    def __init__(
        self, kind: Integers, start_s: Floats, end_s: Floats, cause: Integers, before: Integers
    ) -> None:
        self.kind = kind
        self.cause = cause
        self.seconds = end_s - start_s
        self._columns = (start_s, end_s, kind, cause, before)

    @classmethod
    def of(cls, gaps: Sequence[Gap]) -> Gaps:
        start_s, end_s, kind, cause, before = zip(*gaps, strict=True) if gaps else ((),) * 5
        return cls(
            np.array([CLASSES.index(each) for each in kind], dtype=np.int64),
            np.array(start_s, dtype=np.float64),
            np.array(end_s, dtype=np.float64),
            np.array(cause, dtype=np.int64),
            np.array(before, dtype=np.int64),
        )

    @classmethod
    def joined(cls, parts: Sequence[Gaps], places: Integers | None = None) -> Gaps:
        """One after the other, or sorted by the places of all of them."""
        columns = zip(*(part._columns for part in parts), strict=True)
        start_s, end_s, kind, cause, before = map(np.concatenate, columns)
        if places is not None:
            order = np.argsort(places, kind="stable")
            start_s, end_s, kind = start_s[order], end_s[order], kind[order]
            cause, before = cause[order], before[order]
        return cls(kind, start_s, end_s, cause, before)

    @cached_property
    def _list(self) -> list[Gap]:
        start_s, end_s, kind, cause, before = (column.tolist() for column in self._columns)
        names = map(CLASSES.__getitem__, kind)
        return list(map(Gap, start_s, end_s, names, cause, before))

    def __len__(self) -> int:
        return len(self.kind)

    def __iter__(self) -> Iterator[Gap]:
        return iter(self._list)

    @overload
    def __getitem__(self, at: int) -> Gap: ...
    @overload
    def __getitem__(self, at: slice) -> list[Gap]: ...
    def __getitem__(self, at: int | slice) -> Gap | list[Gap]:
        return self._list[at]


@dataclass(frozen=True, kw_only=True, slots=True)
class Breakdown:
    """One rank class's step. `classes_s` sums to the step; `compute_s` splits its first entry.

    `compute_s` is by phase; where the program slows compute while communication overlaps it, phases
    keep the time that they take alone and `SLOWDOWN` is the rest. `exposed_s` splits exposed
    communication by (phase, purpose) of the transfer.
    """

    classes_s: Mapping[str, float]
    compute_s: Mapping[str, float]
    exposed_s: Mapping[tuple[str, str], float]
    gaps: Sequence[Gap]


def break_down(timeline: Timeline, rank_class: int) -> Breakdown:
    """The classes of one rank class."""
    tasks = timeline.tasks(rank_class, "compute")
    start, end = timeline.start_s[tasks], timeline.end_s[tasks]
    compute = _split_compute(timeline, tasks, end - start)
    gaps = _gaps(timeline, rank_class, tasks, start, end)
    classes = dict.fromkeys(CLASSES, 0.0)
    exposed: dict[tuple[str, str], float] = {}
    for (kind, key), seconds in _composed(timeline, tasks).items():
        if kind == "compute":
            compute[key[0]] = compute.get(key[0], 0.0) + seconds
            continue
        classes[kind] += seconds
        if kind == "exposed_communication":
            exposed[key] = exposed.get(key, 0.0) + seconds
    classes["compute"] = sum(compute.values())
    waited = np.bincount(gaps.kind, gaps.seconds, minlength=len(CLASSES)).tolist()
    for kind, seconds in zip(CLASSES, waited, strict=True):
        classes[kind] += seconds
    for key, seconds in _exposed(timeline, gaps):
        exposed[key] = exposed.get(key, 0.0) + seconds
    return Breakdown(classes_s=classes, compute_s=compute, exposed_s=exposed, gaps=gaps)


def _exposed(timeline: Timeline, gaps: Gaps) -> Iterator[tuple[tuple[str, str], float]]:
    """How long transfers of each kind were waited for, in the order of the first waits."""
    waits = gaps.kind == CLASSES.index("exposed_communication")
    kind, seconds = timeline.transfer_kind[gaps.cause[waits]], gaps.seconds[waits]
    total, keys = np.bincount(kind, seconds), transfer_keys(timeline)
    different = np.flatnonzero(np.bincount(kind)).tolist()
    for each in sorted(different, key=lambda each: int((kind == each).argmax())):
        yield keys[each], float(total[each])


def _composed(timeline: Timeline, tasks: Integers) -> dict[tuple[str, tuple[str, str]], float]:
    """What the composite tasks among some are made of."""
    parts = timeline.program.parts
    sums: dict[tuple[str, tuple[str, str]], float] = {}
    made = [own for task in tasks.tolist() if (own := parts.get(task))] if parts else ()
    # NOTE: micro-batches share their parts; adding up each kind once is a tenth of a long run.
    different = {id(own): own for own in made}
    for key, times in Counter(map(id, made)).items():
        for part in different[key]:
            at = (part.kind, part.key)
            sums[at] = sums.get(at, 0.0) + times * part.seconds
    return sums


def _split_compute(timeline: Timeline, tasks: Integers, busy_s: Floats) -> dict[str, float]:
    """Computing time by phase, without what composite tasks are made of."""
    program, phases = timeline.program, timeline.columns.phase[tasks]
    if program.parts:
        phases = np.where(timeline.composite[tasks], -1, phases)
    if not program.overlap_slowdown:
        return _by_phase(timeline, phases, busy_s)
    alone_s = timeline.duration_s[tasks]
    slowed = busy_s - alone_s > ROUNDING * timeline.total_s
    own_s = np.where(slowed, alone_s, busy_s)
    return {**_by_phase(timeline, phases, own_s), SLOWDOWN: float((busy_s - own_s).sum())}


def _by_phase(timeline: Timeline, phases: Integers, seconds: Floats) -> dict[str, float]:
    known = timeline.columns.phases
    return {
        phase: float(seconds[phases == known.index(phase)].sum()) if phase in known else 0.0
        for phase in COMPUTE_PHASES
    }


def transfer_key(timeline: Timeline, task: int) -> tuple[str, str]:
    """Phase and purpose of a transfer; both ends of a send count as one kind."""
    program = timeline.program
    return _key(program.phase[task], program.purpose[program.transfer[task]])


def transfer_keys(timeline: Timeline) -> list[tuple[str, str]]:
    """The same of each of `Timeline.transfer_kinds`."""
    return [_key(*kind) for kind in timeline.transfer_kinds]


def _key(phase: str, purpose: str) -> tuple[str, str]:
    return "send/recv" if phase in ("send", "recv") else phase, purpose


def _gaps(
    timeline: Timeline,
    rank_class: int,
    tasks: Integers,
    start: Floats,
    end: Floats,
) -> Gaps:
    ends_before = np.concatenate(([0.0], end[:-1])) if len(tasks) else end
    late = np.flatnonzero(start > ends_before)
    explained = _explain_each(timeline, rank_class, tasks[late], ends_before[late], start[late])
    gaps: list[Gap] = []
    last = float(end[-1]) if len(tasks) else 0.0
    every = timeline.tasks(rank_class)
    final = int(every[np.argmax(timeline.end_s[every])]) if len(every) else -1
    if final >= 0 and timeline.end_s[final] > last:
        finish = float(timeline.end_s[final])
        gaps += _explain(timeline, rank_class, final, last, finish, -1)
        last = finish
    if timeline.total_s > last:
        gaps.append(Gap(last, timeline.total_s, "idle", -1, -1))
    return Gaps.joined([explained, Gaps.of(gaps)])


def _explain_each(
    timeline: Timeline, rank_class: int, tasks: Integers, low: Floats, high: Floats
) -> Gaps:
    """The pieces of gaps before tasks.

    NOTE: nearly all are what another rank does, or a transfer of this rank, or one after the other.
    Telling these apart at once takes a tenth of the time.
    """
    own, critical = timeline.of_class(rank_class), timeline.critical_task
    cause = critical[tasks]
    moving = (cause >= 0) & own[cause] & timeline.is_transfer[cause]
    began = np.where(moving, np.clip(timeline.start_s[cause], low, high), high)
    whole = moving & (began == low)  # the transfer was under way all along
    before = np.where(moving, critical[cause], cause)
    elsewhere = (before >= 0) & ~own[before] & ~whole
    stages = np.array([-1 if c.stage is None else c.stage for c in timeline.program.classes])
    near = stages[timeline.rank_class[before]] == stages[rank_class]
    kind = np.where(near, CLASSES.index("imbalance"), CLASSES.index("bubble"))
    first = np.flatnonzero(elsewhere)
    waited = Gaps(kind[first], low[first], began[first], before[first], tasks[first])
    then = np.flatnonzero(whole | (elsewhere & moving & (high > began)))
    exposed = np.full(len(then), CLASSES.index("exposed_communication"))
    moved = Gaps(exposed, began[then], high[then], cause[then], tasks[then])
    rest = np.flatnonzero(~(whole | elsewhere))
    walked: list[Gap] = []
    places: list[int] = []
    causes = zip(*(column[rest].tolist() for column in (cause, low, high, tasks)), strict=True)
    for place, at in zip(rest.tolist(), causes, strict=True):
        pieces = _explain(timeline, rank_class, *at)
        walked += pieces
        places += [place] * len(pieces)
    every = np.concatenate((first, then, np.array(places, dtype=np.int64)))
    return Gaps.joined([waited, moved, Gaps.of(walked)], every)


def _explain(
    timeline: Timeline, rank_class: int, cause: int, low: float, high: float, before: int
) -> list[Gap]:
    """The pieces of one gap, walking back from the task that ended it.

    Transfers of this rank come first; from the first task on another rank on, everything before is
    that rank's doing.
    """
    program = timeline.program
    pieces: list[Gap] = []
    blocked = before
    while high > low and cause >= 0:
        if not timeline.of_class(rank_class)[cause]:
            stages = {program.classes[c].stage for c in (rank_class, timeline.class_list[cause])}
            pieces.append(
                Gap(low, high, "bubble" if len(stages) > 1 else "imbalance", cause, before)
            )
            return pieces[::-1]
        if program.phase[cause] == LAUNCH_PHASE and blocked >= 0:
            ready, at = _otherwise_ready(timeline, blocked)
            begin = max(low, at)
            if high > begin:
                pieces.append(Gap(begin, high, "launch_wait", cause, before))
            high, blocked, cause = begin, cause, ready
            continue
        begin = max(low, float(timeline.start_s[cause]))
        if high > begin:
            pieces.append(Gap(begin, high, "exposed_communication", cause, before))
        high = begin
        blocked, cause = cause, timeline.critical[cause]
    if high > low:
        pieces.append(Gap(low, high, "idle", -1, before))
    return pieces[::-1]


def _otherwise_ready(timeline: Timeline, task: int) -> tuple[int, float]:
    """What a task waited for last beside its launch, and until when (-1 and 0: nothing)."""
    phase, end = timeline.program.phase, timeline.end_s
    others = [p for p in timeline.predecessors(task) if phase[p] != LAUNCH_PHASE]
    last = max(others, key=end.__getitem__, default=-1)
    return last, float(end[last]) if last >= 0 else 0.0
