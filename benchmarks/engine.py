"""How long a simulation takes, from Scenario to result: python -m benchmarks.engine [TRACE_DIR]

In process, warm, trace cached; the median of several runs, with counts that do not depend on the
machine. The default trace is ResNet-50 beside the repository where it is there, else a shipped one.
Every run reads all of the result's figures, checks included.
"""

from __future__ import annotations

import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from triosim import Result, Scenario, simulate
from triosim.scenario import SAMPLE_TRACES

ROOT = Path(__file__).resolve().parents[1]
RESNET = ROOT.parent / "shared" / "upstream" / "trace2-h100-bs128" / "resnet50"
REPEATS = 9


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One line of the table; `target_ms` is what the project asks of ResNet-50."""

    case: int
    gpus: int
    target_ms: float | None
    options: dict[str, object]


def rows() -> list[Row]:
    symmetric = [
        Row(case=case, gpus=gpus, target_ms=target, options={})
        for case in range(4)
        for gpus, target in ((8, 25.0), (1024, 30.0), (16_384, 37.5))
    ]
    pipeline = [
        Row(case=4, gpus=gpus, target_ms=target, options={})
        for gpus, target in ((8, 25.0), (16, 50.0), (64, 200.0))
    ]
    many = {"micro_batch_size": 4, "schedule": "1f1b"}
    return [*symmetric, *pipeline, Row(case=4, gpus=8, target_ms=None, options=many)]


def measure(trace: Path, row: Row) -> tuple[float, float, Result]:
    """Median and first time in milliseconds, and the result."""
    scenario = Scenario(trace_dir=str(trace), case=row.case, gpus=row.gpus, **row.options)
    times = []
    for _ in range(REPEATS + 1):
        start = time.perf_counter()
        result = simulate(scenario)
        result.to_dict()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times[1:]), times[0], result


def main() -> None:
    trace = Path(sys.argv[1]) if len(sys.argv) > 1 else RESNET
    if not trace.is_dir():
        trace = SAMPLE_TRACES / "transformer"
    print(f"{trace.name}; ms from Scenario to result, all figures read; median of {REPEATS}")
    print(
        f"{'case':>4} {'GPUs':>6} {'ms':>8} {'target':>7} {'first':>8} {'tasks':>7} {'events':>7}"
    )
    for row in rows():
        median_ms, first_ms, result = measure(trace, row)
        target = "" if row.target_ms is None else f"{row.target_ms:.1f}"
        print(
            f"{row.case:>4} {row.gpus:>6} {median_ms:>8.1f} {target:>7} {first_ms:>8.1f} "
            f"{len(result.tasks.program):>7} {result.tasks.events:>7}  "
            f"{' '.join(f'{k}={v}' for k, v in row.options.items())}"
        )


if __name__ == "__main__":
    main()
