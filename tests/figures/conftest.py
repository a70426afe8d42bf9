"""Results that several figures draw, simulated once."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from triosim import Result, Scenario, simulate
from triosim.engine.program import Program, RankClass
from triosim.engine.timeline import Timeline
from triosim.figures.figure import Figure

SCENARIOS: dict[str, dict[str, object]] = {
    "alone": {"case": 0, "gpus": 1},
    "each alone": {"case": 0},
    "standard": {"case": 1},
    "distributed": {"case": 2},
    "tensor": {"case": 3},
    "pipeline": {"case": 4, "gpus": 4, "micro_batch_size": 1, "schedule": "1f1b"},
    "long pipeline": {"case": 4, "gpus": 16, "micro_batch_size": 1, "batch_size_sim": 64},
    "straggler": {"case": 2, "rank_speed": {3: 0.5}},
    "unfolded": {"case": 2, "fold": False},
    "mesh": {"case": 2, "interconnect": "optical", "mesh_rows": 2, "mesh_cols": 4},
    "mesh pipeline": {
        "case": 4, "interconnect": "optical", "mesh_rows": 2, "mesh_cols": 4, "micro_batch_size": 1,
    },
    "row": {"case": 2, "interconnect": "optical"},
    "huge": {"case": 2, "gpus": 16_384},
    "huge mesh": {
        "case": 2, "gpus": 16_384, "interconnect": "optical", "mesh_rows": 128, "mesh_cols": 128,
    },
    "small memory": {"case": 2, "capacity_log2": 31},
    "two hosts": {"case": 2, "gpus": 16, "topology": "seminar-h100"},
    "dead link": {
        "case": 2, "gpus": 16, "topology": "torus:4x4", "ptp_bandwidth_gb_per_s": 25,
        "dead_links": ("5-6",),
    },
    "broken ring": {"case": 1, "dead_links": ("3-4=0.5",), "jitter": 0.05},
    "pipeline on a switch": {
        "case": 4, "gpus": 4, "topology": "switch", "micro_batch_size": 1, "jitter": 0.1,
    },
}  # fmt: skip


@cache
def _simulate(name: str) -> Result:
    return simulate(Scenario(**SCENARIOS[name]))


@pytest.fixture(scope="session")
def result_of() -> Callable[[str], Result]:
    """A scenario of `SCENARIOS` by name."""
    return _simulate


def without_empty(value: Any) -> Any:
    """What has been unset leaves an empty mapping behind, or none."""
    if isinstance(value, list):
        return [without_empty(each) for each in value]
    if not isinstance(value, dict):
        return value
    pruned = {name: without_empty(each) for name, each in value.items()}
    return {name: each for name, each in pruned.items() if each not in ({}, [])}


@pytest.fixture(autouse=True)
def sent_as_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every figure that a test looks at, a page would have sent what Plotly makes of it."""
    check = Figure._check

    def both(figure: Figure, data: Any) -> None:
        sent = figure.to_json()
        check(figure, data)
        if data is figure._plain_traces:
            assert without_empty(json.loads(figure.to_json())) == without_empty(json.loads(sent))

    monkeypatch.setattr(Figure, "_check", both)


@pytest.fixture(scope="session")
def many_spans() -> Result:
    """100,000 operators on 32 ranks, written down rather than simulated."""
    ranks, each = 32, 3125
    generator = np.random.default_rng(7)
    program = Program(classes=[RankClass(members=(rank,)) for rank in range(ranks)])
    phases = ("forward", "backward", "optimizer")
    starts, ends = [], []
    for rank in range(ranks):
        edges = np.concatenate(([0.0], np.cumsum(generator.gamma(2.0, 1e-5, 2 * each))))
        starts.append(edges[0:-1:2])
        ends.append(edges[1::2])
        for k in range(each):
            program.compute(rank, f"operator {k}", phases[k % 3], 0.0)
    start, end = np.concatenate(starts), np.concatenate(ends)
    timeline = Timeline(
        program=program,
        start_s=start,
        end_s=end,
        log=np.zeros(0, dtype=np.int64),
        carried_bytes=np.zeros(0),
        peak_bytes_per_s=np.zeros(0),
        link_steps=[],
        events=0,
    )
    scenario = Scenario(case=0, gpus=ranks, fold=False)
    return Result(scenario=scenario, tasks=timeline, single_gpu_s=None, samples=1)
