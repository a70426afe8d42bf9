"""How many tasks a training step makes, known before any of them is written."""

from __future__ import annotations

from dataclasses import dataclass

from triosim.engine.program import MAX_TASKS, check_tasks
from triosim.errors import counted
from triosim.train.plan import Plan

_ENDS = 2  # tasks of a transfer between two stages


@dataclass(frozen=True, kw_only=True, slots=True)
class Size:
    """Tasks of a step: `per_microbatch` for each, and `once`."""

    microbatches: int
    per_microbatch: float
    once: int

    @property
    def tasks(self) -> int:
        return round(self.microbatches * self.per_microbatch) + self.once


def size_of(plan: Plan) -> Size:
    """Close to what `StepWriter` writes: passes whole or unit by unit, their transfers, handovers.

    A slow rank's stage has a class of ranks more for each speed.
    """
    scenario, stages = plan.scenario, plan.stages
    ways = 1 if scenario.prefill else 2  # forward, and backward
    units = sum(map(len, plan.virtual_stages))
    slow = {speed for speed in scenario.speeds.values() if speed != 1.0}
    classes = 1 + len(slow) / stages
    between = _ENDS + bool(plan.stack.hop_us.value) if stages > 1 else 0
    cells = sum(2 if task.kind == "F&B" else 1 for row in plan.schedule.rows for task in row)
    whole = cells * ways / 2 / plan.microbatches * (1 + between)
    # Unit by unit: a pass each way, a gather for each, and a reduction; experts have their own.
    shared = plan.shards * plan.sizes["dp_replicate"] > 1
    collectives = 2 if plan.sizes["ep"] > 1 else 1
    gathered = units * ways * (1 + collectives)
    reduced = units * collectives if ways == 2 else 0
    each, once = whole, 0
    if scenario.offload:
        each += 2 * units * ways
    if shared and stages == 1 and plan.zero == 3:
        each += gathered + reduced - whole
    elif shared and stages == 1 and plan.zero == 2:
        each += units + reduced
    elif shared:
        once = units * (1 + (plan.zero > 0)) + reduced
    return Size(
        microbatches=plan.microbatches,
        per_microbatch=classes * each,
        once=round(classes * (once + stages)),
    )


def check_size(plan: Plan) -> None:
    """Raises `Infeasible` where a step needs more tasks than a program may have."""
    size = size_of(plan)
    most = int((MAX_TASKS - size.once) / size.per_microbatch)
    if plan.microbatches > 1 and most > 0:
        what, remedy = f"{plan.microbatches:,} micro-batches", f"use at most {most:,}"
    else:
        what = f"{counted(plan.model.layers, 'layer')} in {counted(plan.stages, 'stage')}"
        remedy = "use fewer layers"
    check_tasks(size.tasks, what, remedy)
