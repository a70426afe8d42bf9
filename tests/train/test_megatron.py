"""What Megatron-LM overlaps and what it waits for, against Korthikanti et al. and closed forms."""

from __future__ import annotations

from dataclasses import replace

import pytest

from triosim.hardware.stacks import Constant
from triosim.train import TrainScenario, make_plan
from triosim.train.blocks import BACKWARD, FORWARD
from triosim.train.costs import _UNALIGNED
from triosim.train.train import run_plan


def ran(stack="megatron-2021", changes=None, **settings):
    """A small step; `changes` are other properties of the stack."""
    small = {
        "layers": 4, "hidden": 2048, "heads": 16, "kv_heads": 16, "ffn": 8192, "vocab": 16_384,
        "seq_len": 2048, "gpu": "a100-80gb", "precision": "fp16", "model": "megatron-1.7b",
    }  # fmt: skip
    plan = make_plan(TrainScenario(**{**small, "stack": stack, **settings}))
    return run_plan(replace(plan, stack=replace(plan.stack, **(changes or {}))))


def layer_ms(result, kind):
    unit = next(unit for unit in result.plan.units(0) if unit.layer >= 0)
    return 1e3 * result.writer.blocks.simulate(unit, kind).seconds


# Table 4 of arXiv 2205.05198: a layer of 22B on 8 A100, micro-batch 4.
TABLE_4 = [(False, "none", 7.7, 11.9), (True, "none", 7.2, 11.8), (False, "full", 7.7, 19.5),
           (False, "attention", 7.7, 13.2), (True, "attention", 7.2, 13.1)]  # fmt: skip


@pytest.mark.parametrize(("sequence", "recompute", "forward_ms", "backward_ms"), TABLE_4)
def test_passes_of_a_layer_take_what_was_measured(sequence, recompute, forward_ms, backward_ms):
    """Both passes on their own: 6 % is twice what steps are asked to keep to."""
    found = ran(
        model="megatron-22b", layers=1, hidden=None, heads=None, kv_heads=None, ffn=None,
        vocab=None, gpus=8, dp_shard=1, tp=8, micro_batch_size=4, recompute=recompute,
        sequence_parallel=sequence,
    )  # fmt: skip
    assert layer_ms(found, FORWARD) == pytest.approx(forward_ms, rel=0.06)
    assert layer_ms(found, BACKWARD) == pytest.approx(backward_ms, rel=0.06)


def test_input_gradients_are_summed_beside_the_weight_gradients():
    """The products of this layer take longer than the sums: backward's transfers are all hidden."""
    wide = {"hidden": 8192, "ffn": 32768, "heads": 64, "kv_heads": 64, "layers": 1}
    mesh = {"gpus": 2, "tp": 2, "dp_shard": 1, "micro_batch_size": 4, **wide}
    beside = ran(**mesh)
    in_turn = ran(changes={"async_input_gradients": False}, **mesh)
    unit = next(unit for unit in beside.plan.units(0) if unit.layer >= 0)
    moved = beside.writer.blocks.simulate(unit, BACKWARD).moved.values()
    saved_ms = layer_ms(in_turn, BACKWARD) - layer_ms(beside, BACKWARD)
    assert sum(m.transfers for m in moved) == 2
    assert saved_ms == pytest.approx(1e3 * sum(m.busy_s for m in moved), rel=0.02)


def test_gradients_are_reduced_after_the_whole_of_backward():
    late = ran(gpus=4, dp_replicate=4, dp_shard=1, zero=0)
    program, tasks = late.tasks.program, late.tasks
    reduced = [t for t in range(len(program)) if program.name[t] == "reduce gradients"]
    backward = [t for t in range(len(program)) if " backward " in program.name[t]]
    assert len(reduced) == 1
    assert min(tasks.start_s[reduced]) >= max(tasks.end_s[backward])


@pytest.mark.parametrize("microbatches", [1, 3])
def test_a_stage_synchronises_before_every_pass(microbatches):
    """Of two stages the step waits 4 times for one micro-batch, and twice for each more (1F1B)."""
    hop = {"hop_us": Constant(1000.0, 1000.0, 1000.0)}
    none = {"hop_us": Constant(0.0, 0.0, 0.0)}
    mesh = {"gpus": 2, "pp": 2, "dp_shard": 1, "global_batch": microbatches}
    with_hop, without = (ran(changes=c, **mesh).step_s for c in (hop, none))
    assert with_hop - without == pytest.approx(1e-3 * (4 + 2 * (microbatches - 1)), rel=1e-3)


def test_adding_up_gradients_moves_what_autograd_moves():
    """Two tensors of 2 bytes are read and one is written; a layer of GPT has 12 h^2 parameters."""
    adds = ran("deepspeed", gpus=1, dp_shard=1, micro_batch_size=8)
    none = ran("deepspeed", {"accumulate_bytes": 0}, gpus=1, dp_shard=1, micro_batch_size=8)
    gpu, stack = adds.plan.gpu, adds.plan.stack
    rate = gpu.memory_bytes_per_s * gpu.efficiency["elementwise"] * stack.memory.value
    seconds = 6 * 12 * 2048**2 / rate
    longer_s = 1e-3 * (layer_ms(adds, BACKWARD) - layer_ms(none, BACKWARD))
    assert longer_s == pytest.approx(seconds, rel=0.02)


def test_a_vocabulary_that_is_no_multiple_of_eight_is_slow_on_one_rank_only():
    """NVIDIA's guide to matrix products: tensor cores take rows of 16 bytes."""

    def product_s(vocab, tp):
        result = ran(gpus=tp, tp=tp, dp_shard=1, vocab=vocab)
        blocks = result.writer.blocks
        op = next(op for op in blocks.block("head").forward if op.kind == "gemm")
        return blocks.costs.op_s(op)

    assert product_s(16_383, 1) == pytest.approx(product_s(16_384, 1) / _UNALIGNED, rel=1e-6)
    assert product_s(16_383, 2) == pytest.approx(product_s(16_384, 2), rel=1e-6)
