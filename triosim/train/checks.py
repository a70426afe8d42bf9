"""The rules that a training step must satisfy, evaluated on the result (ORACLES.md 3 to 7)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from triosim.analysis.checks import RELATIVE, Check

if TYPE_CHECKING:
    from triosim.train.result import TrainResult

Outcome = Iterator[tuple[str, bool, str]]


def run_train_checks(result: TrainResult) -> tuple[Check, ...]:
    """Every rule that applies to this run."""
    return tuple(
        Check(id=rule, passed=bool(passed), detail=detail)
        for check in _RULES
        for rule, passed, detail in check(result)
    )


def _classes_sum(result: TrainResult) -> Outcome:
    total = result.step_s
    worst = max(abs(sum(b.classes_s.values()) - total) for b in result.breakdowns)
    yield (
        "classes-sum",
        worst <= RELATIVE * total,
        "On every rank compute, launch wait, exposed communication, bubble, imbalance and idle "
        f"sum to the step; largest difference {worst * 1e3:.3g} ms of {total * 1e3:.6g} ms.",
    )


def _critical_path(result: TrainResult) -> Outcome:
    timeline = result.tasks
    length, task, broken = 0.0, int(np.argmax(timeline.end_s)), 0
    while task >= 0:
        length += float(timeline.end_s[task] - timeline.start_s[task])
        previous = timeline.critical[task]
        broken += timeline.start_s[task] != (timeline.end_s[previous] if previous >= 0 else 0.0)
        task = previous
    yield (
        "critical-path",
        not broken and abs(length - timeline.total_s) <= RELATIVE * timeline.total_s,
        "The step is as long as its longest chain of tasks that wait for each other: "
        f"{length * 1e3:.6g} ms against {timeline.total_s * 1e3:.6g} ms.",
    )


def _links(result: TrainResult) -> Outcome:
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
    for load in program.loads:
        for part in load.parts:
            for link, size in part.bytes_by_link:
                sent[link] += size
    difference = float(np.abs(sent - timeline.carried_bytes).max(initial=0.0))
    yield (
        "bytes-delivered",
        difference <= RELATIVE * float(sent.max(initial=0.0)),
        f"Every link delivered what was put on it: {timeline.carried_bytes.sum():,.0f} of "
        f"{sent.sum():,.0f} bytes.",
    )


def _memory(result: TrainResult) -> Outcome:
    lowest = min(int(curve.total_bytes.min()) for curve in result.memory)
    level = all(int(c.total_bytes[-1]) == int(c.total_bytes[0]) for c in result.memory)
    negative = any(
        int(levels.min()) < 0 for c in result.memory for levels in c.bytes_by_category.values()
    )
    yield (
        "memory-level",
        level and lowest >= 0 and not negative,
        "The step ends with as much memory in use as it began with, and no category goes below 0.",
    )


def _utilisation(result: TrainResult) -> Outcome:
    mfu, hfu = result.mfu, result.hfu
    yield (
        "utilisation",
        0 < mfu <= hfu * (1 + RELATIVE) and mfu <= 1,
        f"MFU {mfu:.2%} is at most HFU {hfu:.2%}, and at most 1.",
    )


def _stages(result: TrainResult) -> Outcome:
    """The slowest stage's work, and one micro-batch's way through all, bound the step below."""
    if result.plan.stages == 1:
        return
    busy = max(b.classes_s["compute"] for b in result.breakdowns)
    yield (
        "pipeline-bounds",
        result.step_s >= busy * (1 - RELATIVE),
        f"The step is no shorter than its busiest stage computes, {busy * 1e3:.6g} ms.",
    )
    overlapping = 0
    for c in range(len(result.classes)):
        own = result.tasks.tasks(c, "compute")
        start, end = result.tasks.start_s[own], result.tasks.end_s[own]
        overlapping += int((start[1:] < end[:-1]).sum())
    yield (
        "one-at-a-time",
        overlapping == 0,
        f"Every stage runs one pass at a time; {overlapping} overlap.",
    )


def _buckets(result: TrainResult) -> Outcome:
    """Under DDP every gradient is reduced once."""
    plan = result.plan
    if plan.scenario.prefill or plan.zero or plan.shards * plan.sizes["dp_replicate"] == 1:
        return
    program = result.tasks.program
    reduced = sum(
        program.bytes[ends[0]]
        for ends in program.ends
        if program.purpose[program.transfer[ends[0]]] == "gradients"
        and program.phase[ends[0]] == "all-reduce"
    )
    state = result.writer.state
    owned = sum(state.dense_count(s) for s in range(plan.stages))
    owned += sum(state.reduced_experts(s) for s in range(plan.stages))
    want = owned * state.sizes.reduced
    yield (
        "gradient-bytes",
        abs(reduced - want) <= RELATIVE * want,
        f"All-reduces carry every gradient once: {reduced:,.0f} of {want:,.0f} bytes.",
    )


def _micro_batches(result: TrainResult) -> Outcome:
    plan = result.plan
    passes, want = result.writer.forward_passes(), plan.microbatches * len(plan.virtual_stages)
    yield (
        "micro-batches",
        passes == want,
        f"Every micro-batch passes every part of the model once: {passes:,} of {want:,} forward "
        "passes.",
    )


_RULES: tuple[Callable[[TrainResult], Outcome], ...] = (
    _classes_sum, _critical_path, _links, _memory, _utilisation, _stages, _buckets, _micro_batches,
)  # fmt: skip
