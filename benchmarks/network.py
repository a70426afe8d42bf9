"""What the network costs to simulate: python -m benchmarks.network

Collectives on 16,384 GPUs from a topology that has not been built yet, and whole steps of ResNet-50
on a two-tier machine, each in a process of its own. Processor time rather than elapsed time, so
that a busy machine disturbs less; the least of several runs.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.memory import peak_bytes
from triosim import ConfigError, Result, Scenario, collective, simulate
from triosim.network.collectives.choose import ALGORITHMS
from triosim.network.topology import describe
from triosim.scenario import SAMPLE_TRACES

ROOT = Path(__file__).resolve().parents[1]
GPUS = 16_384
TOPOLOGIES = ("seminar-h100", "torus", "dragonfly", "rail-optimised", "switch")
COLLECTIVE_TARGET_MS = 50.0
STEP_TARGETS_MS = {8: None, 16_384: 100.0, 131_072: 500.0}
MEMORY_TARGET_MB = 500.0
STRAGGLER_TARGET = 5.0
REPEATS = 5


def least_ms(call: Callable[[], object]) -> float:
    """Processor time of the quickest run, the topology built anew in each."""
    times = []
    for _ in range(REPEATS):
        describe._built.cache_clear()
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times) * 1e3


def collectives() -> None:
    print(f"all-reduce on {GPUS:,} GPUs, ms (target {COLLECTIVE_TARGET_MS:g} each)")
    print(f"{'':22} {' '.join(f'{name:>14}' for name in TOPOLOGIES)}")
    for algorithm in ("auto", *ALGORITHMS):
        cells = [f"{_collective_cell(name, algorithm):>14}" for name in TOPOLOGIES]
        print(f"{algorithm:22} {' '.join(cells)}")


def _collective_cell(topology: str, algorithm: str) -> str:
    def call() -> object:
        return collective("all-reduce", ranks=GPUS, topology=topology, algorithm=algorithm)

    try:
        return f"{least_ms(call):.1f}"
    except ConfigError:
        return "-"


def step(gpus: int, straggler: bool) -> Result:
    speeds = {gpus // 2: 0.5} if straggler else None
    return simulate(
        Scenario(
            trace_dir=str(SAMPLE_TRACES / "resnet50"),
            case=2,
            gpus=gpus,
            topology="seminar-h100",
            rank_speed=speeds,
        )
    )


def measure_step(gpus: int, straggler: bool) -> None:
    """What one fresh process prints: milliseconds cold and warm, MB at most, and counts."""
    start = time.process_time()
    result = step(gpus, straggler)
    cold_ms = (time.process_time() - start) * 1e3
    warm_ms = least_ms(lambda: step(gpus, straggler))
    found = {
        "cold_ms": cold_ms,
        "warm_ms": warm_ms,
        "mb": peak_bytes() / 2**20,
        "tasks": len(result.tasks.program),
        "links": len(result.tasks.program.links),
    }
    print(json.dumps(found))


def steps() -> None:
    print(
        "step of ResNet-50 on seminar-h100, case 2; cold: first step of a process, trace included"
    )
    print(
        f"{'GPUs':>8} {'straggler':>9} {'cold ms':>8} {'ms':>7} {'target':>7} {'MB':>6} "
        f"{'tasks':>6} {'links':>6}"
    )
    plain_ms = 0.0
    for gpus, target_ms in STEP_TARGETS_MS.items():
        for straggler in (False, True):
            words = ["-m", "benchmarks.network", str(gpus), str(int(straggler))]
            done = subprocess.run(
                [sys.executable, *words], capture_output=True, text=True, check=True, cwd=ROOT
            )
            found = json.loads(done.stdout)
            goal = STRAGGLER_TARGET * plain_ms if straggler else target_ms
            plain_ms = plain_ms if straggler else found["warm_ms"]
            print(
                f"{gpus:>8,} {'one' if straggler else '-':>9} {found['cold_ms']:>8.1f} "
                f"{found['warm_ms']:>7.1f} {'' if goal is None else f'{goal:.0f}':>7} "
                f"{found['mb']:>6.0f} {found['tasks']:>6} {found['links']:>6}"
            )
    print(f"memory target {MEMORY_TARGET_MB:g} MB")


def main() -> None:
    if len(sys.argv) == 3:
        measure_step(int(sys.argv[1]), sys.argv[2] == "1")
        return
    collectives()
    print()
    steps()


if __name__ == "__main__":
    main()
