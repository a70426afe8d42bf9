"""What to change so that a plan fits: tried out one by one, the least slow-down first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from triosim.errors import TrioSimError
from triosim.train.resolve import make_plan
from triosim.train.scenario import TrainScenario

if TYPE_CHECKING:
    from triosim.train.plan import Plan
    from triosim.train.result import TrainResult

MOST = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """One setting, or a few, with which the step fits.

    `slowdown` is how much longer a token then takes: 0.1 is 10 %, below 0 it is faster.
    """

    settings: dict[str, Any]
    peak_memory_gib: float
    slowdown: float

    @property
    def text(self) -> str:
        return ", ".join(
            f"{name}={str(value).lower() if isinstance(value, bool) else value}"
            for name, value in self.settings.items()
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "settings": self.settings,
            "peak_memory_gib": self.peak_memory_gib,
            "slowdown": self.slowdown,
        }


def cheapest_changes(result: TrainResult) -> list[Change]:
    """The changes among `candidates` that fit, at most five."""
    found = []
    for settings in candidates(result):
        try:
            plan = make_plan(replace(result.scenario, **settings))
            other = result.run(plan)
        except TrioSimError:
            continue
        if other.fits:
            slowdown = result.tokens_per_s_per_gpu / other.tokens_per_s_per_gpu - 1
            found.append(
                Change(
                    settings=_said(settings, plan, result.scenario),
                    peak_memory_gib=other.peak_memory_gib,
                    slowdown=slowdown,
                )
            )
    return sorted(found, key=lambda change: (change.slowdown, len(change.settings)))[:MOST]


def _said(settings: dict[str, Any], plan: Plan, before: TrainScenario) -> dict[str, Any]:
    """Without a default that stays one; what replaces a chosen stage of ZeRO by its number."""
    said = {name: value for name, value in settings.items() if value is not None}
    if settings.get("zero", 0) is None and before.zero not in (None, plan.zero):
        said["zero"] = plan.zero
    return said


def candidates(result: TrainResult) -> Iterator[dict[str, Any]]:
    """More recompute, deeper sharding, smaller micro-batches, more ways to divide; and pairs."""
    scenario, plan = result.scenario, result.plan
    singles: list[dict[str, Any]] = [
        {"recompute": mode}
        for mode in ("attention", "selective-op", "selective-layer:2", "full")
        if mode != scenario.recompute and scenario.recompute != "full"
    ]
    if plan.sizes["dp_shard"] > 1:
        singles += [{"zero": zero} for zero in range(plan.zero + 1, 4)]
    elif plan.sizes["dp_replicate"] > 1:
        shards = plan.sizes["dp_replicate"]
        singles.append({"dp_replicate": 1, "dp_shard": shards, "zero": None})
    if scenario.micro_batch_size > 1:
        smaller = _smaller(scenario)
        singles.append({"micro_batch_size": smaller, "global_batch": plan.global_batch})
    if plan.sizes["tp"] > 1 and not scenario.sequence_parallel:
        singles.append({"sequence_parallel": True})
    if plan.sizes["tp"] > 1 and not scenario.loss_parallel:
        singles.append({"loss_parallel": True})
    singles += list(_more_ways(result))
    yield from singles
    for one in singles:
        if "recompute" in one and one["recompute"] == "full":
            yield from ({**one, **other} for other in singles if "recompute" not in other)


def _smaller(scenario: TrainScenario) -> int:
    return max(1, scenario.micro_batch_size // 2)


def _more_ways(result: TrainResult) -> Iterator[dict[str, Any]]:
    """Twice the ranks on an axis that divides tensors, taken from data parallelism."""
    plan = result.plan
    dp = plan.sizes["dp_shard"]
    if dp % 2:
        return
    for axis in ("tp", "pp", "cp"):
        yield {axis: plan.sizes[axis] * 2, "dp_shard": dp // 2, "zero": None}
