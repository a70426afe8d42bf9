"""Small training steps to look at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from triosim.network.topology.base import LinkSpec
from triosim.network.topology.describe import topology_of
from triosim.train import TrainResult, TrainScenario, make_plan, simulate_step
from triosim.train.train import run_plan


@pytest.fixture(scope="session")
def step() -> Callable[..., TrainResult]:
    """Simulate a step; keywords go to the scenario, four small layers on ideal links by default."""

    def run(*, fold: bool = True, **settings: object) -> TrainResult:
        return simulate_step(scenario(**settings), fold=fold)

    return run


@pytest.fixture(scope="session")
def step_on() -> Callable[..., TrainResult]:
    """The same with one switch whose links have a given speed."""

    def run(bytes_per_s: float, *, fold: bool = True, **settings: object) -> TrainResult:
        plan = make_plan(scenario(**settings))
        link = LinkSpec(bytes_per_s=bytes_per_s)
        topology = topology_of("switch", plan.scenario.gpus, link)
        return run_plan(replace(plan, topology=topology), fold=fold)

    return run


def scenario(**settings: object) -> TrainScenario:
    small = {
        "model": None, "layers": 4, "hidden": 1024, "heads": 16, "kv_heads": 4, "ffn": 4096,
        "vocab": 16_000, "seq_len": 2048, "machine": "switch",
    }  # fmt: skip
    if settings.get("model"):
        small = {"machine": "switch"}
    return TrainScenario(**{**small, **settings})
