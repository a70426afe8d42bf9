"""A compiled step runs the kernels that torch.compile makes of each part."""

from __future__ import annotations

import pytest

from triosim.compile import compile_block
from triosim.errors import ConfigError
from triosim.train.blocks import BACKWARD, FORWARD
from triosim.train.notes import assumptions_of
from triosim.train.ran import run_of
from triosim.train.recompute import Kept
from triosim.workload import block_of, flash_layer_bytes, load_model


def layer(seq: int = 1024):
    return block_of(load_model("llama3-8b"), "dense", batch=1, seq=seq)


def test_kernels_launches_and_bytes_are_those_of_the_fusion(step):
    blocks = step(gpus=1, compile=True).writer.blocks
    unit = blocks.plan.virtual_stages[0][1]
    compiled = compile_block(blocks.block("dense"))
    ahead, back = (blocks.simulate(unit, kind) for kind in (FORWARD, BACKWARD))
    assert ahead.kernels == len(compiled.forward_kernels)
    assert back.kernels == len(compiled.backward_kernels)
    run = blocks.kept("dense", 0).run
    assert sum(ran.op.work.bytes for ran in (*run.forward, *run.backward)) == pytest.approx(
        sum(kernel.work.bytes for kernel in compiled.kernels)
    )


def test_communication_stays_where_it_was_with_the_bytes_it_had(step):
    """Fusion moves no bytes between ranks, with and without sequence parallelism."""
    for sequence_parallel in (False, True):
        eager, compiled = (
            step(gpus=4, tp=4, sequence_parallel=sequence_parallel, compile=compile)
            for compile in (False, True)
        )
        assert eager.sent_bytes("tensor parallel") > 0
        assert compiled.sent_bytes("tensor parallel") == eager.sent_bytes("tensor parallel")


def test_a_compiled_layer_keeps_what_fused_stacks_keep():
    """The partition finds what hand-written kernels keep (closed form of the workload)."""
    block, model = layer(), load_model("llama3-8b")
    kept = Kept(run_of(block, compiled=True), "none").bytes
    assert kept == pytest.approx(flash_layer_bytes(model, batch=1, seq=1024), rel=0.01)
    assert kept < Kept(run_of(block, compiled=False), "none").bytes


@pytest.mark.parametrize("compiled", [False, True])
def test_full_recompute_keeps_the_entry_and_runs_all_of_forward_again(compiled):
    run = run_of(layer(), compiled=compiled)
    full = Kept(run, "full")
    assert full.bytes == 1024 * 4096 * 2
    assert full.again == full.forward


def test_selective_recompute_of_a_compiled_layer_multiplies_only_what_it_must():
    """torchtitan keeps q, v, gate and attention: k, out and up are multiplied again.

    Of these "out" makes the residual and "up" the product's input, both of which backward reads.
    Its policy also names "down", whose result no gradient needs: a compiled graph drops it.
    """
    run = run_of(layer(), compiled=True)
    kept = Kept(run, "selective-op")
    products = [op for op in kept.again if op.kind == "gemm"]
    assert len(products) == 3
    assert not [op for op in kept.again if op.kind == "attention"]
    h, kv, ffn, tokens = 4096, 1024, 14336, 1024
    attention = tokens * (h * 2 + 32 * 4)  # the result and one float32 sum per row and head
    products_bytes = tokens * 2 * (h + kv + ffn)  # q, v, gate
    assert kept.bytes == tokens * h * 2 + attention + products_bytes
    eager = Kept(run_of(layer(), compiled=False), "selective-op")
    assert eager.bytes == kept.bytes + tokens * h * 2


def test_memory_alive_in_a_pass_is_less_than_eager_needs():
    fused, eager = (Kept(run_of(layer(), compiled=c), "full") for c in (True, False))
    assert 0 < fused.forward_bytes < eager.forward_bytes
    assert 0 < fused.work_bytes < eager.work_bytes


