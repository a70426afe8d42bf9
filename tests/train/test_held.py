"""What is gathered or about to be scattered is bounded, however long a step is."""

import pytest

import triosim as ts

SLOW = {"model": "llama3-8b", "gpus": 16, "machine": "pcie-8", "gpu": "l40s", "seq_len": 512}
PIPELINE = {"model": "llama3.2-1b", "gpus": 8, "pp": 2, "global_batch": 8, "seq_len": 2048}
PARAMETERS = 8.030e9  # of Llama-3-8B, as published: 8.03 billion


def failed(result: ts.TrainResult) -> list[str]:
    return [check.name for check in result.checks if not check.passed]


@pytest.mark.parametrize("stack", ["deepspeed", "torchtitan-eager"])
def test_gradients_do_not_pile_up_where_the_network_is_slow(stack: str) -> None:
    """ORACLES Z1: ZeRO-2 needs less than ZeRO-1, as long as a step may be."""
    steps = [
        ts.train(ts.TrainScenario(**SLOW, stack=stack, zero=2, global_batch=batch))
        for batch in (32, 64, 128)
    ]
    assert len({step.peak_memory_bytes for step in steps}) == 1
    one = ts.train(ts.TrainScenario(**SLOW, stack=stack, zero=1, global_batch=128))
    assert steps[-1].peak_memory_bytes < one.peak_memory_bytes
    assert all(failed(step) == [] for step in steps)


def test_two_units_gradients_are_there_at_most() -> None:
    """One on its way and one being made; the table of 128,256 tokens is the largest."""
    found = ts.train(ts.TrainScenario(**SLOW, stack="deepspeed", zero=2, global_batch=128))
    largest = 2 * 128_256 * 4096 / 2**30
    held = max(
        float(curve.bytes_by_category["communication"].max()) / 2**30 for curve in found.memory
    )
    # Each also has a copy of what is sent while it is on its way.
    assert held <= 3 * largest


def test_prefill_gathers_parameters_once_where_it_keeps_them() -> None:
    scenario = {"model": "llama3-8b", "prefill": True, "zero": 3, "global_batch": 64}
    kept = ts.train(ts.TrainScenario(**scenario, reshard=False))
    again = ts.train(ts.TrainScenario(**scenario))
    whole = 2 * PARAMETERS / 2**30
    assert kept.memory_breakdown_gib["gathered"] == pytest.approx(whole, rel=2e-3)
    assert kept.step_ms < again.step_ms
    assert failed(kept) == failed(again) == []


def test_prefill_has_no_optimizer_to_wait_for() -> None:
    """Through two stages of equal work one micro-batch takes both, whoever updates when."""
    scenario = {"model": "llama3-8b", "prefill": True, "pp": 2, "global_batch": 4}
    one, other = (
        ts.train(ts.TrainScenario(**scenario, optimizer_sync=sync)) for sync in ("global", "stage")
    )
    assert one.step_ms == other.step_ms
    assert one.step_s >= 2 * min(b.classes_s["compute"] for b in one.breakdowns)
    assert failed(other) == []


def test_a_pipeline_that_shards_gradients_says_that_they_are_whole_for_long() -> None:
    """Whole until the last micro-batch; a stack that keeps gradients has the shards besides."""
    one, two = (ts.train(ts.TrainScenario(**PIPELINE, zero=zero)) for zero in (1, 2))
    shard = one.memory_breakdown_gib["gradients"] / 4
    assert two.peak_memory_gib - one.peak_memory_gib == pytest.approx(shard, rel=1e-6)
    said = "sharded or not, they are whole until then, beside their shards."
    assert any(assumed.endswith(said) for assumed in two.assumptions)
    assert failed(two) == []


@pytest.mark.parametrize("model", ["gpt2", "llama3.2-1b"])
@pytest.mark.parametrize("axes", [{"zero": 0}, {"dp_replicate": 2, "dp_shard": 1}])
def test_a_table_that_two_stages_share_is_no_gradient_twice(model, axes) -> None:
    step = ts.train(ts.TrainScenario(model=model, gpus=4, pp=2, seq_len=512, **axes))
    assert failed(step) == []


def test_prefill_has_nothing_for_the_host() -> None:
    with pytest.raises(ts.ConfigError, match="prefill keeps nothing for a backward pass"):
        ts.train(ts.TrainScenario(prefill=True, offload=True))


@pytest.mark.parametrize("precision", ["fp32", "tf32", "fp8-rowwise"])
def test_a_trace_keeps_its_types(precision: str) -> None:
    scenario = ts.TrainScenario(trace_dir="sample_trace/gpt2", gpus=1, precision=precision)
    with pytest.raises(ts.ConfigError, match=f"precision {precision}: .* taken in, this one bf16"):
        ts.train(scenario)


@pytest.mark.parametrize(
    ("gpu", "precision", "said"),
    [
        ("a100-80gb", "fp8-rowwise", "a100-80gb has no fp8: products are computed in bf16."),
        ("v100", "bf16", "v100 has no bf16: products are computed in fp32."),
        ("t4", "tf32", "t4 has no tf32: products are computed in fp32."),
    ],
)
def test_a_type_that_the_gpu_has_not_is_said(gpu: str, precision: str, said: str) -> None:
    small = ts.TrainScenario(model="gpt2", layers=2, gpu=gpu, precision=precision)
    assert said in ts.train(small).warnings
    usual = ts.train(ts.TrainScenario(model="gpt2", layers=2, gpu=gpu, precision="fp16"))
    assert not any("products are computed in" in warning for warning in usual.warnings)
