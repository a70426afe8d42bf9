"""How long a training step takes to simulate: python -m benchmarks.train

From `TrainScenario` to all figures of the result but its band, which is two more steps and stands
apart. Processor time rather than elapsed time, so that a busy machine disturbs less; the least of
several runs, each row in a process of its own. Tasks and engine events do not depend on the
machine, and times are also given as a share of what is asked.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.memory import peak_bytes
from triosim.train import TrainResult, TrainScenario, train

ROOT = Path(__file__).resolve().parents[1]
REPEATS = 5
FEW_TASKS = 50_000
FEW_TASKS_MS = 300.0
US_PER_TASK = 6.0
LARGEST_MS, LARGEST_MB = 400.0, 500.0
SLIDER_MS = 1000.0
FIGURES = (
    "step_ms", "breakdown", "breakdown_splits", "communication", "communication_bytes", "memory",
    "peak_memory_by_stage_gib", "memory_breakdown_gib", "mfu", "hfu", "provenance",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A scenario; `most_ms` is asked of it, or follows from its number of tasks."""

    name: str
    settings: Mapping[str, Any]
    most_ms: float | None = None

    def asked_ms(self, tasks: int) -> float:
        if self.most_ms is not None:
            return self.most_ms
        return FEW_TASKS_MS if tasks <= FEW_TASKS else tasks * US_PER_TASK * 1e-3


PIPELINE = {"model": "llama3-70b", "gpus": 128, "tp": 8, "pp": 16, "dp_shard": 1}
LARGEST = {
    "model": "llama3-405b", "gpus": 16_384, "tp": 8, "cp": 16, "pp": 16, "global_batch": 8 * 128,
}  # fmt: skip
ROWS = (
    Row(name="8B on 8 GPUs, as a slider moves", settings={"gpus": 8}, most_ms=SLIDER_MS),
    *(
        Row(name=f"8B on 8 GPUs, {n} micro-batches", settings={"gpus": 8, "global_batch": 8 * n})
        for n in (64, 288, 1152)
    ),
    *(
        Row(
            name=f"70B in 16 stages, {schedule}, {n} micro-batches",
            settings={**PIPELINE, "schedule": schedule, "chunks": chunks, "global_batch": n},
        )
        for schedule, chunks, n in (
            ("1f1b", 1, 128), ("1f1b", 1, 512), ("interleaved", 2, 128), ("zb-h1", 1, 128),
        )
    ),
    Row(
        name="70B in 16 stages with a slow rank, 128 micro-batches",
        settings={**PIPELINE, "global_batch": 128, "rank_speed": {9: 0.8}},
    ),
    Row(name="405B on 16,384 GPUs", settings=LARGEST, most_ms=LARGEST_MS),
)  # fmt: skip


def simulate(row: Row) -> TrainResult:
    """The step with its checks, and everything read."""
    result = train(TrainScenario(**row.settings))
    for name in FIGURES:
        getattr(result, name)
    return result


def timed_ms(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return (time.process_time() - start) * 1e3


def measure(number: int) -> None:
    """What one process prints about a row."""
    row = ROWS[number]
    first_ms = timed_ms(lambda: simulate(row))
    times = [timed_ms(lambda: simulate(row)) for _ in range(REPEATS)]
    mb = peak_bytes() / 2**20
    result = simulate(row)
    found = {
        "first_ms": first_ms,
        "ms": min(times),
        "mb": mb,
        "band_ms": timed_ms(lambda: result.band),
        "tasks": len(result.tasks.program),
        "events": result.tasks.events,
    }
    print(json.dumps(found))


def main() -> None:
    if len(sys.argv) == 2:
        measure(int(sys.argv[1]))
        return
    print(
        f"ms of processor time from TrainScenario to all figures, the least of {REPEATS} runs; "
        f"first: of a process\nasked: {FEW_TASKS_MS:g} ms up to {FEW_TASKS:,} tasks, "
        f"{US_PER_TASK:g} us a task beyond; memory of the largest {LARGEST_MB:g} MB"
    )
    print(
        f"{'':52} {'tasks':>8} {'events':>8} {'first':>7} {'ms':>7} {'us/task':>8} {'asked':>7} "
        f"{'share':>6} {'band':>7} {'MB':>5}"
    )
    for number, row in enumerate(ROWS):
        words = [sys.executable, "-m", "benchmarks.train", str(number)]
        done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=ROOT)
        found = json.loads(done.stdout)
        asked_ms = row.asked_ms(found["tasks"])
        print(
            f"{row.name:52} {found['tasks']:>8,} {found['events']:>8,} {found['first_ms']:>7.0f} "
            f"{found['ms']:>7.1f} {found['ms'] * 1e3 / found['tasks']:>8.1f} {asked_ms:>7.0f} "
            f"{found['ms'] / asked_ms:>6.2f} {found['band_ms']:>7.0f} {found['mb']:>5.0f}"
        )


if __name__ == "__main__":
    main()
