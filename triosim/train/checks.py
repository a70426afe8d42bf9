"""The rules that a training step must satisfy, evaluated on the result (ORACLES.md 3 to 7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from triosim.analysis.checks import COMMON, RELATIVE, Check, Outcome, checked, memory_level
from triosim.train.update import COPIES

if TYPE_CHECKING:
    from triosim.train.result import TrainResult


def run_train_checks(result: TrainResult) -> tuple[Check, ...]:
    """Every rule that applies to this run."""
    return checked(*(rule(result) for rule in (*COMMON, memory_level, *_RULES)))


def _utilisation(result: TrainResult) -> Outcome:
    if not result.model_flops:  # a trace may have counted none
        return
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
    """Under DDP every gradient is reduced once; two stages may have parts in common besides."""
    plan = result.plan
    if plan.scenario.prefill or plan.zero or plan.shards * plan.sizes["dp_replicate"] == 1:
        return
    program = result.tasks.program
    reduced = sum(
        program.bytes[ends[0]]
        for ends in program.ends
        if program.purpose[program.transfer[ends[0]]] == "gradients"
        and program.phase[ends[0]] == "all-reduce"
        and program.name[ends[0]] != COPIES
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
    _utilisation, _stages, _buckets, _micro_batches,
)  # fmt: skip
