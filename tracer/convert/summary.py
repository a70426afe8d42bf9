"""What is said about a conversion: warnings, and the figures of its report."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from tracer.convert.build import Times
from tracer.convert.communication import Communication
from tracer.convert.cut import Cut
from tracer.convert.graph import Graph
from tracer.convert.join import Join
from tracer.convert.kineto import Kernel, Profile
from tracer.convert.report import FileTotals, Report
from tracer.convert.shares import busy
from tracer.convert.steps import Step
from triosim.trace import PHASES, Operator

WARN_BELOW = 0.99  # of the kernel time


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """What has been found out about one step on the way to its trace."""

    profile: Profile
    graph: Graph | None
    steps: Sequence[Step]
    step: Step
    join: Join
    cut: Cut
    times: Times
    operators: Sequence[Operator]
    communications: Sequence[Communication]
    kernel_ns: int
    attributed_ns: int

    @property
    def device(self) -> str:
        return "gpu" if self.profile.kernels else "cpu"

    @property
    def attributed(self) -> float:
        """The share of the kernel time that has an operator or a communication."""
        return self.attributed_ns / self.kernel_ns if self.kernel_ns else 0.0


def warnings_of(found: Found, batch_size: int | None) -> tuple[str, ...]:
    profile, graph = found.profile, found.graph
    texts = [*profile.warnings, *(graph.warnings if graph else ())]
    if profile.kernels and found.attributed < WARN_BELOW:
        texts.append(f"only {found.attributed:.1%} of the kernel time belongs to an operator")
    if not found.step.complete:
        texts.append(f"step {found.step.number} is not complete: launched kernels are missing")
    if not profile.kernels:
        texts.append("no GPU kernels in the file: the times are those of operators on the CPU")
    if graph is None:
        texts.append(
            "no execution trace: sizes are from Input Dims, tensors have no identity, and "
            "parameters and gradients cannot be recognised"
        )
    elif found.join.share < WARN_BELOW:
        texts.append(
            f"only {found.join.share:.1%} of the rows are in the execution trace; the others have "
            "sizes from Input Dims or none"
        )
    if batch_size is None:
        texts.append("the batch size is not known and taken as 1")
    if not any(op.phase == "backward" for op in found.operators):
        texts.append("the step has no backward operators")
    if any(row.name.startswith("triton_") for row in found.step.rows) and not any(
        op.tensor_parallel for op in found.operators
    ):
        texts.append(
            "compiled kernels have names of their own: none is flagged for tensor parallel"
        )
    return tuple(texts)


def report_of(found: Found, batch: int, source: str, warnings: tuple[str, ...]) -> Report:
    profile, graph = found.profile, found.graph
    unmatched, unmatched_s = _unmatched(found)
    stages = Counter(op.phase for op in found.operators)
    return Report(
        profiler=profile.name, graph=graph.name if graph else "",
        schema=graph.schema if graph else "", torch=graph.torch if graph else "",
        gpu=profile.gpu, device=found.device, step=found.step.number, step_label=found.step.label,
        steps=tuple(step.number for step in found.steps), file=_totals(profile),
        kernels=len(found.step.kernels), kernel_s=found.kernel_ns * 1e-9,
        attributed_s=found.attributed_ns * 1e-9, compute_busy_s=sum(found.times.share) * 1e-9,
        communication_s=sum(one.duration_us for one in found.communications) * 1e-6,
        span_s=_span(found) * 1e-9, found=len(found.cut.operators), written=len(found.operators),
        stages={phase: stages[phase] for phase in PHASES},
        tensor_parallel=sum(bool(op.tensor_parallel) for op in found.operators),
        batch_size=batch, batch_from=source, joined=len(found.join.nodes),
        join_rows=found.join.rows, join_how=found.join.how, unmatched=unmatched,
        unmatched_s=unmatched_s, repairs=profile.repairs + (graph.repairs if graph else Counter()),
        warnings=warnings, communications=tuple(found.communications),
    )  # fmt: skip


def _unmatched(found: Found) -> tuple[Counter[str], dict[str, float]]:
    """What has no place in the trace, by reason, and its time in seconds where it has one."""
    profile = found.profile
    stepped = {kernel for step in found.steps for kernel in step.kernels}
    reasons: Counter[str] = Counter()
    lost_s: dict[str, float] = defaultdict(float)

    def count(kernel: Kernel, reason: str) -> None:
        reasons[f"kernels {reason}"] += 1
        lost_s[f"kernels {reason}"] += (kernel.end - kernel.start) * 1e-9

    for kernel in found.cut.left:
        count(kernel, kernel.reason)
    for kernel in profile.kernels:
        if kernel not in stepped:
            count(kernel, kernel.reason or "outside every step")
    if profile.unusable_kernels:
        reasons["kernels without a usable time"] = profile.unusable_kernels
    idle = len(found.cut.operators) - len(found.operators)
    if idle:
        reasons[f"operators without time on the {found.device.upper()}"] = idle
    missing = found.join.rows - len(found.join.nodes)
    if missing:
        reasons["rows that are not in the execution trace"] = missing
    return reasons, dict(lost_s)


def _span(found: Found) -> int:
    """From the first start to the last end of what ran, in ns."""
    runs = [(k.start, k.end) for k in found.step.kernels] or [
        (piece.row.start, piece.row.end) for piece in found.cut.operators
    ]
    return max(end for _, end in runs) - min(start for start, _ in runs)


def _totals(profile: Profile) -> FileTotals:
    launches = Counter(k.launch.name for k in profile.kernels if k.launch)
    return FileTotals(
        events=profile.events,
        cpu_rows=sum(1 for row in profile.rows if not row.annotation),
        kernels=len(profile.kernels),
        kernel_sum_s=sum(k.end - k.start for k in profile.kernels) * 1e-9,
        kernel_busy_s=busy((k.start, k.end) for k in profile.kernels) * 1e-9,
        copies=profile.copies,
        copy_s=profile.copy_ns * 1e-9,
        launches=launches,
        without_launch=sum(1 for k in profile.kernels if k.launch is None),
    )
