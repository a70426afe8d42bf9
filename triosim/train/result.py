"""What a training step takes, reaches and holds; a `Result` with what a model adds to it.

Conventions: model FLOPs count attention whole (no causal half) and nothing twice; hardware FLOPs
add what is computed again. GiB are 2^30 bytes, GB/s 10^9 bytes/s in one direction.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from triosim.analysis.breakdown import Breakdown, break_down
from triosim.analysis.communication import Communication, summarise_communication
from triosim.analysis.memory import MemoryCurve, memory_curves
from triosim.errors import ConfigError
from triosim.result import Result
from triosim.train.cost import RunCost, run_cost
from triosim.train.fit import Change, cheapest_changes
from triosim.train.moved import inner_communication, sent_inside
from triosim.train.period import Span, span_of, steady
from triosim.train.scenario import TrainScenario
from triosim.train.stage import CATEGORIES

if TYPE_CHECKING:
    from triosim.train.plan import Plan
    from triosim.train.step import StepWriter

GIB = 2**30


class Band(NamedTuple):
    """The step with every uncertain constant of the stack at its fast and at its slow end."""

    low_ms: float
    high_ms: float


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TrainResult(Result):
    """One simulated training step.

    `step_ms` is the time of a step in the steady state: the makespan with the optimizer where that
    waits for all stages, else the longest span of a stage. `run` simulates another plan.
    """

    scenario: TrainScenario  # type: ignore[assignment]
    plan: Plan
    writer: StepWriter
    run: Callable[[Plan], TrainResult]

    @cached_property
    def step_s(self) -> float:
        """The makespan, or the period where each stage updates its parameters alone."""
        if self._waits_for_all:
            return self.tasks.total_s
        return max(span.seconds for span in self._spans)

    @property
    def _waits_for_all(self) -> bool:
        alone = self.scenario.optimizer_sync == "stage" and not self.scenario.prefill
        return self.plan.stages == 1 or not alone

    @cached_property
    def _makespans(self) -> list[Breakdown]:
        return [break_down(self.tasks, c) for c in range(len(self.classes))]

    @cached_property
    def _spans(self) -> list[Span]:
        return [span_of(self.tasks, c, b.gaps) for c, b in enumerate(self._makespans)]

    @property
    def step_ms(self) -> float:
        return self.step_s * 1e3

    @property
    def total_ms(self) -> float:
        return self.step_ms

    @property
    def iteration_time_s(self) -> float:
        return self.step_s

    @cached_property
    def breakdowns(self) -> list[Breakdown]:
        """One per rank class; each sums to the step."""
        if self._waits_for_all:
            return self._makespans
        pairs = zip(self._makespans, self._spans, strict=True)
        return [steady(breakdown, span, self.step_s) for breakdown, span in pairs]

    @property
    def tokens(self) -> int:
        """Tokens of a step, over all ranks."""
        return self.plan.tokens

    @property
    def tokens_per_s(self) -> float:
        return self.tokens / self.step_s

    @property
    def tokens_per_s_per_gpu(self) -> float:
        return self.tokens_per_s / self.scenario.gpus

    @property
    def samples_per_s(self) -> float:
        return self.plan.global_batch / self.step_s

    @cached_property
    def model_flops(self) -> float:
        """Of a step over all ranks: forward and backward once, attention counted whole."""
        return self.writer.blocks.flops_per_sample * self.plan.global_batch

    @cached_property
    def hardware_flops(self) -> float:
        """Model FLOPs and what is computed again."""
        plan, blocks = self.plan, self.writer.blocks
        if plan.scenario.prefill:
            return self.model_flops
        ranks = self.scenario.gpus // plan.stages
        again = sum(blocks.flops_again(unit) for units in plan.virtual_stages for unit in units)
        return self.model_flops + again * ranks * plan.microbatches

    @property
    def peak_flops(self) -> float:
        """FLOP/s of one GPU that utilisation divides by: its dense peak in `peak_dtype`."""
        return self.plan.gpu.peak(self.peak_dtype)

    @property
    def peak_dtype(self) -> str:
        """What the GPU computes products in."""
        return self.plan.gpu.computes_in("fp8" if self.plan.fp8 else self.plan.dtype)

    @property
    def model_tflops_per_gpu(self) -> float:
        return self.model_flops / self.step_s / self.scenario.gpus / 1e12

    @property
    def hardware_tflops_per_gpu(self) -> float:
        return self.hardware_flops / self.step_s / self.scenario.gpus / 1e12

    @property
    def mfu(self) -> float:
        return self.model_tflops_per_gpu * 1e12 / self.peak_flops

    @property
    def hfu(self) -> float:
        return self.hardware_tflops_per_gpu * 1e12 / self.peak_flops

    @property
    def speedup(self) -> float | None:
        """Not said: the step rarely fits on one GPU."""
        return None

    @cached_property
    def memory(self) -> list[MemoryCurve]:
        """One curve per rank class; what the allocator holds beyond tensors counts as framework."""
        share = self.plan.stack.reserved.value - 1
        curves = memory_curves(self.tasks, CATEGORIES)
        return [_with_reserved(curve, share) for curve in curves] if share > 0 else curves

    @property
    def capacity_bytes(self) -> int:
        return self.plan.gpu.memory_bytes

    @property
    def peak_memory_gib(self) -> float:
        return self.peak_memory_bytes / GIB

    @property
    def peak_memory_by_stage_gib(self) -> list[float]:
        peaks = [0.0] * self.plan.stages
        for c, curve in zip(self.classes, self.memory, strict=True):
            assert c.stage is not None
            peaks[c.stage] = max(peaks[c.stage], curve.peak_bytes / GIB)
        return peaks

    @cached_property
    def fullest(self) -> MemoryCurve:
        """The memory of the rank that needs most."""
        return max(self.memory, key=lambda curve: curve.peak_bytes)

    @property
    def memory_breakdown_gib(self) -> dict[str, float]:
        """What the fullest rank holds at the instant of its peak; sums to the peak."""
        at = int(self.fullest.total_bytes.argmax())
        return {
            name: float(levels[at]) / GIB for name, levels in self.fullest.bytes_by_category.items()
        }

    @property
    def fits(self) -> bool:
        return self.peak_memory_bytes <= self.capacity_bytes

    @cached_property
    def changes_to_fit(self) -> list[Change]:
        """What would make it fit, the least slow-down first; empty where it fits."""
        return [] if self.fits else cheapest_changes(self)

    @cached_property
    def band(self) -> Band:
        """The step's time between the ends of the stack's uncertainty."""
        fast, slow = (
            self.run(replace(self.plan, stack=self.plan.stack.at_end(fast=fast))).step_s
            for fast in (True, False)
        )
        return Band(low_ms=min(fast, self.step_s) * 1e3, high_ms=max(slow, self.step_s) * 1e3)

    @cached_property
    def communication(self) -> list[Communication]:
        """Transfers of the step and those inside its passes, the longest exposed first."""
        outer = summarise_communication(self.tasks, self.breakdowns)
        return sorted(
            [*outer, *inner_communication(self.writer)],
            key=lambda row: (-row.exposed_s, -row.busy_s),
        )

    @cached_property
    def _sent(self) -> list[tuple[float, float]]:
        """Per class what one rank sends, also inside its passes, and fetches from its host."""
        sent = []
        for c, (outer, fetched) in zip(self.classes, self._outside, strict=True):
            assert c.stage is not None
            sent.append((outer + sent_inside(self.writer, c.stage), fetched))
        return sent

    @property
    def _outside(self) -> list[tuple[float, float]]:
        program, timeline = self.tasks.program, self.tasks
        sent, size = np.array(program.sent_bytes), np.array(program.bytes)
        sent[timeline.columns.are("fetch", "store")] = 0.0
        fetched = np.where(timeline.columns.are("fetch"), size, 0.0)
        each = (timeline.tasks(c) for c in range(len(self.classes)))
        return [(float(sent[own].sum()), float(fetched[own].sum())) for own in each]

    def sent_bytes(self, purpose: str) -> float:
        """What a rank sends in a step for a purpose, mean over ranks."""
        total = sum(row.bytes for row in self.communication if row.purpose == purpose)
        return total / self.scenario.gpus

    def inside(self, task: int) -> pd.DataFrame:
        """What a composite task of `tasks` is made of: kernels, launches and transfers.

        Columns unit, stream, name, phase, start_ms, end_ms; times count from the task's start as if
        nothing else overlapped it. Empty for other tasks.
        """
        rows, offset_s = [], 0.0
        made = self.writer.made.get(task)
        if made is not None:
            units = made.group.units if made.kind == "forward" else made.group.units[::-1]
            for unit, one in zip(units, made.passes, strict=True):
                rows += [
                    (unit.name, stream, name, phase, 1e3 * (offset_s + a), 1e3 * (offset_s + b))
                    for stream, name, phase, a, b in one.rows()
                ]
                offset_s += one.seconds
        columns = ["unit", "stream", "name", "phase", "start_ms", "end_ms"]
        return pd.DataFrame(rows, columns=columns)

    def run_cost(self, tokens: float, gpu_hour_price: float | None = None) -> RunCost:
        """Days, cost and energy of a run over so many tokens."""
        return run_cost(self, tokens, gpu_hour_price)

    def difference_to(self, measured_ms: float) -> float:
        """The prediction's signed error against a measured step: 0.1 is 10 % too slow."""
        if not measured_ms > 0:
            raise ConfigError("measured_ms", measured_ms, "must be a number above 0")
        return self.step_ms / measured_ms - 1

    def to_json(self, **extras: Any) -> str:
        """`to_dict` as text, with a `run` and a measurement where they were asked for."""
        plain = {k: asdict(v) if isinstance(v, RunCost) else v for k, v in extras.items()}
        return json.dumps({**self.to_dict(), **plain}, indent=2, allow_nan=False) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """Everything of `--json`: plain values."""
        names = (
            "step_ms", "iteration_time_s", "tokens_per_s_per_gpu", "samples_per_s",
            "model_tflops_per_gpu", "hardware_tflops_per_gpu", "mfu", "hfu", "peak_flops",
            "peak_dtype", "peak_memory_bytes", "peak_memory_gib", "peak_memory_by_stage_gib",
            "memory_breakdown_gib", "capacity_bytes", "fits", "breakdown", "breakdown_splits",
            "communication_bytes", "provenance",
        )  # fmt: skip
        plan = self.plan
        return {
            "schema_version": self.schema_version,
            **{name: getattr(self, name) for name in names},
            "band": self.band._asdict(),
            "changes_to_fit": [change.to_dict() for change in self.changes_to_fit],
            "communication": [row.to_dict() for row in self.communication],
            "plan": {
                "model": plan.model.name,
                "machine": plan.machine,
                "sizes": dict(plan.sizes),
                "zero": plan.zero,
                "microbatches": plan.microbatches,
                "global_batch": plan.global_batch,
                "seq_len": plan.seq,
            },
            "conventions": CONVENTIONS,
            "checks": [{"id": c.id, "passed": c.passed, "detail": c.detail} for c in self.checks],
            "warnings": list(self.warnings),
            "assumptions": list(self.assumptions),
            "scenario": self.scenario.to_dict(),
        }


def _with_reserved(curve: MemoryCurve, share: float) -> MemoryCurve:
    """An allocator gives nothing back within a step: what its peak took stays its own."""
    more = round(share * curve.peak_bytes)
    levels = dict(curve.bytes_by_category)
    levels["framework"] = levels["framework"] + more
    return replace(curve, bytes_by_category=levels)


CONVENTIONS: Mapping[str, str] = {
    "flops": "model FLOPs count attention whole and nothing twice; hardware FLOPs add recompute",
    "mfu": "model FLOPs over the dense peak of one GPU in peak_dtype",
    "memory": "GiB are 2^30 bytes; tensors and framework of the fullest rank at its peak",
    "breakdown": "milliseconds, means over ranks, sum to step_ms",
    "bandwidth": "GB/s are 10^9 bytes/s in one direction",
}
