"""Megatron-LM's fused kernels: what they move, and when there are none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from triosim.workload import block_of, load_model

MODEL = load_model("gpt2")  # 12 heads
SEQ = 1024


def kernels(batch, kind, phase="forward"):
    block = block_of(MODEL, "dense", batch=batch, seq=SEQ, dtype="fp16", implementation=kind)
    return [op for op in block.ops if op.phase == phase]


def test_dropout_and_residual_sum_move_seven_bytes_an_element():
    """Two tensors of 2 bytes are read, one is written, with a mask of a byte."""
    elements = SEQ * MODEL.hidden
    joined = [op for op in kernels(1, "megatron") if op.name == "aten::dropout_add"]
    assert [op.work.bytes for op in joined] == [7 * elements] * 2


def test_the_softmax_reads_the_half_that_a_causal_mask_leaves():
    """Forward: half is read, all is written. Backward: halves of gradient and result."""
    scores = 2 * MODEL.heads * SEQ**2
    (forward,) = [op for op in kernels(1, "megatron") if "softmax" in op.name]
    (back,) = [op for op in kernels(1, "megatron", "backward") if "Softmax" in op.name]
    assert forward.work.bytes == pytest.approx(1.5 * scores)
    assert back.work.bytes == pytest.approx(2 * scores)


@pytest.mark.parametrize(("heads", "batch", "steps"), [(12, 1, 1), (6, 1, 5), (6, 2, 1), (3, 4, 1)])
def test_heads_of_samples_that_are_no_multiple_of_four_have_a_kernel_per_step(heads, batch, steps):
    """To float32, scale, mask, softmax, and back."""
    model = replace(MODEL, heads=heads, kv_heads=heads)
    block = block_of(model, "dense", batch=batch, seq=SEQ, dtype="fp16", implementation="megatron")
    names = [op.name for op in block.forward]
    first, last = (i for i, name in enumerate(names) if name == "aten::matmul")
    between = [name for name in names[first + 1 : last] if name != "aten::dropout"]
    assert len(between) == steps
