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
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

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
    for gap in gaps:
        classes[gap.kind] += gap.seconds
        if gap.kind == "exposed_communication":
            key = transfer_key(timeline, gap.cause)
            exposed[key] = exposed.get(key, 0.0) + gap.seconds
    return Breakdown(classes_s=classes, compute_s=compute, exposed_s=exposed, gaps=gaps)


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
    program, phases = timeline.program, timeline.phase[tasks]
    if program.parts:
        phases = np.where(timeline.composite[tasks], "", phases)
    if not program.overlap_slowdown:
        return _by_phase(phases, busy_s)
    alone_s = timeline.duration_s[tasks]
    slowed = busy_s - alone_s > ROUNDING * timeline.total_s
    own_s = np.where(slowed, alone_s, busy_s)
    return {**_by_phase(phases, own_s), SLOWDOWN: float((busy_s - own_s).sum())}


def _by_phase(phases: npt.NDArray[np.object_], seconds: Floats) -> dict[str, float]:
    return {phase: float(seconds[phases == phase].sum()) for phase in COMPUTE_PHASES}


def transfer_key(timeline: Timeline, task: int) -> tuple[str, str]:
    """Phase and purpose of a transfer; both ends of a send count as one kind."""
    program = timeline.program
    phase = program.phase[task]
    return (
        "send/recv" if phase in ("send", "recv") else phase,
        program.purpose[program.transfer[task]],
    )


def _gaps(
    timeline: Timeline,
    rank_class: int,
    tasks: Integers,
    start: Floats,
    end: Floats,
) -> list[Gap]:
    ends_before = np.concatenate(([0.0], end[:-1])) if len(tasks) else end
    late = np.flatnonzero(start > ends_before)
    gaps: list[Gap] = []
    explained = _explain_each(timeline, rank_class, tasks[late], ends_before[late], start[late])
    for pieces in explained:
        gaps += pieces
    last = float(end[-1]) if len(tasks) else 0.0
    every = timeline.tasks(rank_class)
    final = int(every[np.argmax(timeline.end_s[every])]) if len(every) else -1
    if final >= 0 and timeline.end_s[final] > last:
        finish = float(timeline.end_s[final])
        gaps += _explain(timeline, rank_class, final, last, finish, -1)
        last = finish
    if timeline.total_s > last:
        gaps.append(Gap(last, timeline.total_s, "idle", -1, -1))
    return gaps


def _explain_each(
    timeline: Timeline, rank_class: int, tasks: Integers, low: Floats, high: Floats
) -> Iterator[Sequence[Gap]]:
    """The pieces of gaps before tasks.

    NOTE: nearly all are what another rank does, or a transfer of this rank, or one after the other.
    Telling these apart at once takes a fifth of the time.
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
    kinds = np.where(near, "imbalance", "bubble").tolist()
    columns = (tasks, cause, before, low, began, high, moving, whole, elsewhere)
    rows = zip(kinds, *(column.tolist() for column in columns), strict=True)
    for kind, task, why, whose, begin, middle, end, moves, all_of_it, others in rows:
        exposed = Gap(middle, end, "exposed_communication", why, task)
        if all_of_it:
            yield (exposed,)
        elif others:
            waited = Gap(begin, middle, kind, whose, task)
            yield (waited, exposed) if moves and end > middle else (waited,)
        else:
            yield _explain(timeline, rank_class, why, begin, end, task)


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
