"""Steps of every kind to explain, simulated once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from triosim import Result, Scenario, TrainScenario, simulate, train
from triosim.engine.program import Program, RankClass
from triosim.network.links import Link, Load

TRACES: dict[str, dict[str, object]] = {
    "alone": {"case": 0, "gpus": 1},
    "standard": {"case": 1, "resident": True},
    "distributed": {"case": 2},
    "straggler": {"case": 2, "rank_speed": {3: 0.5}},
    "unfolded": {"case": 2, "gpus": 4, "fold": False, "rank_speed": {1: 2.0}},
    "tensor": {"case": 3, "rank_speed": {0: 0.8}},
    "pipeline": {"case": 4, "gpus": 4, "micro_batch_size": 1, "schedule": "1f1b"},
    "slow stage": {"case": 4, "gpus": 4, "micro_batch_size": 2, "rank_speed": {2: 0.5}},
    "circuits": {
        "case": 1, "interconnect": "optical", "mesh_rows": 2, "mesh_cols": 4,
        "circuit_setup_ms": 1.0,
    },
    "small memory": {"case": 2, "capacity_log2": 31},
    "machine": {"case": 2, "gpus": 16, "topology": "seminar-h100"},
}  # fmt: skip
TRAININGS: dict[str, dict[str, object]] = {
    "sharded": {"gpus": 8},
    "slow rank": {"gpus": 8, "tp": 2, "rank_speed": {3: 0.5}},
    "stages": {"gpus": 8, "pp": 4, "tp": 2, "global_batch": 8},
    "overlapping steps": {
        "gpus": 8, "pp": 4, "global_batch": 16, "optimizer_sync": "stage", "schedule": "zb-h1",
        "hidden": 4096, "heads": 32, "ffn": 16_384, "vocab": 128_000,
    },
    "launch-bound": {"gpus": 4, "tp": 4, "hidden": 256, "ffn": 512, "seq_len": 256},
    "experts": {"gpus": 4, "ep": 2, "experts": 4, "top_k": 2, "expert_skew": 1.5},
    "context": {"gpus": 4, "cp": 4, "context": "ring"},
    "offloaded": {"gpus": 4, "offload": True},
}  # fmt: skip
NAMES = (*TRACES, *TRAININGS)


@cache
def _result(name: str) -> Result:
    if name in TRACES:
        return simulate(Scenario(**TRACES[name]))
    return train(training(name))


def training(name: str) -> TrainScenario:
    """Four small layers in some plan."""
    small = {
        "layers": 4, "hidden": 1024, "heads": 16, "kv_heads": 4, "ffn": 4096, "vocab": 16_000,
        "seq_len": 2048,
    }  # fmt: skip
    return TrainScenario(**{**small, **TRAININGS[name]})


@pytest.fixture(params=NAMES)
def result(request: pytest.FixtureRequest) -> Result:
    """Each of the steps in turn."""
    return _result(request.param)


@pytest.fixture(scope="session")
def result_of() -> Callable[[str], Result]:
    """A step by name."""
    return _result


class Small:
    """A program written by hand: bytes and bytes/s of order one, so that seconds are too."""

    def __init__(self, *classes: RankClass, links: tuple[float, ...] = (1.0,)) -> None:
        self.program = Program(
            links=[
                Link(name=f"link {i}", bytes_per_s=speed, source=0, target=1)
                for i, speed in enumerate(links)
            ]
        )
        for rank_class in classes:
            self.program.add_class(rank_class)

    def move(self, name, ends, size, waits, *, latency_s=0.0, link=0, purpose="gradients"):
        load = Load(bytes_by_link=((link, size),), latency_s=latency_s, sent_bytes=size)
        return self.program.communicate(ends, name, purpose, size, load, waits)


@pytest.fixture
def small() -> type[Small]:
    return Small