@pytest.mark.parametrize("stack", ["megatron-2021", "megatron-core", "deepspeed"])
def test_kernels_fused_by_hand_stay(step, stack):
    compiled = step(gpus=1, stack=stack, compile=True)
    assert not compiled.plan.fused
    assert (
        compiled.writer.blocks.kept("dense", 0).run.block.ops
        == compiled.writer.blocks.block("dense").ops
    )
    assert any("fused by hand" in note for note in assumptions_of(compiled.plan))


def test_a_backward_pass_in_two_parts_says_which_kernels_it_takes(step):
    split = step(gpus=2, pp=2, schedule="zb-h1", global_batch=4, compile=True)
    assert not split.plan.fused
    assert any("splits backward" in note for note in assumptions_of(split.plan))


@pytest.mark.parametrize(
    "settings",
    [
        {"precision": "fp8-rowwise"}, {"precision": "fp32"}, {"tp": 2, "sequence_parallel": True},
        {"cp": 2}, {"cp": 2, "context": "allgather"}, {"pp": 2}, {"cuda_graphs": True},
        {"recompute": "selective-op"}, {"recompute": "attention"},
        {"experts": 4, "ep": 2, "top_k": 2},
    ],
)  # fmt: skip
def test_compile_saves_time_with_everything_else(step, settings):
    eager, compiled = (step(gpus=2, compile=compile, **settings) for compile in (False, True))
    assert compiled.plan.fused
    assert compiled.step_ms < eager.step_ms


def launch_bound(step, graph_breaks, **settings):
    """Kernels, and seconds of a layer's forward where each launch takes the CPU a millisecond."""
    slow = {"compiled_launch_us": 1000, "graph_us": 1000}
    blocks = step(
        gpus=1, compile=True, graph_breaks=graph_breaks, constants=slow, **settings
    ).writer.blocks
    made = blocks.simulate(blocks.plan.virtual_stages[0][1], FORWARD)
    return made.kernels, made.seconds


@pytest.mark.parametrize(("breaks", "count"), [("self_attn", 1), ("self_attn,mlp.act_fn", 2)])
def test_a_graph_break_costs_python_and_what_could_have_been_fused(step, breaks, count):
    """The CPU is busy 5 us with the break and 4 us to call the next graph."""
    kernels, whole_s = launch_bound(step, None)
    cut_kernels, cut_s = launch_bound(step, breaks)
    blocks = step(gpus=1, compile=True, graph_breaks=breaks).writer.blocks
    names = [f"model.layers.{{}}.{name}" for name in breaks.split(",")]
    compiled = compile_block(blocks.block("dense"), breaks=tuple(sorted(names)))
    assert len(compiled.forward) == count + 1
    assert cut_kernels == len(compiled.forward_kernels) >= kernels
    assert whole_s == pytest.approx(kernels * 1e-3)
    assert cut_s == pytest.approx(cut_kernels * 1e-3 + count * 9e-6)


def test_each_graph_between_breaks_is_a_cuda_graph_of_its_own(step):
    """Short kernels: the layer takes as long as the CPU needs to launch its graphs."""
    short = {"seq_len": 128, "cuda_graphs": True}
    (_, whole_s), (_, cut_s) = (
        launch_bound(step, breaks, **short) for breaks in (None, "self_attn")
    )
    assert whole_s == pytest.approx(1e-3)
    assert cut_s == pytest.approx(2e-3 + 9e-6)


def test_breaks_are_checked(step):
    with pytest.raises(ConfigError, match="graph_breaks attn: must be modules of a layer"):
        step(gpus=1, compile=True, graph_breaks="attn")
    with pytest.raises(ConfigError, match="graph_breaks self_attn: needs layers that"):
        step(gpus=1, compile=False, graph_breaks="self_attn")
    with pytest.raises(ConfigError, match="must be modules with commas"):
        step(gpus=1, graph_breaks=3)
