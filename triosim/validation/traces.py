"""Runs of TrioSim's own paper, from this project's traces."""

from __future__ import annotations

from typing import Any

from triosim.scenario import SAMPLE_TRACES, Scenario
from triosim.simulate import simulate

GPUS = 4
GPU, MACHINE = "a100-40gb", "dgx-a100"


def step_s(row: dict[str, Any]) -> float:
    """One step of Fig. 12: 4 A100, 128 samples in all."""
    scenario = Scenario(
        trace_dir=str(SAMPLE_TRACES / row["trace"]),
        case=row["case"],
        gpus=GPUS,
        batch_size_sim=row["batch_size_sim"],
        micro_batch_size=row.get("micro_batch_size"),
        gpu=GPU,
        topology=MACHINE,
    )
    return simulate(scenario).total_ms * 1e-3


def published_s(row: dict[str, Any]) -> float:
    return float(row["iteration_time_s"])
