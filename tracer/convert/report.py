"""What a conversion found, used and left out: for the command line and for a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from tracer.convert.communication import Communication


@dataclass(frozen=True, kw_only=True, slots=True)
class FileTotals:
    """The whole profiler file, all steps."""

    events: int
    cpu_rows: int
    kernels: int
    kernel_sum_s: float
    kernel_busy_s: float
    copies: int
    copy_s: float
    launches: Mapping[str, int]  # kernels by the call that launched them
    without_launch: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """One conversion.

    `attributed_s` of `kernel_s` is the time of kernels that have an operator or a communication,
    over the kernels of the step; on a CPU both are the time of operators. `compute_busy_s` is the
    union of the operators' kernels, which is what the written times add up to. `unmatched` counts
    what was left out, by reason; `unmatched_s` has the time where it is known.
    """

    profiler: str
    graph: str
    schema: str
    torch: str
    gpu: str
    device: str
    step: int
    step_label: str
    steps: tuple[int, ...]
    file: FileTotals
    kernels: int
    kernel_s: float
    attributed_s: float
    compute_busy_s: float
    communication_s: float
    span_s: float
    found: int
    written: int
    stages: Mapping[str, int]
    tensor_parallel: int
    batch_size: int
    batch_from: str
    joined: int
    join_rows: int
    join_how: str
    unmatched: Mapping[str, int]
    unmatched_s: Mapping[str, float]
    repairs: Counter[str] = field(default_factory=Counter)
    warnings: tuple[str, ...] = ()
    communications: tuple[Communication, ...] = ()

    @property
    def attributed(self) -> float:
        """The share of the step's time that has an operator."""
        return self.attributed_s / self.kernel_s if self.kernel_s else 0.0

    def lines(self) -> list[str]:
        """The report as a person reads it."""
        return [
            f"profiler file: {self.profiler}" + (f", {self.gpu}" if self.gpu else ""),
            self._graph_line(),
            f"step: {self.step} ({self.step_label}), of {_numbers(self.steps)}",
            f"operators: {self.found} found, {self.written} written ("
            + ", ".join(f"{n} {stage}" for stage, n in self.stages.items())
            + f"; {self.tensor_parallel} for tensor parallelism); batch size {self.batch_size}"
            + (f" from {self.batch_from}" if self.batch_from else ""),
            *self._time_lines(),
            *(f"not used: {n} {what}{self._lost(what)}" for what, n in self.unmatched.items()),
            *(f"repaired: {what} ({n})" for what, n in sorted(self.repairs.items())),
            *(f"warning: {text}" for text in self.warnings),
        ]

    def _graph_line(self) -> str:
        if not self.graph:
            return "execution trace: none"
        torch = f", torch {self.torch}" if self.torch else ""
        return (
            f"execution trace: {self.graph}, schema {self.schema or 'unknown'}{torch}; "
            f"{self.joined} of {self.join_rows} rows matched by {self.join_how}"
        )

    def _time_lines(self) -> list[str]:
        if self.device == "cpu":
            lines = [f"time: {_ms(self.compute_busy_s)} of operators on the CPU"]
            return lines + self._communication_lines()
        lines = [
            f"kernels: {self.kernels}, {_ms(self.attributed_s)} of {_ms(self.kernel_s)} attributed "
            f"({self.attributed:.2%}); busy {_ms(self.compute_busy_s)}, "
            f"first start to last end {_ms(self.span_s)}",
        ]
        if self.file.copies:
            lines.append(
                f"copies and fills of memory: {self.file.copies}, {_ms(self.file.copy_s)} in the "
                "file, not counted"
            )
        return lines + self._communication_lines()

    def _communication_lines(self) -> list[str]:
        if not self.communications:
            return []
        moved = sum(one.bytes for one in self.communications)
        return [
            f"communication: {len(self.communications)}, {moved} bytes, "
            f"{_ms(self.communication_s)}, in communication.csv"
        ]

    def _lost(self, reason: str) -> str:
        lost = self.unmatched_s.get(reason)
        return "" if lost is None else f" ({_ms(lost)})"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3f} ms"


def _numbers(numbers: tuple[int, ...]) -> str:
    if len(numbers) == 1:
        return "1 step"
    if list(numbers) == list(range(numbers[0], numbers[-1] + 1)):
        return f"steps {numbers[0]} to {numbers[-1]}"
    return "steps " + ", ".join(map(str, numbers))
