"""Blocks of the workload, compiled: traffic, what backward keeps, graph breaks."""

import pytest

from triosim.compile import LaunchCosts, compile_block, launch_timeline
from triosim.errors import ConfigError
from triosim.hardware import load_gpu, predict_s
from triosim.workload import PARTS, Layout, block_of, load_model

SEQ = 4096
LAYER = "model.layers.{}"


def dense(implementation="sdpa", part="dense", model="llama3-8b", **settings):
    return block_of(
        load_model(model), part, batch=2, seq=SEQ, dtype="bf16", implementation=implementation,
        **settings,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("model", "part"),
    [
        (model, part)
        for model in ("llama3-8b", "gpt2", "mixtral-8x7b")
        for part in PARTS
        if part != "moe" or model == "mixtral-8x7b"
    ],
)
def test_compiling_saves_kernels_and_traffic_and_loses_no_work(model, part):
    block = block_of(load_model(model), part, batch=1, seq=1024, implementation="eager")
    compiled = compile_block(block)
    # Eager backward of a layer norm counts as one kernel; it is sums along rows and, in pieces,
    # across them, then the pieces' sums for weight and bias.
    layer_norms = sum(op.kind == "norm" for op in block.backward)
    assert compiled.launches <= len(block.ops) + 3 * layer_norms
    # Sums of one number per row, which eager norms do not count, are less than two percent.
    assert compiled.bytes <= 1.02 * sum(op.work.bytes for op in block.ops)
    # Element-wise work may run a second time in backward; products never do.
    products = sum(op.flops for op in block.ops if op.kind in ("gemm", "attention"))
    known = [compiled.call(kernel) for kernel in compiled.kernels]
    calls = [op for op in known if op is not None and op.kind in ("gemm", "attention")]
    assert sum(op.flops for op in calls) == pytest.approx(products)
    assert sum(kernel.flops for kernel in compiled.kernels) >= products


def test_a_compiled_llama_layer_keeps_what_fused_stacks_keep():
    # Norms, rotation and SwiGLU in hand-written kernels keep the least that backward needs.
    assert compile_block(dense("sdpa")).kept_bytes == dense("flash").saved_bytes


def test_norm_and_the_operators_around_it_are_one_kernel():
    forward = compile_block(dense()).forward_kernels
    first = forward[0]
    assert first.module == f"{LAYER}.input_layernorm"
    tokens, hidden = 2 * SEQ, 4096
    # Reads the input and the weight; writes the result and, for backward, a number per token.
    assert first.read_bytes == 2 * (tokens * hidden + hidden)
    assert first.written_bytes == 2 * tokens * hidden + 4 * tokens
    gated = next(k for k in forward if any("silu" in member for member in k.members))
    assert gated.bytes == 3 * 2 * tokens * 14336


def test_compiled_kernels_take_less_time_on_a_gpu_than_eager_ones():
    gpu, block = load_gpu("h100-sxm"), dense()
    compiled = sum(predict_s(gpu, kernel.work) for kernel in compile_block(block).kernels)
    assert compiled < sum(block.times_s(gpu))
    products = [op for op in block.ops if op.kind in ("gemm", "attention")]
    assert compiled > sum(predict_s(gpu, op.work) for op in products)


def test_a_break_inside_the_mlp_costs_kernels_traffic_memory_and_launches():
    whole = compile_block(dense())
    broken = compile_block(dense(), breaks=(f"{LAYER}.mlp.act_fn",))
    assert [len(c.forward) for c in (whole, broken)] == [1, 2]
    assert [len(c.backward) for c in (whole, broken)] == [1, 2]
    assert broken.launches > whole.launches
    assert broken.bytes > whole.bytes
    # What the first graph hands over is kept: silu(gate), which would be computed again.
    assert broken.kept_bytes - whole.kept_bytes == 2 * (2 * SEQ) * 14336
    gpu, costs = load_gpu("h100-sxm"), LaunchCosts()
    steps = [
        launch_timeline(
            [[predict_s(gpu, k.work) for k in graph.kernels] for graph in c.forward], costs
        )
        for c in (whole, broken)
    ]
    added_s = steps[1].cpu_s - steps[0].cpu_s
    extra = len(broken.forward_kernels) - len(whole.forward_kernels)
    assert added_s == pytest.approx(costs.guard_s + costs.break_s + extra * costs.launch_s)


def test_a_break_at_the_end_changes_nothing_and_an_unknown_one_is_refused():
    whole = compile_block(dense(part="norm"))
    assert compile_block(dense(part="norm"), breaks=("model.norm",)).forward == whole.forward
    with pytest.raises(ConfigError, match="breaks lm_head: must be a module of the block"):
        compile_block(dense(part="norm"), breaks=("lm_head",))


def test_generated_products_take_in_what_follows():
    plain, tuned = compile_block(dense()), compile_block(dense(), templates=True)
    assert tuned.launches < plain.launches
    assert tuned.bytes < plain.bytes
    assert any(k.kind == "template" and len(k.nodes) > 1 for k in tuned.kernels)


def test_tensor_parallel_communication_stays_a_call_of_its_own():
    block = dense(layout=Layout(tp=4, sequence_parallel=True))
    compiled = compile_block(block)
    calls = [compiled.call(kernel) for kernel in compiled.kernels]
    found = [op.collective for op in calls if op is not None and op.collective]
    assert sorted(found) == sorted(op.collective for op in block.ops if op.collective)
