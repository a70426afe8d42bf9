"""What a training result says: names, sums, signs, utilisation, a run's cost."""

from __future__ import annotations

import json
import pickle

import pandas as pd
import pytest

from triosim.errors import ConfigError
from triosim.export.chrome import chrome_trace
from triosim.train import TrainScenario, train
from triosim.workload import gpt_step_flops

NAMES = (
    "step_ms", "iteration_time_s", "tokens_per_s_per_gpu", "samples_per_s", "model_tflops_per_gpu",
    "hardware_tflops_per_gpu", "mfu", "hfu", "peak_memory_bytes", "peak_memory_gib",
    "peak_memory_by_stage_gib", "memory_breakdown_gib", "fits", "breakdown", "band", "provenance",
    "checks", "warnings", "scenario", "schema_version",
)  # fmt: skip


@pytest.fixture(scope="module")
def base():
    return train(TrainScenario(gpus=8, recompute="full"))


def test_all_names_are_there_and_in_the_file(base):
    values = json.loads(base.to_json())
    assert not [name for name in NAMES if name not in values]
    assert not [name for name in NAMES if not hasattr(base, name)]
    assert all(check.passed for check in base.checks)


def test_times_are_views_of_one_number(base):
    assert base.total_ms == base.step_ms == base.iteration_time_s * 1e3
    assert base.tokens_per_s_per_gpu == pytest.approx(8192 / base.iteration_time_s)
    assert base.samples_per_s == pytest.approx(8 / base.iteration_time_s)


def test_the_band_holds_the_step(base):
    low, high = base.band
    assert low < base.step_ms < high
    assert base.band.low_ms == low


@pytest.mark.parametrize(
    ("change", "sign"),
    [
        ({"recompute": "none"}, -1),
        ({"compile": True}, -1),
        ({"precision": "fp8-tensorwise", "compile": True}, -1),
        ({"gpu": "a100-80gb"}, +1),
        ({"gpu": "b200"}, -1),
        ({"precision": "fp32"}, +1),
        ({"seq_len": 4096}, -1),
        ({"micro_batch_size": 2}, +1),
    ],
)
def test_effects_have_their_sign(base, change, sign):
    other = train(TrainScenario(**{"gpus": 8, "recompute": "full", **change}))
    assert (other.step_ms - base.step_ms) * sign > 0


def test_utilisation_of_the_seminar():
    """SEMINAR A2: 6,667 tokens/s/GPU at 57.9 GFLOP a token are 386 TFLOP/s, 39 % of 989."""
    result = train(TrainScenario(gpus=8, micro_batch_size=2, compile=True))
    per_token = result.model_flops / result.tokens
    assert per_token / 1e9 == pytest.approx(57.9, abs=0.05)
    assert result.peak_flops == 989e12
    assert result.mfu == pytest.approx(result.tokens_per_s_per_gpu * per_token / 989e12)


def test_flops_of_a_gpt_step():
    """ORACLES F2, with and without full recompute (attention counted whole)."""
    settings = {
        "model": "megatron-22b", "gpus": 8, "tp": 8, "seq_len": 2048, "micro_batch_size": 4,
    }  # fmt: skip
    for recompute, again in (("none", False), ("full", True)):
        result = train(TrainScenario(**settings, recompute=recompute))
        want = gpt_step_flops(
            batch=4, seq=2048, layers=48, hidden=6144, vocab=result.plan.model.vocab,
            recompute=again,
        )  # fmt: skip
        assert result.hardware_flops == pytest.approx(want, rel=2e-3)


def test_compile_saves_the_same_seconds_on_8_and_on_128_gpus():
    """While communication is hidden (published rows: 0.386 and 0.408 s)."""
    saved = []
    for gpus in (8, 128):
        eager, compiled = (
            train(
                TrainScenario(
                    gpu="h100-96gb", gpus=gpus, micro_batch_size=2, recompute="selective-op",
                    stack="torchtitan-eager", compile=compile,
                )
            )
            for compile in (False, True)
        )  # fmt: skip
        saved.append(eager.iteration_time_s - compiled.iteration_time_s)
    assert saved[1] == pytest.approx(saved[0], rel=0.15)


