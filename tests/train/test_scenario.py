"""Scenarios: defaults, JSON, and sentences that name the nearest legal values."""

from __future__ import annotations

import gc
import json

import pytest

from triosim.errors import ConfigError
from triosim.network.topology.machines import load_machine
from triosim.train import TrainScenario, make_plan


def test_defaults_are_those_of_the_command():
    scenario = TrainScenario()
    assert (scenario.model, scenario.gpu, scenario.gpus) == ("llama3-8b", "h100-sxm", 8)
    assert (scenario.stack, scenario.micro_batch_size) == ("generic", 1)
    assert (scenario.recompute, scenario.precision, scenario.compiled) == ("none", "bf16", False)
    plan = make_plan(scenario)
    assert plan.machine == "dgx-h100"
    assert plan.sizes == {"dp_replicate": 1, "dp_shard": 8, "cp": 1, "tp": 1, "pp": 1, "ep": 1}
    assert plan.zero == 3
    assert plan.global_batch == 8


def test_a_batch_by_default_fills_the_pipeline():
    plan = make_plan(TrainScenario(gpus=16, pp=4, micro_batch_size=2))
    assert plan.global_batch == 2 * 4 * 4
    assert plan.microbatches == 4


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"model": "llama3.1-405b", "gpus": 512, "tp": 8, "pp": 8, "rank_speed": {3: 0.5, 7: 1}},
        {"layers": 2, "hidden": 64, "heads": 4, "ffn": 128, "vocab": 100, "recompute": "full"},
        {"recompute": "selective-layer", "compile": True, "global_batch": 64},
        {"machine": load_machine("seminar-h100").description.to_dict()},
    ],
)
def test_a_scenario_survives_json(settings):
    scenario = TrainScenario(**settings)
    again = TrainScenario.from_dict(json.loads(scenario.to_json()))
    assert again == scenario
    assert hash(again) == hash(scenario)


