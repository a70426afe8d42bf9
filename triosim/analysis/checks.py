"""The rules that every result must satisfy, evaluated on a result.

They are arithmetic on the finished timeline, independent of how it was made, so a failed check is a
bug of the engine and never a property of the scenario.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from triosim.analysis.breakdown import Breakdown
from triosim.analysis.memory import MemoryCurve
from triosim.engine.timeline import Timeline
from triosim.errors import counted
from triosim.network.closed_forms import ring_all_reduce
from triosim.parallel.plan import Plan
from triosim.trace.parameters import find_parameters

if TYPE_CHECKING:
    from triosim.result import Result

RELATIVE = 1e-9


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """A rule that every result must satisfy, evaluated on this one."""

    id: str
    passed: bool
    detail: str

    def __getitem__(self, key: str) -> Any:
        return getattr(self, key)


class Measured(Protocol):
    """What the rules need that hold whatever was simulated."""

    @property
    def tasks(self) -> Timeline: ...
    @property
    def breakdowns(self) -> Sequence[Breakdown]: ...
    @property
    def memory(self) -> Sequence[MemoryCurve]: ...
    @property
    def total_ms(self) -> float: ...


Outcome = Iterator[tuple[str, bool, str]]


def run_checks(result: Result, plan: Plan) -> tuple[Check, ...]:
    """Every rule that applies to this run."""
    return checked(*(rule(result) for rule in COMMON), *(rule(result, plan) for rule in _RULES))


def checked(*outcomes: Outcome) -> tuple[Check, ...]:
    """The checks of some rules in order."""
    return tuple(
        Check(id=rule, passed=bool(passed), detail=detail)
        for outcome in outcomes
        for rule, passed, detail in outcome
    )


def _close(one: float, other: float, scale: float = 0.0) -> bool:
    return math.isclose(one, other, rel_tol=RELATIVE, abs_tol=RELATIVE * scale + 1e-15)


def _classes_sum(result: Measured) -> Outcome:
    total = result.total_ms * 1e-3
    worst = max((abs(sum(b.classes_s.values()) - total) for b in result.breakdowns), default=0.0)
    least = min((min(b.classes_s.values()) for b in result.breakdowns), default=0.0)
    yield (
        "classes-sum",
        worst <= RELATIVE * total and least >= -RELATIVE * total,
        "On every rank compute, launch wait, exposed communication, bubble, imbalance and idle "
        "sum to the step, none below 0; "
        f"largest difference {worst * 1e3:.3g} ms of {total * 1e3:.6g} ms.",
    )


def _critical_path(result: Measured) -> Outcome:
    """Walk back from the last task: every task on the way starts when the one before it ends."""
    timeline = result.tasks
    start_s, end_s = timeline.start_s.tolist(), timeline.end_s.tolist()
    length, task, broken = 0.0, int(np.argmax(timeline.end_s)) if end_s else -1, 0
    while task >= 0:
        length += end_s[task] - start_s[task]
        previous = timeline.critical[task]
        expected = end_s[previous] if previous >= 0 else 0.0
        broken += start_s[task] != expected
        task = previous
    yield (
        "critical-path",
        not broken and _close(length, timeline.total_s),
        f"The step is as long as its longest chain of tasks that wait for each other: "
        f"{length * 1e3:.6g} ms against {timeline.total_s * 1e3:.6g} ms.",
    )


def _links(result: Measured) -> Outcome:
    program, timeline = result.tasks.program, result.tasks
    if not program.links:
        return
    capacity = np.array([link.bytes_per_s for link in program.links])
    over = float((timeline.peak_bytes_per_s / capacity).max(initial=0.0))
    yield (
        "link-capacity",
        over <= 1 + RELATIVE,
        f"No link carries more than its bandwidth at any instant; the fullest reaches "
        f"{over * 100:.4g} %.",
    )
    sent = np.zeros(len(program.links))
    different = {id(load): load for load in program.loads}
    for key, times in Counter(map(id, program.loads)).items():
        for part in different[key].parts:
            for link, size in part.bytes_by_link:
                sent[link] += times * size
    difference = float(np.abs(sent - timeline.carried_bytes).max(initial=0.0))
    yield (
        "bytes-delivered",
        difference <= RELATIVE * float(sent.max(initial=0.0)),
        f"Every link delivered what was put on it: {timeline.carried_bytes.sum():,.0f} of "
        f"{sent.sum():,.0f} bytes, a link of symmetric ranks counted once.",
    )


def memory_level(result: Measured, *, evicts: bool = False) -> Outcome:
    """`evicts`: what the step began with may have had to make room."""
    curves = result.memory
    level = all(int(c.total_bytes[-1]) == int(c.total_bytes[0]) for c in curves)
    evicted = any(int(c.total_bytes[-1]) < int(c.total_bytes[0]) for c in curves)
    lowest = min(
        (int(levels.min()) for c in curves for levels in c.bytes_by_category.values()), default=0
    )
    less = ", less the resident tensors that had to make room and are not needed again"
    yield (
        "memory-level",
        lowest >= 0 and (level or (evicts and evicted)),
        "The step ends with as much memory in use as it began with"
        f"{'' if level else less}, and no category goes below 0.",
    )


COMMON: tuple[Callable[[Measured], Outcome], ...] = (_classes_sum, _critical_path, _links)


def _recorded_time(result: Result, plan: Plan) -> Outcome:
    scenario = result.scenario
    if plan.gpus > 1 or not scenario.resident or plan.speeds:
        return
    if any(phase == "store" or phase == "fetch" for phase in result.tasks.program.phase):
        return
    scaled = sum(plan.batch_sizes) / plan.trace.batch_size
    want = sum(
        op.time_s * (1.0 if op.phase == "optimizer" else scaled) for op in plan.trace.operators
    )
    yield (
        "recorded-time",
        _close(result.tasks.total_s, want),
        f"One GPU with everything in memory takes the recorded time: {result.total_ms:.6g} ms "
        f"against {want * 1e3:.6g} ms.",
    )


def _collectives(result: Result, plan: Plan) -> Outcome:
    """Each all-reduce takes its closed form: nothing else uses the ring meanwhile."""
    program, timeline = result.tasks.program, result.tasks
    first = [ends[0] for ends in program.ends if program.phase[ends[0]] == "all-reduce"]
    if not first or plan.wire.circuit_setup_s or result.scenario.on_topology:
        return
    worst, moved = 0.0, 0.0
    for task in first:
        cost = ring_all_reduce(plan.gpus, program.bytes[task])
        want = cost.time_s(plan.wire.bytes_per_s, plan.wire.latency_s)
        took = float(timeline.end_s[task] - timeline.start_s[task])
        worst, moved = max(worst, abs(took - want)), moved + want
    yield (
        "ring-all-reduce",
        worst <= RELATIVE * timeline.total_s,
        f"{counted(len(first), 'all-reduce')} of 2(n-1)a + 2(n-1)/n S/B each, {moved * 1e3:.6g} ms "
        f"in all; largest difference {worst * 1e3:.3g} ms.",
    )


def _alone(result: Result, plan: Plan) -> Outcome:
    """No transfer is faster than its latencies and its bytes on otherwise empty links."""
    program, timeline = result.tasks.program, result.tasks
    if not program.loads:
        return
    capacity = [link.bytes_per_s for link in program.links]
    worst = 0.0
    for load, ends in zip(program.loads, program.ends, strict=True):
        least = sum(
            part.latency_s + max((b / capacity[k] for k, b in part.bytes_by_link), default=0.0)
            for part in load.parts
        )
        took = float(timeline.end_s[ends[0]] - timeline.start_s[ends[0]])
        worst = max(worst, least - took)
    yield (
        "transfer-times",
        worst <= RELATIVE * timeline.total_s,
        f"None of {counted(len(program.loads), 'transfer')} is faster than its latency and its "
        f"bytes on empty links; largest shortfall {worst * 1e3:.3g} ms.",
    )


def _overlap(result: Result, plan: Plan) -> Outcome:
    """Exposed all-reduce time lies between the last bucket's and the sum of all."""
    timeline = result.tasks
    program = timeline.program
    if result.scenario.case != 2 or plan.gpus == 1 or plan.speeds:
        return
    reduces = [
        (float(timeline.start_s[e[0]]), float(timeline.end_s[e[0]]))
        for e in program.ends
        if program.phase[e[0]] == "all-reduce"
    ]
    if not reduces:
        return
    exposed = result.breakdowns[0].exposed_s
    own = sum(s for (kind, _), s in exposed.items() if kind == "all-reduce")
    fetches = sum(s for (kind, _), s in exposed.items() if kind != "all-reduce")
    busy = [
        (float(timeline.start_s[t]), float(timeline.end_s[t]))
        for t in timeline.tasks(0, "compute").tolist()
    ]
    start, end = reduces[-1]
    hidden = sum(max(0.0, min(b, end) - max(a, start)) for a, b in busy)
    low, high = (end - start) - hidden, sum(b - a for a, b in reduces)
    slack = RELATIVE * timeline.total_s
    yield (
        "bucket-overlap",
        low - slack <= own + fetches and own <= high + slack,
        f"Exposed all-reduce time, {own * 1e3:.6g} ms, lies between what backward leaves of the "
        f"last bucket, {low * 1e3:.6g} ms, and all buckets together, {high * 1e3:.6g} ms.",
    )
    reduced = sum(program.bytes[e[0]] for e in program.ends if program.phase[e[0]] == "all-reduce")
    trained = find_parameters(plan.trace).bytes
    yield (
        "bucket-bytes",
        reduced == trained,
        f"The buckets hold every gradient once: {reduced:,.0f} of {trained:,} bytes.",
    )


