"""What torchtitan's stacks do differently: its model's code, its ring, its memory."""

from __future__ import annotations

import pytest

from triosim.compile import compile_block
from triosim.train.blocks import BACKWARD, FORWARD
from triosim.workload import Layout, block_of, load_model

GIB = 2**30
TITAN = "torchtitan-compile"


def layer(**settings):
    model = load_model("llama3-8b")
    return block_of(model, "dense", batch=1, seq=1024, implementation="torchtitan", **settings)


def moved(ops, name):
    return sum(op.bytes for op in ops if name in op.name.casefold())


def test_rotary_positions_are_complex_products_in_float32():
    """Read and written at 4 bytes, with a cast before and after, for each number of q and k."""
    numbers = 1024 * (4096 + 1024)
    table = 2 * 1024 * 128 * 4  # of cosines and sines, once for q and once for k
    for ops in (layer().forward, layer().backward):
        assert moved(ops, "complex") == 8 * numbers + table


def test_inductor_leaves_complex_products_to_torch():
    """With the casts around it a rotation moves 20 bytes a number, of which fusion saves none."""
    kernels = [k for k in compile_block(layer()).forward_kernels if "complex" in k.name]
    assert [k.kind for k in kernels] == ["extern", "extern"]
    numbers, table = 1024 * (4096 + 1024), 2 * 1024 * 128 * 4
    assert sum(k.work.bytes for k in kernels) == 8 * numbers + table


def test_keys_and_values_are_copied_for_every_query_head():
    attention = next(op for op in layer().forward if op.kind == "attention")
    assert [v.shape[1] for v in attention.kernel.reads] == [32, 32, 32]
    grouped = block_of(load_model("llama3-8b"), "dense", batch=1, seq=1024)
    attention = next(op for op in grouped.forward if op.kind == "attention")
    assert [v.shape[1] for v in attention.kernel.reads] == [32, 8, 8]


def test_parallel_loss_passes_over_the_logits_step_by_step():
    """Of 4 bytes a logit: cast, maximum, difference, exponential, sum, logarithm; back zeros,
    exponential, sum, product, cast."""
    block = block_of(
        load_model("llama3-8b"), "loss", batch=1, seq=1024,
        layout=Layout(tp=8, loss_parallel=True),
    )  # fmt: skip
    logits = 1024 * 128_256 // 8
    forward = (2 + 4) + 4 + (4 + 4) + (4 + 4) + 4 + (4 + 4)
    backward = 4 + (4 + 4) + (8 + 4) + (4 + 4) + (4 + 2)
    assert sum(op.bytes for op in block.forward) == pytest.approx(forward * logits, rel=1e-3)
    assert sum(op.bytes for op in block.backward) == pytest.approx(backward * logits, rel=1e-3)
    assert block.saved_bytes == pytest.approx(4 * logits, rel=1e-3)


RING = {"gpus": 4, "dp_shard": 1, "cp": 4, "seq_len": 8192, "context": "ring-zigzag"}


def layer_pass(result, kind):
    unit = next(unit for unit in result.plan.units(0) if unit.layer >= 0)
    return result.writer.blocks.simulate(unit, kind)


def test_its_ring_gathers_repeated_heads_and_returns_float32(step):
    """Of 16 heads of 64 on 2048 tokens a rank: bf16 forward; float32 gradients, hop by hop."""
    result = step(stack=TITAN, **RING)
    keys = 2048 * 16 * 64 * 2  # numbers of keys and values
    ahead, back = (layer_pass(result, kind).moved for kind in (FORWARD, BACKWARD))
    gathered = ("all-gather", "context parallel")
    assert ahead[gathered].sent_bytes == pytest.approx(3 * 2 * keys)
    assert back[gathered].sent_bytes == pytest.approx(3 * 2 * keys)
    hops = back["send/recv", "context parallel"]
    assert (hops.transfers, hops.sent_bytes) == (4, pytest.approx(4 * 4 * keys))


def test_its_ring_computes_nothing_while_it_waits(step_on):
    """On slow links each transfer adds its whole time, where a ring that overlaps hides some."""
    for stack, hidden in ((TITAN, False), ("generic", True)):
        fast, slow = (step_on(speed, stack=stack, compile=True, **RING) for speed in (1e15, 5e10))
        waited = layer_pass(slow, FORWARD).seconds - layer_pass(fast, FORWARD).seconds
        busy = sum(m.busy_s for m in layer_pass(slow, FORWARD).moved.values())
        if hidden:
            assert waited < busy
        else:
            assert waited == pytest.approx(busy, rel=1e-3)


def test_attention_in_turn_adds_up_to_the_whole(step):
    rows = layer_pass(step(stack=TITAN, **RING), FORWARD).rows()
    calls = [b - a for stream, name, _, a, b in rows if "attention" in name and stream == "compute"]
    assert len(calls) == 4
    whole = step(stack=TITAN, **RING).writer.blocks
    op = next(op for op in whole.kept("dense", 0).forward if op.kind == "attention")
    assert sum(calls) == pytest.approx(whole.costs.op_s(op), rel=1e-9)


def test_the_allocator_holds_a_share_more_than_tensors_take(step):
    settings = {"stack": TITAN, "gpus": 2}
    tensors = step(constants={"reserved": 1.0}, **settings)
    held = step(constants={"reserved": 1.25}, **settings)
    assert held.peak_memory_bytes == pytest.approx(1.25 * tensors.peak_memory_bytes, abs=1)
    assert held.step_ms == tensors.step_ms
    assert sum(held.memory_breakdown_gib.values()) == pytest.approx(held.peak_memory_gib)


def test_a_stage_has_a_buffer_for_every_micro_batch_it_receives(step):
    """Of 2 stages each receives once: activations of one, gradients of the other."""
    result = step(stack=TITAN, gpus=2, pp=2, global_batch=6)
    held = dict(result.tasks.program.resident[0])
    assert held["communication"] == 6 * 2048 * 1024 * 2
    middle = step(stack=TITAN, gpus=4, pp=4, global_batch=6)
    held = [dict(resident)["communication"] for resident in middle.tasks.program.resident]
    assert held == [6 * 2048 * 1024 * 2 * ends for ends in (1, 2, 2, 1)]


def test_a_compiled_loss_keeps_half_precision_logits_alone(step):
    """Eager keeps float32 logarithms and makes two gradients of that size; compiled has the logits
    and their gradients of 2 bytes: 4 against 12 bytes a logit at the peak."""
    settings = {"gpus": 1, "dp_shard": 1, "layers": 1, "vocab": 128_000, "compile": True}
    old, new = (step(stack=name, constants={"reserved": 1.0}, **settings)
                for name in ("torchtitan-2024", TITAN))  # fmt: skip
    saved = old.peak_memory_bytes - new.peak_memory_bytes
    assert saved == pytest.approx((12 - 4) * 2048 * 128_000, rel=0.02)