def test_selective_recompute_beats_full():
    times = [
        train(TrainScenario(gpus=8, recompute=mode)).step_ms
        for mode in ("none", "attention", "selective-op", "selective-layer:2", "full")
    ]
    assert times[0] == min(times)
    assert times[-1] == max(times)


def test_ulysses_and_rings_hide_differently_but_compute_the_same():
    one, other = (
        train(TrainScenario(gpus=8, cp=8, seq_len=131_072, recompute="full", context=context))
        for context in ("ulysses", "ring-zigzag")
    )
    assert one.model_flops == other.model_flops
    kinds = [{row.kind for row in r.communication} for r in (one, other)]
    assert "all-to-all" in kinds[0]
    assert "send/recv" in kinds[1]


def test_a_run_has_days_cost_and_energy(base):
    cost = base.run_cost(1e12, 2.0)
    seconds = 1e12 / (base.tokens_per_s_per_gpu * 8)
    assert cost.days == pytest.approx(seconds / 86_400)
    assert cost.cost == pytest.approx(seconds / 3600 * 8 * 2.0)
    assert cost.energy_kwh == pytest.approx(seconds / 3600 * 8 * 0.7)  # 700 W each
    assert base.run_cost(1e12).cost is None
    with pytest.raises(ConfigError, match="tokens 0: must be a number above 0"):
        base.run_cost(0)


def test_a_measurement_is_compared_with_its_sign(base):
    assert base.difference_to(base.step_ms / 1.1) == pytest.approx(0.1)
    with pytest.raises(ConfigError, match="measured_ms"):
        base.difference_to(-1)


def test_the_timeline_is_a_frame_of_every_stream(base):
    frame = base.timeline
    assert isinstance(frame, pd.DataFrame)
    assert {"compute", "all-gather", "reduce-scatter"} <= set(frame.stream)
    assert frame.end_ms.max() == pytest.approx(base.step_ms)
    assert frame.members.eq(8).all()
    assert json.loads(chrome_trace(base))["traceEvents"]


def test_a_result_can_be_sent_to_another_process(base):
    again = pickle.loads(pickle.dumps(base))
    assert again.step_ms == base.step_ms
    assert again.breakdown == base.breakdown
    assert again.band == base.band


def test_a_slow_launch_is_warned_about():
    result = train(TrainScenario(model="gpt2", gpus=1, dp_shard=1, seq_len=64))
    assert result.breakdown["launch_wait"] > 0
    assert any("waits for the CPU's launches" in note for note in result.warnings)
    graphs = train(TrainScenario(model="gpt2", gpus=1, dp_shard=1, seq_len=64, cuda_graphs=True))
    assert graphs.step_ms < result.step_ms


def test_tensor_parallelism_over_hosts_is_warned_about():
    result = train(TrainScenario(gpus=16, tp=16, model="llama3-70b"))
    assert any("Groups of tp reach over 2 hosts" in note for note in result.warnings)


MECHANISMS = {"overlap_slowdown": 0.0, "launch_us": 0.0, "cpu_jitter": 0.0}


def gain(gpus, **constants):
    """By how much compile raises tokens/s of SEMINAR K3's runs."""
    eager, compiled = (
        train(
            TrainScenario(
                gpu="h100-96gb", gpus=gpus, micro_batch_size=2, recompute="selective-op",
                stack="torchtitan-eager", compile=compile,
                constants={**MECHANISMS, **constants},
            )
        )
        for compile in (False, True)
    )  # fmt: skip
    return compiled.tokens_per_s / eager.tokens_per_s - 1


def test_with_every_mechanism_off_the_gain_of_compile_does_not_grow_with_gpus():
    """SEMINAR K3: what could make it grow are switches, each of them off here."""
    assert gain(128) <= gain(8) + 0.005


def test_a_cpu_that_jitters_and_limits_makes_the_gain_grow():
    """With launches as the limit and a maximum over ranks, 128 GPUs wait longer than 8."""
    slow = {"launch_us": 600.0, "cpu_jitter": 0.1}
    assert gain(128, **slow) > gain(8, **slow)