def _speedup(result: Result, plan: Plan) -> Outcome:
    speedup = result.speedup
    if speedup is None or any(speed > 1 for speed in plan.speeds.values()):
        return
    if result.scenario.case not in (1, 2):
        return
    nothing = result.exposed_communication_ms <= RELATIVE * result.total_ms
    note = " (0 exposed communication)" if nothing else ""
    yield (
        "speed-up",
        speedup <= plan.gpus * (1 + RELATIVE),
        f"The speed-up on {counted(plan.gpus, 'GPU')} is {speedup:.6g}, not more than "
        f"{plan.gpus:,}{note}.",
    )


def _memory(result: Result, plan: Plan) -> Outcome:
    peak = result.peak_memory_bytes
    lowest = min(int(curve.total_bytes.min()) for curve in result.memory)
    yield (
        "memory-capacity",
        lowest >= 0 and peak <= plan.capacity_bytes,
        f"Memory in use stays between 0 and the capacity: highest {peak:,} of "
        f"{plan.capacity_bytes:,} bytes.",
    )
    yield from memory_level(result, evicts=plan.resident)


def _pipeline(result: Result, plan: Plan) -> Outcome:
    """The slowest stage's work, and one micro-batch's way through all, bound the step below."""
    if result.scenario.case != 4:
        return
    timeline = result.tasks
    busy = [b.classes_s["compute"] for b in result.breakdowns]
    slowest = max(busy, default=0.0)
    passes = [b.compute_s["forward"] + b.compute_s["backward"] for b in result.breakdowns]
    through = sum(passes) * min(plan.batch_sizes) / sum(plan.batch_sizes)
    yield (
        "pipeline-bounds",
        timeline.total_s >= max(slowest, through) * (1 - RELATIVE),
        f"The step is no shorter than its slowest stage ({slowest * 1e3:.6g} ms) or than one "
        f"micro-batch's way through all stages ({through * 1e3:.6g} ms).",
    )
    overlapping = 0
    for c in range(len(result.classes)):
        tasks = timeline.tasks(c, "compute")
        overlapping += int((timeline.start_s[tasks][1:] < timeline.end_s[tasks][:-1]).sum())
    yield (
        "one-at-a-time",
        overlapping == 0,
        f"Every stage runs one operator at a time; {overlapping} overlap.",
    )


_RULES: tuple[Callable[[Result, Plan], Outcome], ...] = (
    _recorded_time,
    _collectives,
    _alone,
    _overlap,
    _speedup,
    _memory,
    _pipeline,
)