def test_equal_spellings_are_equal_scenarios():
    one = TrainScenario(model="Llama3-8B", gpu="NVIDIA H100 80GB HBM3", rank_speed={2: 0.5, 1: 1})
    other = TrainScenario(model="llama3-8b", gpu="h100-sxm", rank_speed=((2, 0.5),))
    assert one == other


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"gpus": 3, "dp_shard": 1, "tp": 3}, r"tp 3: must divide the heads \(32\); 2 or 4 would"),
        ({"gpus": 12, "tp": 8}, "tp 8: must divide the 12 GPUs; nearest: 6 or 12"),
        ({"gpus": 8, "dp_shard": 3}, "dp_shard 3: .* nearest: 2 or 4"),
        ({"global_batch": 12}, "global_batch 12: must be a multiple of 8 .*; 8 or 16 would do"),
        (
            {"global_batch": 4},
            r"global_batch 4: must be a multiple of 8 \(micro-batches of 1 on 8 data-parallel "
            r"ranks\); 8 would do\.$",
        ),
        (
            {"pp": 64, "gpus": 64},
            r"^pp 64: cuts 32 layers into 64 parts; must be at most 34\.$",
        ),
        (
            {"pp": 8, "chunks": 8, "schedule": "interleaved"},
            r"^chunks 8: cuts 32 layers into 64 parts; must be at most 4\.$",
        ),
        (
            {"pp": 32, "gpus": 32, "schedule": "zb-v"},
            r"^pp 32: cuts 32 layers into 64 parts; must be at most 17\.$",
        ),
        (
            {"pp": 4, "schedule": "interleaved", "global_batch": 10},
            r"^global_batch 10: makes 5 micro-batches of 1 on each of 2 data-parallel ranks; "
            r"interleaved on 4 stages needs a multiple of 4 \(or fewer than that\); 8 or 16 would "
            r"do\.$",
        ),
        (
            {"gpus": 2, "pp": 2, "schedule": "dualpipe", "micro_batch_size": 6, "global_batch": 30},
            r"^global_batch 30: makes 5 micro-batches of 6; .*; 24 or 36 would do\.$",
        ),
        (
            {"pp": 4, "schedule": "zb-h2"},
            r"^global_batch 8 \(by default\): makes 4 micro-batches of 1 on each of 2 data-"
            r"parallel ranks; zb-h2 on 4 stages needs at least 2 x 4 - 1; 14 would do\.$",
        ),
        (
            {"pp": 64, "gpus": 64, "global_batch": 100_000},
            "^global_batch 100000: makes 100,000 micro-batches of 1; too many for 64 stages: .*; "
            r"1,536 would do\.$",
        ),
        (
            {"pp": 3, "gpus": 24, "schedule": "dualpipe"},
            r"^pp 3: dualpipe needs an even number; 2 or 4 would do\.$",
        ),
        (
            {"pp": 3, "gpus": 6, "schedule": "dualpipe"},
            r"^pp 3: dualpipe needs an even number; 2 would do\.$",
        ),
        (
            {"model": "deepseek-v3", "layers": 2},
            r"^layers 2: must be at least 3, for the first 3 layers of this model are dense\.$",
        ),
        ({"constants": {"gemm": 7.0}}, "^constants gemm=7: must be a number from 1e-06 to 1"),
        ({"rank_speed": {3: 0}}, "^rank_speed 3=0: must be a number from 0.001 to 1000"),
        ({"gpus": 8, "tp": 8, "zero": 2}, "zero 2: needs dp_shard of at least 2"),
        ({"cp": 4, "seq_len": 8196}, "seq_len 8196: ring-zigzag .*; 8,192 or 8,200 would do"),
        ({"cp": 16, "gpus": 48, "dp_shard": 3, "model": "gpt2"}, r"cp 16: .*12"),
        (
            {"cp": 4, "kv_heads": 6, "heads": 12, "head_dim": 128, "context": "ulysses"},
            r"cp 4: must divide the 6 KV heads of a rank, or they it; nearest: 3 or 6",
        ),
        ({"ep": 2}, "ep 2: must be 1, for the model has no experts"),
        ({"model": "mixtral-8x7b", "ep": 16, "gpus": 16}, r"ep 16: must divide the experts \(8\)"),
        ({"tp": 8, "async_tp": True}, "async_tp .*sequence_parallel"),
        ({"recompute": "selective-layer:0"}, "recompute selective-layer:0: must be none, full"),
        ({"zero": True}, "zero True: must be one of none given, 0, 1, 2, 3"),
        ({"gpus": 0}, "gpus 0: must be a whole number from 1"),
        ({"gpu": "h900"}, "gpu h900: no such GPU"),
        ({"machine": "laptop"}, "machine laptop: no such topology; known are ring"),
        ({"machine": {"kind": "web"}}, "machine web: no such kind of topology"),
        ({"stack": "pytorch"}, "stack pytorch: no such stack; known are generic"),
        ({"model": "llama9"}, "model llama9: no such model"),
        ({"rank_speed": {8: 0.5}}, "rank_speed 8: ranks go from 0 to 7"),
        ({"extra_ms_per_step": -1}, "extra_ms_per_step -1: must be a number from 0"),
        ({"model": "gpt2", "config": "x.json"}, "config x.json: give it or model"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(settings, sentence):
    context = {"context": "ulysses"} if settings.get("model") == "gpt2" else {}
    with pytest.raises(ConfigError, match=sentence):
        make_plan(TrainScenario(**{**context, **settings}))


def test_ulysses_needs_heads_and_a_ring_does_not():
    settings = {"model": "gpt2", "gpus": 8, "cp": 8, "seq_len": 1024}  # 12 heads
    make_plan(TrainScenario(**settings, context="ring"))
    with pytest.raises(ConfigError, match=r"cp 8: Ulysses divides the 12 heads.*6 or 12"):
        make_plan(TrainScenario(**settings, context="ulysses"))


def test_unknown_fields_and_versions_of_files_are_refused():
    with pytest.raises(ConfigError, match="no such field"):
        TrainScenario.from_dict({"gpu_count": 8})
    with pytest.raises(ConfigError, match="reads version 1"):
        TrainScenario.from_dict({"schema_version": 99})


def test_tensor_parallel_ranks_are_neighbours_and_stages_are_far_apart():
    """SEMINAR A1: 405B on dp 8 x tp 8 x pp 8: tp stays in a host; 32 sequences per dp rank."""
    plan = make_plan(TrainScenario(model="llama3.1-405b", gpus=512, tp=8, pp=8, global_batch=256))
    assert plan.groups("tp")[0].tolist() == list(range(8))
    assert plan.groups("dp_shard")[0].tolist() == list(range(0, 64, 8))
    assert plan.stage_ranks(1).ravel().tolist() == list(range(64, 128))
    assert plan.samples_per_rank == 32


def test_layers_that_do_not_divide_go_to_the_middle():
    plan = make_plan(TrainScenario(model="llama3.1-405b", gpus=8, pp=8))
    layers = [sum(unit.layer >= 0 for unit in units) for units in plan.virtual_stages]
    assert layers == [15, 16, 16, 16, 16, 16, 16, 15]
    assert [unit.layer for units in plan.virtual_stages for unit in units if unit.layer >= 0] == [
        *range(126)
    ]


def test_constants_of_the_stack_can_be_set():
    scenario = TrainScenario(constants={"overlap_slowdown": 0, "gemm": 0.5})
    assert scenario.constants == (("gemm", 0.5), ("overlap_slowdown", 0.0))
    assert TrainScenario.from_dict(json.loads(scenario.to_json())) == scenario
    stack = make_plan(scenario).stack
    assert (stack.gemm.value, stack.gemm.low, stack.gemm.high) == (0.5, 0.5, 0.5)
    with pytest.raises(ConfigError, match="constants colour: no such constant; known are gemm"):
        TrainScenario(constants={"colour": 1})
    with pytest.raises(ConfigError, match=r"constants gemm=2: must be a number from .* to 1"):
        TrainScenario(constants={"gemm": 2})


def test_a_run_leaves_the_garbage_collector_as_it_was(step):
    for on in (False, True):
        (gc.enable if on else gc.disable)()
        step(gpus=1)
        assert gc.isenabled() == on
