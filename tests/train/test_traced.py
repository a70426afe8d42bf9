"""A recorded step on the mesh: layers by module path, times, parameters, memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from triosim.errors import ConfigError
from triosim.trace import load_trace
from triosim.train import TrainScenario, make_plan, train
from triosim.train.layers import find_layers

SAMPLES = Path(__file__).resolve().parents[2] / "sample_trace"
GPT2, LLAMA = SAMPLES / "gpt2", SAMPLES / "llama-3.2-1b"
QUIET = {"launch_us": 0.0, "collective_us": 0.0, "overlap_slowdown": 0.0}


def run(folder, **settings):
    settings = {"machine": "switch", "constants": QUIET, **settings}
    batch = load_trace(folder).batch_size
    return train(TrainScenario(trace_dir=str(folder), **{"micro_batch_size": batch, **settings}))


@pytest.mark.parametrize(("folder", "layers"), [(GPT2, 12), (LLAMA, 16)])
def test_layers_are_found_by_module_path(folder, layers):
    trace = load_trace(folder)
    found = find_layers(trace)
    assert found.count == layers
    for phase in ("forward", "backward"):
        owned = [found.operators(layer, phase) for layer in range(-1, layers + 1)]
        assert sorted(i for part in owned for i in part) == list(trace.phase(phase))
        for layer in range(layers):
            paths = {trace.operators[i].module for i in owned[layer + 1]}
            assert any(f".{layer}" in path for path in paths)


@pytest.mark.parametrize("folder", [GPT2, LLAMA])
def test_one_gpu_takes_the_recorded_time(folder):
    """ORACLES 7.1, but for the optimizer, which is this plan's own."""
    trace, result = load_trace(folder), run(folder, gpus=1, dp_shard=1)
    recorded = sum(op.time_s for op in trace.operators if op.phase != "optimizer")
    own = result.writer.state.optimizer_s(0)
    assert result.step_s == pytest.approx(recorded + own, rel=1e-9)


def test_parameters_and_flops_are_the_traces():
    trace, result = load_trace(LLAMA), run(LLAMA, gpus=1, dp_shard=1)
    assert result.writer.state.count(0) == trace.meta["parameters"]
    counted = sum(op.flops or 0 for op in trace.operators if op.phase != "optimizer")
    assert result.model_flops == pytest.approx(counted)
    assert result.plan.seq == trace.meta["seq_len"]


def test_half_the_batch_takes_half_the_time_and_activations():
    whole, half = (run(GPT2, gpus=1, dp_shard=1, micro_batch_size=b) for b in (8, 4))
    passes = [
        sum(r.breakdown_splits["compute"][p] for p in ("forward", "backward"))
        for r in (whole, half)
    ]
    assert passes[1] == pytest.approx(passes[0] / 2)
    held = [int(r.fullest.bytes_by_category["activations"].max()) for r in (whole, half)]
    assert held[1] == pytest.approx(held[0] / 2, rel=0.01)


def test_recompute_runs_every_layer_again():
    kept, again = (run(GPT2, gpus=1, dp_shard=1, recompute=r) for r in ("none", "full"))
    trace = load_trace(GPT2)
    layers = find_layers(trace)
    forward = sum(
        trace.operators[i].time_s for n in range(12) for i in layers.operators(n, "forward")
    )
    assert again.step_s - kept.step_s == pytest.approx(forward, rel=1e-9)
    assert again.peak_memory_bytes < kept.peak_memory_bytes


@pytest.mark.parametrize(
    "settings",
    [{}, {"zero": 2}, {"dp_shard": 1, "dp_replicate": 4}, {"pp": 2, "global_batch": 64}],
)
def test_every_check_passes_under_data_and_pipeline_parallelism(settings):
    result = run(GPT2, gpus=4, **settings)
    assert [check.detail for check in result.checks if not check.passed] == []
    assert result.provenance["roofline"] == pytest.approx(1.0)


def test_a_boundary_carries_the_residual_stream():
    """GPT-2: 8 samples of 1,024 tokens, 768 wide in bf16."""
    result = run(GPT2, gpus=2, pp=2, dp_shard=1, global_batch=16)
    assert result.writer.blocks.handed_bytes == 8 * 1024 * 768 * 2


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"tp": 2}, "tp 2: a trace can be spread over dp and pp"),
        ({"precision": "fp8-rowwise"}, "precision fp8-rowwise: a trace has the types"),
        ({"recompute": "attention"}, "recompute attention: of a trace, none, full"),
        ({"pp": 2, "schedule": "zb-h1"}, "schedule zb-h1: needs the weights' part"),
        ({"layers": 4}, "layers 4: cannot be changed in a trace"),
        ({"model": "gpt2"}, r"trace_dir .*: give it or model \(gpt2\), not both"),
        ({"trace_dir": str(SAMPLES / "mlp")}, "trace_dir mlp: its operators carry no module paths"),
    ],
)
def test_what_a_trace_cannot_do_is_said(settings, sentence):
    with pytest.raises(ConfigError, match=sentence):
        make_plan(TrainScenario(**{"trace_dir": str(GPT2), "gpus": 4, **settings}))
