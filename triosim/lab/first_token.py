"""Prefill on the engine: when the first token is there, and what a GPU holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from triosim.train import TrainScenario, simulate_step

GIB = 2**30


@dataclass(frozen=True, kw_only=True, slots=True)
class FirstToken:
    """One prompt through the whole model; `kv_heads` are those that a rank keeps."""

    time_ms: float
    exposed_ms: float
    sent_bytes: float
    weights_gib: float
    keys_gib: float
    peak_gib: float
    capacity_gib: float
    fits: bool
    kv_heads: int


@lru_cache(maxsize=64)
def first_token(scenario: TrainScenario) -> FirstToken:
    """Raises `ConfigError` where the plan is not possible."""
    result = simulate_step(scenario)
    plan, held = result.plan, result.memory_breakdown_gib
    ways = plan.layout.tp * plan.layout.cp
    return FirstToken(
        time_ms=result.step_ms,
        exposed_ms=result.breakdown["exposed_communication"],
        sent_bytes=result.communication_bytes / scenario.gpus,
        weights_gib=held["parameters"],
        keys_gib=held["activations"],
        peak_gib=result.peak_memory_gib,
        capacity_gib=result.capacity_bytes / GIB,
        fits=result.fits,
        kv_heads=max(1, plan.model.groups // ways),
    )


def first_tokens(scenarios: Sequence[TrainScenario]) -> list[FirstToken]:
    """Several of them: what a worker runs."""
    return [first_token(scenario) for scenario in scenarios]
