"""How fast sweeps and searches go, and what a point costs beside its simulation.

python -m benchmarks.sweeps                # a thousand points
python -m benchmarks.sweeps --points 10000
python -m benchmarks.sweeps --search       # 512 GPUs and Llama 70B as well, some minutes
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor

import triosim as ts
from triosim.sweep import SweepSpec, run_points
from triosim.sweep.metrics import METRICS

LATENCY_S = 0.02  # of a simulated point on a worker elsewhere


class Answering(Executor):
    """Knows every answer at once: what is left is the sweep's own work."""

    def submit(self, function, /, *arguments, **named):
        row = {"problem": None, "fits": True, **dict.fromkeys(METRICS, 1.0)}
        future: Future = Future()
        future.set_result({digest: row for digest, _ in arguments[0]})
        return future


class Elsewhere(ThreadPoolExecutor):
    """Workers that only take their time."""

    def submit(self, function, /, *arguments, **named):
        def answer(batch):
            time.sleep(LATENCY_S * len(batch))
            row = {"problem": None, "fits": True, **dict.fromkeys(METRICS, 1.0)}
            return {digest: row for digest, _ in batch}

        return super().submit(answer, *arguments)


def cases_of_8_gpus(points: int) -> SweepSpec:
    """All cases of the sample trace on 8 GPUs over as many bandwidths as make the points."""
    each = -(-points // 5)
    speeds = [10 + 1000 * k / each for k in range(each)]
    over = {"case": [0, 1, 2, 3, 4], "ptp_bandwidth_gb_per_s": speeds}
    return SweepSpec.made(ts.Scenario(gpus=8), over)


def seconds_of(work) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--search", action="store_true")
    options = parser.parse_args()
    spec = cases_of_8_gpus(options.points)
    own_s = seconds_of(lambda: list(run_points(spec, executor=Answering())))
    print(f"a sweep's own work: {own_s / len(spec) * 1e3:.2f} ms a point (target 2)")
    with tempfile.TemporaryDirectory() as folder:
        whole_s = seconds_of(lambda: list(run_points(spec, store=folder)))
        again_s = seconds_of(lambda: list(run_points(spec, store=folder)))
    rate = len(spec) / whole_s
    print(
        f"{len(spec):,} points of the 8-GPU cases: {whole_s:,.1f} s, {rate:,.0f}/s; 10,000 would "
        f"take {10_000 / rate:,.0f} s (target 180); from the store {again_s:,.1f} s"
    )
    one_s = 0.0
    for workers in (1, 2, 4, 8):
        few = cases_of_8_gpus(200)
        with Elsewhere(workers) as pool:
            took_s = seconds_of(lambda few=few, pool=pool: list(run_points(few, executor=pool)))
        one_s = one_s or took_s
        print(f"{workers} workers with {LATENCY_S * 1e3:g} ms a point: {one_s / took_s:.2f} times")
    if options.search:
        search()


def search() -> None:
    base = ts.TrainScenario(model="llama3-70b", gpus=512, stack="torchtitan-compile")
    began = time.perf_counter()
    found = ts.search(base, on_progress=_say)
    took_s = time.perf_counter() - began
    print(
        f"\n512 GPUs, Llama 70B: {took_s:.0f} s (target 60), {len(found.ranked)} layouts, "
        f"{found.plans:,} plans, {found.simulated:,} simulated"
    )


def _say(what: str, done: int, total: int) -> None:
    print(f"\r{what}: {done:,} of {total:,}".ljust(50), end="", file=sys.stderr)


if __name__ == "__main__":
    main()
