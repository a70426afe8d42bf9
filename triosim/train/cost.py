"""What a whole training run takes: days, money and energy, at the speed of one simulated step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from triosim.errors import ConfigError

if TYPE_CHECKING:
    from triosim.train.result import TrainResult

HOUR_S = 3600.0


@dataclass(frozen=True, kw_only=True, slots=True)
class RunCost:
    """A run without failures and checkpoints; `energy_kwh` counts GPUs at their rated power."""

    tokens: float
    steps: float
    days: float
    gpu_hours: float
    cost: float | None
    energy_kwh: float
    power_source: str


def run_cost(result: TrainResult, tokens: float, gpu_hour_price: float | None) -> RunCost:
    """Tokens over tokens per second; energy is what the GPUs' data sheet says they draw."""
    if not tokens > 0:
        raise ConfigError("tokens", tokens, "must be a number above 0")
    if gpu_hour_price is not None and not gpu_hour_price >= 0:
        raise ConfigError("gpu_hour_price", gpu_hour_price, "must be a number from 0")
    seconds = tokens / result.tokens_per_s
    gpu_hours = seconds / HOUR_S * result.scenario.gpus
    gpu = result.plan.gpu
    return RunCost(
        tokens=tokens,
        steps=tokens / result.tokens,
        days=seconds / (24 * HOUR_S),
        gpu_hours=gpu_hours,
        cost=None if gpu_hour_price is None else gpu_hours * gpu_hour_price,
        energy_kwh=gpu_hours * gpu.power_w / 1e3,
        power_source=gpu.sources["power_w"],
    )
