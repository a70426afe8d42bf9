"""FLOPs against the closed forms of ORACLES section 6."""

import pytest

from triosim.errors import ConfigError
from triosim.hardware import load_gpu
from triosim.workload import (
    Layout,
    block_of,
    gpt_step_flops,
    hardware_flops_per_token,
    load_model,
    model_flops_per_token,
    parts_of,
)
from triosim.workload.attention import attended_pairs


def product_flops(model, batch, seq, **options):
    """FLOPs of products and attention in the operators of a whole step, forward and backward."""
    blocks = [block_of(model, part, batch=batch, seq=seq, **options) for part in parts_of(model)]
    return sum(op.flops for b in blocks for op in b.ops if op.kind in ("gemm", "attention"))


def test_f1_a_product_is_2mnk():
    block = block_of(load_model("llama3-8b"), "dense", batch=2, seq=4096)
    (gate,) = (op for op in block.forward if op.module.endswith("gate_proj"))
    assert gate.flops == 2 * (2 * 4096) * 14336 * 4096
    parts = {op.part: op.flops for op in block.backward if op.module.endswith("gate_proj")}
    assert parts["dgrad"] == parts["wgrad"] == gate.flops


@pytest.mark.parametrize("name", ["megatron-22b", "megatron-175b", "megatron-530b"])
def test_f2_a_gpt_step(name):
    m = load_model(name)
    batch, seq, h, layers, vocab = 2, 2048, m.hidden, m.layers, m.vocab
    closed = 72 * batch * seq * layers * h**2 * (1 + seq / (6 * h) + vocab / (12 * layers * h))
    assert gpt_step_flops(
        batch=batch, seq=seq, layers=layers, hidden=h, vocab=vocab
    ) == pytest.approx(closed, rel=1e-12)
    found = product_flops(m, batch, seq, dtype="fp16", implementation="megatron")
    assert found == pytest.approx(closed, rel=1e-12)
    # Biases and norms multiply no matrix and are all that 6P counts beyond it.
    assert model_flops_per_token(m, seq) * batch * seq == pytest.approx(closed, rel=3e-4)


def test_f2_full_recomputation_is_the_96_form():
    size = {"batch": 8, "seq": 2048, "layers": 96, "hidden": 12288, "vocab": 51200}
    h, layers = 12288, 96
    closed = 96 * 8 * 2048 * layers * h**2 * (1 + 2048 / (6 * h) + 51200 / (16 * layers * h))
    assert gpt_step_flops(**size, recompute=True) == pytest.approx(closed, rel=1e-12)
    m = load_model("megatron-175b")
    full = hardware_flops_per_token(m, 2048, "full") * 8 * 2048
    assert full == pytest.approx(closed, rel=3e-4)


def test_f2_selective_recomputation_adds_the_core_of_attention():
    """arXiv 2205.05198, equation 9: 72BLsh^2 (1 + s/6h + V/12hL) + 4 B L s^2 h."""
    m = load_model("megatron-22b")
    added = hardware_flops_per_token(m, 2048, "attention") - model_flops_per_token(m, 2048)
    assert added == 4 * m.layers * 2048 * m.hidden
    with pytest.raises(ConfigError, match="recompute some: must be none, attention or full"):
        hardware_flops_per_token(m, 2048, "some")


def test_f3_llama_3_8b_takes_57_9_gflop_a_token():
    assert model_flops_per_token(load_model("llama3.1-8b"), 8192) == pytest.approx(57.9e9, rel=1e-3)


def test_f3_the_causal_half_is_a_switch():
    m = load_model("llama3-8b")
    whole, half = (model_flops_per_token(m, 8192, causal_half=on) for on in (False, True))
    assert whole - half == 6 * 32 * 4096 * 8192  # half of 12 L h s
    assert product_flops(m, 1, 8192, causal_half=False, implementation="flash") > product_flops(
        m, 1, 8192, implementation="flash"
    )
    # Fused attention computes its first product again in backward: 7 products for 6.
    extra = 2 * 32 * 4096 * 8192
    found = product_flops(m, 1, 8192, causal_half=False, implementation="flash")
    assert found / 8192 == pytest.approx(whole + extra, rel=3e-4)


def test_f3_experts_count_the_chosen_only():
    m = load_model("mixtral-8x7b")
    found = product_flops(m, 1, 2048, implementation="megatron")
    assert found / 2048 == pytest.approx(model_flops_per_token(m, 2048), rel=3e-4)


def test_latent_attention_takes_the_flops_of_its_matrices():
    m = load_model("deepseek-v3")
    found = product_flops(m, 1, 4096, implementation="megatron")
    assert found / 4096 == pytest.approx(model_flops_per_token(m, 4096), rel=3e-4)


def test_a_window_leaves_each_query_its_last_keys():
    seq, window = 64, 16
    seen = sum(min(i + 1, window) for i in range(seq))
    # The diagonal counts half: the convention that a causal mask halves s^2.
    found = attended_pairs(seq, seq, half=True, window=window)
    assert found == pytest.approx(seen, rel=0.02)
    assert attended_pairs(seq, seq, half=True, window=seq) == seq * seq / 2
    assert attended_pairs(seq, seq, half=False) == seq * seq


@pytest.mark.parametrize("implementation", ["eager", "sdpa", "megatron", "flash"])
def test_f4_no_operator_is_faster_than_the_gpu(implementation):
    gpu = load_gpu("h100-sxm")
    block = block_of(
        load_model("llama3-8b"), "dense", batch=1, seq=4096, implementation=implementation,
        layout=Layout(tp=2),
    )  # fmt: skip
    times = block.times_s(gpu)
    for op, seconds in zip(block.ops, times, strict=True):
        least_s = op.work.bytes / gpu.memory_bytes_per_s
        if op.kind in ("gemm", "attention"):
            least_s = max(least_s, op.flops / gpu.peak(op.work.dtype))
        assert seconds >= least_s
    assert block.times_s(gpu) is times
