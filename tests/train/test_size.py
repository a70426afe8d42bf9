"""Tasks of a training step, estimated before any is written."""

from __future__ import annotations

from importlib import import_module

import pytest

from triosim.errors import Infeasible
from triosim.train import TrainScenario, make_plan, train
from triosim.train.size import size_of
from triosim.train.step import StepWriter

SMALL = {"layers": 8, "hidden": 64, "heads": 8, "ffn": 128, "vocab": 256, "seq_len": 64}


@pytest.mark.parametrize(
    "settings",
    [
        {"gpus": 8, "global_batch": 32},
        {"gpus": 4, "zero": 2, "global_batch": 16, "rank_speed": {1: 0.5}},
        {"gpus": 4, "dp_shard": 1, "dp_replicate": 4, "global_batch": 16},
        {"gpus": 4, "dp_shard": 1, "pp": 4, "global_batch": 16},
        {"gpus": 8, "pp": 4, "schedule": "interleaved", "chunks": 2, "global_batch": 32},
        {"gpus": 4, "dp_shard": 1, "pp": 4, "schedule": "dualpipe", "global_batch": 16},
        {"gpus": 4, "dp_shard": 1, "pp": 4, "schedule": "zb-h1", "stack": "megatron-core"},
        {"gpus": 8, "ep": 4, "experts": 8, "top_k": 2, "expert_ffn": 64, "global_batch": 16},
        {"gpus": 2, "offload": True, "recompute": "full", "global_batch": 8},
        {"gpus": 2, "tp": 2, "prefill": True},
    ],
)
def test_the_estimate_is_close_to_what_is_written(settings):
    plan = make_plan(TrainScenario(**SMALL, **settings))
    written = len(StepWriter(plan).write())
    assert written / 2 <= size_of(plan).tasks <= 2 * written


def test_too_large_a_step_is_refused_before_it_is_written(monkeypatch):
    monkeypatch.setattr(import_module("triosim.train.train"), "StepWriter", None)
    many = {**SMALL, "layers": 1000, "gpus": 8}
    with pytest.raises(Infeasible, match=r"4,000 micro-batches need about .*; use at most 399"):
        train(TrainScenario(**many, global_batch=8 * 4000))
