"""What a sweep found, and the views on it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from triosim.errors import ConfigError
from triosim.legal import SCHEMA_VERSION
from triosim.resolved import AnyScenario
from triosim.shown import Shown
from triosim.sweep.metrics import METRICS, Metric
from triosim.sweep.spec import SweepSpec


@dataclass(frozen=True, kw_only=True)
class Point:
    """One step of a sweep: what was set, and its metrics (None where it has none).

    `problem` says why there is no answer; `fits` whether the fullest GPU has the memory. `scenario`
    is None where the settings are not legal beside each other.
    """

    index: int
    settings: Mapping[str, Any]
    scenario: AnyScenario | None
    problem: str | None
    fits: bool | None
    metrics: Mapping[str, float | None]

    @property
    def feasible(self) -> bool:
        """Whether it has an answer and fits in memory."""
        return self.problem is None and self.fits is True

    @property
    def reason(self) -> str | None:
        """Why it is not feasible."""
        if self.problem is not None or self.feasible:
            return self.problem
        return f"does not fit: needs {self.metrics['peak_memory_gib'] or 0.0:,.1f} GiB on a GPU"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SweepResult(Shown):
    """All points of a sweep in order."""

    spec: SweepSpec
    points: tuple[Point, ...]

    @property
    def frame(self) -> pd.DataFrame:
        """A row for each point: what was set, every metric, fits, problem."""
        rows = [
            {**point.settings, **point.metrics, "fits": point.fits, "problem": point.problem}
            for point in self.points
        ]
        return pd.DataFrame(rows)

    def best(self, metric: str) -> Point | None:
        """The best feasible point by a metric."""
        return best_of(self.points, metric)

    def pareto(
        self, cost: str = "peak_memory_gib", gain: str = "samples_per_s_per_gpu"
    ) -> list[Point]:
        """Feasible points that none beats in both metrics, the best in `cost` first."""
        return pareto_of(self.points, cost, gain)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "schema_version": SCHEMA_VERSION,
            "scenario": self.spec.base.to_dict(),
            "sweep": {axis.field: list(axis.values) for axis in self.spec.axes},
            "points": [
                {
                    "settings": dict(point.settings),
                    "fits": point.fits,
                    "problem": point.problem,
                    "metrics": dict(point.metrics),
                }
                for point in self.points
            ],
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, allow_nan=False, default=str) + "\n"


def metric_named(name: str) -> Metric:
    """A metric of `METRICS`; raises `ConfigError`."""
    if name not in METRICS:
        raise ConfigError("metric", name, f"must be one of {', '.join(METRICS)}")
    return METRICS[name]


def best_of(points: Sequence[Point], metric: str) -> Point | None:
    """The best feasible point by a metric; None where none has it."""
    sign = 1.0 if metric_named(metric).less_is_better else -1.0
    rated = [(sign * v, p) for p in points if p.feasible and (v := p.metrics[metric]) is not None]
    return min(rated, key=lambda pair: pair[0])[1] if rated else None


def without_effect(points: Sequence[Point]) -> list[str]:
    """The fields that change no metric of any step, as far as steps have answers."""
    answered = [point for point in points if point.problem is None]
    return [name for name in (answered[0].settings if answered else ()) if _idle(name, answered)]


def _idle(name: str, points: Sequence[Point]) -> bool:
    alike: dict[str, list[Point]] = {}
    for point in points:
        others = {other: value for other, value in point.settings.items() if other != name}
        alike.setdefault(repr(others), []).append(point)
    groups = [group for group in alike.values() if len(group) > 1]
    return bool(groups) and all(
        point.metrics == group[0].metrics for group in groups for point in group
    )


def pareto_of(points: Sequence[Point], cost: str, gain: str) -> list[Point]:
    """Feasible points that none beats in both metrics, the best in `cost` first."""
    signs = [1.0 if metric_named(name).less_is_better else -1.0 for name in (cost, gain)]
    rated = []
    for point in points:
        a, b = point.metrics[cost], point.metrics[gain]
        if point.feasible and a is not None and b is not None:
            rated.append((signs[0] * a, signs[1] * b, point))
    front: list[Point] = []
    least = float("inf")
    for _, other, point in sorted(rated, key=lambda one: one[:2]):
        if other < least:
            front.append(point)
            least = other
    return front
