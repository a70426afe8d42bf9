"""Fit the constants of software stacks to published steps, whole model sizes kept apart.

    python -m benchmarks.stacks                    # every source, some ten minutes on two cores
    python -m benchmarks.stacks --fit torchtitan

Each model size is predicted once, with constants fitted to the other sizes: these are the errors to
quote. All sizes together give the constants to ship. A constant that ends on its bound, or on which
the rows say less than what was assumed before, is no measurement and is reported as unidentified.
Nothing is fitted per row; products, attention and memory are shares of what single kernels were
measured to reach.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.optimize import lsq_linear

from triosim.errors import ConfigError
from triosim.hardware.stacks import Constant, Stack, load_stack
from triosim.validation.predict import GENERIC, predict
from triosim.validation.tables import Row, load_source, rows_of

# What physics allows: a share is at most 1 (no kernel beats its own measurement for long) and well
# above 0; the CPU needs at least 2 us to launch a kernel and, in Python with autograd, up to 100.
# The clock: torchtitan's team places its part between 835 and 989 TFLOP/s.
BOUNDS: Mapping[str, tuple[float, float]] = {
    "gemm": (0.5, 1.0),
    "attention": (0.5, 1.0),
    "attention_backward": (0.5, 1.0),
    "memory": (0.5, 1.0),
    "fp8_rowwise": (0.4, 1.0),
    "launch_us": (2.0, 100.0),
    "compiled_launch_us": (1.0, 30.0),
    "collective_us": (5.0, 300.0),
    "hop_us": (50.0, 1000.0),
    "overlap_slowdown": (0.01, 0.5),
    "clock": (0.844, 1.0),
    "reserved": (1.0, 1.3),
}
PRIOR = 0.25  # a constant this far from the assumed one, in its logarithm, costs as much as
NOISE = 0.05  # one row that is this far off
STEP = 0.08  # of the finite differences, in the logarithm
POINTS = 3  # at which slopes are taken
PER_SIZE = 20  # rows of one size that a fit looks at; all are tested
MOST_CELLS = 3_500  # stages x micro-batches x chunks of those rows


@dataclass(frozen=True, kw_only=True)
class Job:
    """Sources that share constants; `clock` is the GPU whose clock is fitted.

    `start` is where a fit begins, by default what was assumed before. `allocator`: the sources
    print what the allocator holds.
    """

    sources: tuple[str, ...]
    constants: tuple[str, ...]
    clock: str | None = None
    start: Mapping[str, float]
    allocator: bool = False


JOBS: Mapping[str, Job] = {
    "torchtitan": Job(
        sources=("torchtitan",),
        constants=(
            "gemm", "attention", "attention_backward", "memory", "fp8_rowwise", "overlap_slowdown",
            "collective_us", "clock",
        ),
        clock="h100-96gb",
        start={},
        allocator=True,
    ),
    "selective-recompute": Job(
        sources=("selective-recompute",), constants=("gemm", "memory", "hop_us"), start={}
    ),
    "zero-bubble": Job(
        sources=("zero-bubble",), constants=("gemm", "memory", "hop_us"), start={}
    ),
    "vtrain": Job(
        sources=("vtrain-one-node", "vtrain-many-nodes"),
        constants=("gemm", "memory", "launch_us", "collective_us"),
        start={"launch_us": 10.0, "collective_us": 40.0},
    ),
}  # fmt: skip


def changed(stack: Stack, job: Job, values: Mapping[str, float]) -> Stack:
    """A stack with other values of the constants that are fitted."""
    fixed = {n: Constant(v, *BOUNDS[n]) for n, v in values.items() if n != "clock"}
    if job.clock is not None and job.clock in stack.clock:
        clock = Constant(values["clock"], *BOUNDS["clock"])
        stack = replace(stack, clock={**stack.clock, job.clock: clock})
    return replace(stack, **fixed)


def log_error(job: Job, values: Mapping[str, float], row: Row) -> float:
    """log(predicted / published); NaN where the engine has no answer."""
    stack = changed(load_stack(row.scenario.stack), job, values)
    found = predict(row.scenario, row.measured, stack).seconds
    return float("nan") if found is None else float(np.log(found / row.published_s))


class Fit:
    """Bounded least squares in logarithms, with a pull towards the generic stack's constants, so
    that a second fit does not start from the first.

    The logarithm of a step is taken to be linear in those of the constants around one point, which
    moves to the solution of all rows a few times; subsets are solved on the same slopes. Rows
    without an answer do not take part.
    """

    def __init__(self, job: Job, rows: Sequence[Row], pool: ProcessPoolExecutor) -> None:
        self.job = job
        self._pool = pool
        self._low, self._high = (np.log([BOUNDS[n][i] for n in job.constants]) for i in (0, 1))
        stack = load_stack(GENERIC)
        assumed = [max(_value(stack, job, name), BOUNDS[name][0]) for name in job.constants]
        self._assumed = np.minimum(np.log(assumed), self._high)
        self._rows = thinned(rows)
        self._balance = _balance(self._rows)
        point = np.array(
            [
                np.log(job.start.get(n, np.exp(x)))
                for n, x in zip(job.constants, self._assumed, strict=True)
            ]
        )
        for _ in range(POINTS):
            self._linearise(point)
            point = self._solve(np.ones(len(self._rows), dtype=bool))

    def errors(self, values: Mapping[str, float], rows: Sequence[Row]) -> np.ndarray:
        """log(predicted / published) of some rows."""
        own = partial(log_error, self.job, dict(values))
        return np.array(list(self._pool.map(own, rows, chunksize=2)))

    def without(self, size: str | None) -> dict[str, float]:
        """The constants that fit the rows of all other sizes best."""
        chosen = np.array([row.size != size for row in self._rows])
        return self._at(self._solve(chosen))

    def untold(self) -> list[str]:
        """Constants that all rows leave more than half as uncertain as they were assumed to be."""
        there = ~np.isnan(self._base)
        weight = _weights(self._base[there]) * self._balance[there]
        slopes = self._slopes[there] * weight[:, None] / NOISE
        prior = np.eye(len(self._point)) / PRIOR**2
        deviation = np.sqrt(np.diag(np.linalg.inv(slopes.T @ slopes + prior)))
        names = self.job.constants
        return [n for n, d in zip(names, deviation, strict=True) if d > PRIOR / 2]

    def _linearise(self, point: np.ndarray) -> None:
        self._point = point
        self._base = self.errors(self._at(point), self._rows)
        columns = []
        for i in range(len(point)):
            moved = point.copy()
            moved[i] += STEP if point[i] + STEP <= self._high[i] else -STEP
            error = self.errors(self._at(moved), self._rows)
            columns.append((error - self._base) / (moved[i] - point[i]))
        self._slopes = np.column_stack(columns)

    def _solve(self, chosen: np.ndarray) -> np.ndarray:
        there = chosen & ~np.isnan(self._base)
        slopes, base = self._slopes[there], self._base[there]
        weight = _weights(base) * self._balance[there]
        target = slopes @ self._point - base
        left = np.vstack((slopes * weight[:, None] / NOISE, np.eye(len(self._point)) / PRIOR))
        right = np.concatenate((target * weight / NOISE, self._assumed / PRIOR))
        return np.asarray(lsq_linear(left, right, bounds=(self._low, self._high)).x)

    def _at(self, x: np.ndarray) -> dict[str, float]:
        return dict(zip(self.job.constants, np.exp(x).tolist(), strict=True))


def _weights(errors: np.ndarray) -> np.ndarray:
    """Huber's: rows far off count as if they were three times the noise off."""
    return np.sqrt(np.minimum(1.0, 3 * NOISE / np.maximum(np.abs(errors), 1e-9)))


