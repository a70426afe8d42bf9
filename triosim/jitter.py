"""How a step's time varies: computing that jitters from step to step, GPUs that are slow at times.

Jitter is a factor on the computing time of each rank and step, log-normal with mean 1 and the given
standard deviation, independent between ranks and steps. Where all ranks wait for each other (cases
0 to 3) the step is as long as its slowest rank's: the largest of n factors has the distribution
F^n, so a thousand steps of 16,384 GPUs are a thousand numbers, each looked up on a curve of few
simulations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
MAX_SPEEDS = 16
STEPS = 2000
CURVE_POINTS = 7
_NORMAL = NormalDist()


@dataclass(frozen=True, kw_only=True, slots=True)
class StepTimes:
    """The step times of `steps` steps that were drawn, in milliseconds."""

    steps: int
    mean_ms: float
    p50_ms: float
    p95_ms: float
    least_ms: float
    most_ms: float

    @classmethod
    def of(cls, slow_s: Floats, usual_s: Floats | None = None, slow_every: int = 1) -> StepTimes:
        """One step out of `slow_every` is like one of `slow_s`, the others are like `usual_s`."""
        usual = np.zeros(0) if usual_s is None else usual_s
        drawn = np.concatenate((slow_s, usual))
        times_s = np.concatenate((slow_s, np.tile(usual, slow_every - 1)))
        p50, p95 = (float(q) * 1e3 for q in np.quantile(times_s, (0.5, 0.95)))
        return cls(
            steps=len(drawn),
            mean_ms=float(times_s.mean()) * 1e3,
            p50_ms=p50,
            p95_ms=p95,
            least_ms=float(times_s.min()) * 1e3,
            most_ms=float(times_s.max()) * 1e3,
        )


def _shape(jitter: float) -> float:
    """Sigma of a log-normal factor with mean 1 and that standard deviation."""
    return math.sqrt(math.log1p(jitter**2))


def draw_speeds(
    ranks: int,
    speeds: Mapping[int, float],
    jitter: float,
    seed: int | tuple[int, int],
    most: int = MAX_SPEEDS,
) -> dict[int, float]:
    """Each rank's speed in one step; those that are not 1.

    Up to `most` ranks keep their own draw. Of more, the slowest keeps its own and the others take
    the mean factor of their group of similar ones, so that few classes of ranks remain.
    """
    if jitter == 0:
        return dict(speeds)
    sigma = _shape(jitter)
    random = np.random.default_rng(seed)
    factor = np.exp(random.normal(-(sigma**2) / 2, sigma, ranks))
    base = np.ones(ranks)
    for rank, speed in speeds.items():
        base[rank] = speed
    slowness = factor / base
    if ranks > most:
        order = np.argsort(slowness)
        for group in np.array_split(order[:-1], most - 1):
            slowness[group] = slowness[group].mean()
    return dict(enumerate((1 / slowness).tolist()))


def slowest_factors(
    ranks: int, speeds: Mapping[int, float], jitter: float, seed: int, steps: int = STEPS
) -> Floats:
    """The slowest rank's factor on the computing time in each of many steps.

    Of k ranks of equal speed the largest factor is F^-1(u^(1/k)) with u uniform.
    """
    at_full = ranks - len(speeds)
    groups = [(at_full, 1.0)] if at_full else []
    counts: dict[float, int] = {}
    for speed in speeds.values():
        counts[speed] = counts.get(speed, 0) + 1
    groups += [(count, speed) for speed, count in counts.items()]
    random = np.random.default_rng(seed)
    worst = np.zeros(steps)
    for count, speed in groups:
        u = random.uniform(size=steps)
        worst = np.maximum(worst, _largest(u, count, jitter) / speed)
    return worst


def _largest(u: Floats, count: int, jitter: float) -> Floats:
    if jitter == 0:
        return np.ones_like(u)
    sigma = _shape(jitter)
    # Through the upper tail: u^(1/count) itself rounds to 1 for many ranks.
    above = -np.expm1(np.log(np.clip(u, 1e-300, 1.0)) / count)
    z = np.array([-_NORMAL.inv_cdf(min(max(a, 1e-300), 1 - 1e-16)) for a in above.tolist()])
    return np.exp(sigma * z - sigma**2 / 2)


def on_curve(factors: Floats, step_s: Callable[[float], float]) -> Floats:
    """`step_s(factor)` for each factor, from a few evaluations and lines between them."""
    knots = np.unique(np.quantile(factors, np.linspace(0, 1, CURVE_POINTS)))
    return np.interp(factors, knots, [step_s(float(knot)) for knot in knots])
