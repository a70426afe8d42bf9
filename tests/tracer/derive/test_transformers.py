"""Published architectures: parameters as their cards say, FLOPs as closed forms give them."""

from __future__ import annotations

import pytest
from torch._subclasses.fake_tensor import FakeTensorMode

from tracer.models import build_job
from triosim.errors import ConfigError
from triosim.trace.parameters import find_parameters

pytest.importorskip("transformers", reason="needs transformers (pip install transformers)")


def matrix_flops(trace):
    """FLOPs of matrix products and attention, which closed forms count."""
    return sum(
        op.flops for op in trace.operators if op.tensor_parallel or "ttention" in op.name.lower()
    )


@pytest.mark.parametrize(
    ("model", "parameters"),
    [
        ("gpt2", 124_439_808),
        ("llama-3.2-1b", 1_235_814_400),
        ("bert-base", 109_514_298),
        ("vit-b-16", 86_567_656),
    ],
)
def test_parameters(derived, model, parameters):
    trace = derived(model, batch_size=2, dtype="bf16")
    assert trace.meta["parameters"] == parameters
    found = find_parameters(trace)
    assert found.bytes == 2 * parameters
    assert found.unresolved == []


# FLOPs forward and backward: 6 for each weight that multiplies a token (the tied head is one, the
# positions and norms are none) and attention's 7 products of which causal masks halve each:
# 14 x layers x heads x width x length^2 / 2 a sample.
@pytest.mark.parametrize(
    ("model", "weights", "layers", "width"),
    [
        ("gpt2", 12 * (4 * 768**2 + 8 * 768**2) + 50257 * 768, 12, 768),
        ("llama-3.2-1b", 1_235_814_400 - 33 * 2048, 16, 2048),
    ],
)
def test_flops_of_causal_models(derived, model, weights, layers, width):
    batch, length = 2, 512
    trace = derived(model, batch_size=batch, dtype="bf16")
    attention = 14 * layers * width * length**2 / 2 * batch
    expected = 6 * weights * batch * length + attention
    assert matrix_flops(trace) == pytest.approx(expected, rel=2e-3)


def test_flops_of_bert(derived):
    batch, length = 2, 512
    trace = derived("bert-base", batch_size=batch, dtype="bf16")
    weights = 12 * 12 * 768**2 + 768**2 + 30522 * 768  # layers, the head's transform, the head
    expected = 6 * weights * batch * length + 14 * 12 * 768 * length**2 * batch
    assert matrix_flops(trace) == pytest.approx(expected, rel=2e-3)


def test_a_derived_step_needs_no_mask_where_a_real_one_needs_none(derived):
    trace = derived("gpt2", batch_size=2, dtype="bf16")
    assert not any(t.kind == "attn_mask" for op in trace.operators for t in op.inputs)


def test_any_model_type_and_sequence_length_will_do():
    with FakeTensorMode():
        job = build_job("transformers:distilbert", 3, seq_len=64)
    assert sum(p.numel() for p in job.module.parameters()) > 60e6
    assert (job.seq_len, tuple(job.inputs["input_ids"].shape)) == (64, (3, 64))


@pytest.mark.parametrize(
    ("model", "seq_len", "message"),
    [("transformers:nope", None, "no architecture"), ("gpt2", 5000, "positions for 1024 tokens")],
)
def test_what_transformers_does_not_have(model, seq_len, message):
    with pytest.raises(ConfigError, match=message):
        build_job(model, 1, seq_len=seq_len)
