"""How long the pictures of a large result take to build: python -m benchmarks.figures

A pipeline of 8 stages and 256 micro-batches of the shipped transformer, tens of thousands of spans:
time to build each figure (best of several) and the size of what goes to the browser.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import plotly.graph_objects as go

from triosim import Scenario, simulate
from triosim.figures import breakdown_bars, gantt_bars, gantt_overview, memory_figure

REPEATS = 5


def main() -> None:
    result = simulate(
        Scenario(case=4, gpus=8, batch_size_sim=256, micro_batch_size=1, schedule="1f1b")
    )
    ranks = range(8)
    window_ms = (0.0, result.total_ms / 100)
    figures: dict[str, Callable[[], go.Figure]] = {
        "overview": lambda: gantt_overview(result, ranks),
        "bars of 1 % of the step": lambda: gantt_bars(result, ranks, window_ms),
        "breakdown": lambda: breakdown_bars(result, ranks),
        "memory": lambda: memory_figure(result, 0),
    }
    print(f"{len(result.tasks.program):,} spans")
    for name, build in figures.items():
        times = []
        for _ in range(REPEATS):
            start = time.perf_counter()
            figure = build()
            times.append((time.perf_counter() - start) * 1e3)
        print(f"{name:24} {min(times):8.1f} ms {len(figure.to_json()) / 1e3:10.0f} kB")


if __name__ == "__main__":
    main()
