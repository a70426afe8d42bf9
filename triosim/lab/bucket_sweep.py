"""A data-parallel step at many bucket sizes: what a worker process runs for the lab."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from triosim.scenario import Scenario
from triosim.simulate import simulate


@dataclass(frozen=True, kw_only=True, slots=True)
class SweepPoint:
    """One bucket size: the step, and what of its communication nothing hides, milliseconds."""

    bucket_mb: float
    step_ms: float
    exposed_ms: float
    buckets: int


def sweep_buckets(scenario: Scenario, sizes_mb: Sequence[float]) -> list[SweepPoint]:
    """The same step with every bucket size."""
    points = []
    for size_mb in sizes_mb:
        result = simulate(replace(scenario, bucket_mb=size_mb))
        points.append(
            SweepPoint(
                bucket_mb=size_mb,
                step_ms=result.total_ms,
                exposed_ms=result.exposed_communication_ms,
                buckets=sum(row.transfers for row in result.communication
                            if row.kind == "all-reduce"),
            )
        )  # fmt: skip
    return points