def _balance(rows: Sequence[Row]) -> np.ndarray:
    """Every source counts as much as the others, however many rows it has."""
    counts = Counter(row.source for row in rows)
    return np.sqrt([len(rows) / len(counts) / counts[row.source] for row in rows])


def _value(stack: Stack, job: Job, name: str) -> float:
    if name == "clock":
        return stack.clock_of(job.clock or "")
    return float(getattr(stack, name).value)


def thinned(rows: Sequence[Row]) -> list[Row]:
    """At most `PER_SIZE` rows of each source and size, spread over the table; not the largest."""
    chosen: list[Row] = []
    for key in dict.fromkeys((row.source, row.size) for row in rows):
        own = [row for row in rows if (row.source, row.size) == key]
        own = [row for row in own if _cells(row) <= MOST_CELLS]
        places = np.linspace(0, len(own) - 1, min(PER_SIZE, len(own))).round().astype(int)
        chosen += [own[i] for i in places]
    return chosen


def _cells(row: Row) -> int:
    s = row.scenario
    ranks = s.micro_batch_size * s.dp_replicate * max(1, s.dp_shard)
    return s.pp * s.chunks * ((s.global_batch or ranks) // ranks)


def judge(name: str, jobs: int) -> None:
    """Predict every size from the others, then fit all; print both."""
    job = JOBS[name]
    rows = [
        row
        for source in job.sources
        for row in rows_of(load_source(source))
        if row.counted and row.published_s is not None
    ]
    sizes = list(dict.fromkeys(row.size for row in rows))
    with ProcessPoolExecutor(max_workers=jobs) as pool:
        print(f"{name}: {len(rows)} rows, {len(sizes)} sizes", flush=True)
        fit = Fit(job, rows, pool)
        values = fit.without(None)
        print(f"  all sizes          {_said(values)}", flush=True)
        for constant, value in values.items():
            if on_bound(constant, value):
                print(f"  unidentified: {constant} = {value:.4g} is on its bound")
            elif constant in fit.untold():
                print(f"  unidentified: {constant} = {value:.4g}, the rows hardly tell it")
        tested: list[tuple[Row, float]] = []
        for size in sizes:
            values = fit.without(size)
            own = [row for row in rows if row.size == size]
            errors = np.expm1(fit.errors(values, own))
            tested += zip(own, errors, strict=True)
            print(f"  without {size:12} {_said(values)}; its error {_spread(errors)}", flush=True)
        for source in job.sources:
            errors = np.array([error for row, error in tested if row.source == source])
            print(f"  {source}, every size predicted from the others: {_spread(errors)}")
        if job.allocator:
            judge_memory(rows, sizes, pool)


def judge_memory(rows: Sequence[Row], sizes: Sequence[str], pool: ProcessPoolExecutor) -> None:
    """The allocator's share, each size's rows predicted with that of the others.

    It is the middle of what was published over what tensors and overhead are predicted to take.
    """
    known = [row for row in rows if row.published_gib is not None]
    held = np.array(list(pool.map(tensors_gib, known, chunksize=2)))
    shares = np.array([row.published_gib for row in known], dtype=float) / held
    own = np.array([row.size for row in known])
    errors = np.zeros(len(known))
    print(f"  reserved, all sizes {_share(shares):.3f}")
    for size in [size for size in sizes if size in own]:
        share = _share(shares[own != size])
        errors[own == size] = share / shares[own == size] - 1
        print(f"  without {size:12} {share:.3f}; its error {_spread(errors[own == size])}")
    print(f"  memory, every size predicted from the others: {_spread(errors)}")


def tensors_gib(row: Row) -> float:
    """Peak without what an allocator adds."""
    stack = load_stack(row.scenario.stack).changed({"reserved": 1.0})
    found = predict(row.scenario, row.measured, stack).gib
    return float("nan") if found is None else found


def _share(shares: np.ndarray) -> float:
    return float(np.clip(np.nanmedian(shares), *BOUNDS["reserved"]))


def on_bound(constant: str, value: float) -> bool:
    return any(abs(value / bound - 1) < 1e-3 for bound in BOUNDS[constant])


def _said(values: Mapping[str, float]) -> str:
    return ", ".join(f"{n} {v:.3g}{'*' if on_bound(n, v) else ''}" for n, v in values.items())


def _spread(errors: np.ndarray) -> str:
    found = errors[~np.isnan(errors)]
    if not len(found):
        return "none of its rows can be run"
    return (
        f"{np.abs(found).mean():.1%}, bias {found.mean():+.1%}, 90th percentile "
        f"{np.quantile(np.abs(found), 0.9):.1%}, {len(found)} rows"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stacks", description=__doc__)
    parser.add_argument("--fit", choices=JOBS, help="one of them (default: all)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    options = parser.parse_args()
    for name in [options.fit] if options.fit else JOBS:
        try:
            judge(name, options.jobs)
        except ConfigError as error:
            print(f"{name}: {error}")


if __name__ == "__main__":
    main()
