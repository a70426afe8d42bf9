"""How long pipeline schedules take to make and to run: python -m benchmarks.schedules

Best of several runs, for 16 stages and 128 micro-batches: cold (order, wiring, times, table) and
warm (the order is known, as when only times change).
"""

from __future__ import annotations

import time

from triosim.pipelines import pipeline
from triosim.schedules import SCHEDULES, make_schedule

REPEATS = 7
CHUNKS = {"interleaved": 4, "looped-bfs": 4}


def main() -> None:
    print(f"{'schedule':12} {'tasks':>7} {'cold ms':>9} {'warm ms':>9} {'us a task':>10}")
    for name in SCHEDULES:
        settings = {"stages": 16, "microbatches": 128, "chunks": CHUNKS.get(name, 1)}
        tasks, cold, warm = 0, float("inf"), float("inf")
        for _ in range(REPEATS):
            make_schedule.cache_clear()
            start = time.perf_counter()
            tasks = len(pipeline(name, **settings).timeline)
            middle = time.perf_counter()
            result = pipeline(name, **settings, forward=1.5)
            _ = (result.period, result.peak_in_flight)
            end = time.perf_counter()
            cold, warm = min(cold, middle - start), min(warm, end - middle)
        per_task = cold / tasks * 1e6
        print(f"{name:12} {tasks:7,} {cold * 1e3:9.1f} {warm * 1e3:9.1f} {per_task:10.2f}")


if __name__ == "__main__":
    main()
