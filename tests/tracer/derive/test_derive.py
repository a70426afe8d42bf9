"""A derived trace against the real module: its operators, tensors, parameters and memory."""

from __future__ import annotations

import importlib

import pytest
import torch

from tracer.derive import derive
from triosim import Scenario, read_trace, simulate, write_trace
from triosim.errors import ConfigError
from triosim.trace.parameters import find_parameters
from triosim.trace.partners import find_partners

MODELS = ("zoo:mlp", "zoo:cnn", "zoo:language")
ODD_MODELS = ("zoo:recurrent", "zoo:positions", "zoo:checkpointed")
EVALUATE = "autograd::engine::evaluate_function: "


def real(model, batch_size=4):
    module, inputs, *loss = getattr(importlib.import_module("zoo"), model.partition(":")[2])(
        batch_size
    )
    return module, inputs, loss[0] if loss else lambda output: output


def test_the_operators_of_an_mlp_are_those_of_the_tracer(derived):
    trace = derived("zoo:mlp")
    shown = [
        (op.phase, op.name.removeprefix(EVALUATE), op.tensor_parallel, op.module)
        for op in trace.operators
    ]
    assert shown == [
        ("forward", "aten::linear", True, "0"),
        ("forward", "aten::relu", False, "1"),
        ("forward", "aten::linear", True, "2"),
        ("forward", "aten::zeros", False, ""),
        ("forward", "aten::cross_entropy_loss", False, ""),
        ("forward", "aten::ones_like", False, ""),
        ("backward", "NllLossBackward0", False, ""),
        ("backward", "LogSoftmaxBackward0", False, ""),
        ("backward", "AddmmBackward0", True, "2"),
        ("backward", "ReluBackward0", False, "1"),
        ("backward", "AddmmBackward0", True, "0"),
        ("optimizer", "aten::_foreach_lerp_", False, ""),
        ("optimizer", "aten::_foreach_mul_", False, ""),
        ("optimizer", "aten::_foreach_addcmul_", False, ""),
        ("optimizer", "aten::_foreach_sqrt", False, ""),
        ("optimizer", "aten::_foreach_div_", False, ""),
        ("optimizer", "aten::_foreach_add_", False, ""),
        ("optimizer", "aten::_foreach_addcdiv_", False, ""),
    ]
    assert {op.provenance for op in trace.operators} == {"roofline"}
    assert all(op.time_s > 0 for op in trace.operators)


def test_tensors_are_tied_together(derived):
    trace = derived("zoo:mlp")
    linear, relu, second = trace.operators[:3]
    backward = trace.operators[8]
    assert [t.kind for t in linear.inputs] == ["input", "weight", "bias"]
    assert [t.shape for t in linear.inputs] == [(4, 32), (64, 32), (64,)]
    assert [relu.inputs[0].id, relu.outputs[0].id] == [linear.outputs[0].id, second.inputs[0].id]
    gradient, weight, saved = backward.inputs
    assert (gradient.kind, weight) == ("grad_output", second.inputs[1])
    assert saved.storage == second.inputs[0].storage
    update = trace.operators[-1]
    gradients = {t.id for t in backward.outputs} & {t.id for t in trace.operators[11].inputs}
    assert len(gradients) == 2  # of the weight and of the bias
    assert {t.id for t in (*linear.inputs[1:], *second.inputs[1:])} < {t.id for t in update.inputs}


@pytest.mark.parametrize("model", [*MODELS, *ODD_MODELS])
def test_the_engine_recognises_the_parameters(derived, model):
    trace = derived(model)
    parameters = find_parameters(trace)
    module, *_ = real(model)
    assert parameters.bytes == sum(p.numel() * p.element_size() for p in module.parameters())
    assert trace.meta["parameters"] == sum(p.numel() for p in module.parameters())
    assert parameters.unresolved == []
    assert len(find_partners(trace)) == len(trace.phase("backward"))


@pytest.mark.parametrize("model", MODELS)
def test_saved_bytes_are_those_of_a_real_run(derived, model):
    module, inputs, loss = real(model)
    own = {t.untyped_storage()._cdata for t in (*module.parameters(), *module.buffers())}
    saved = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage._cdata not in own:
            saved[storage._cdata] = storage
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss(module(*inputs))
    expected = sum(storage.nbytes() for storage in saved.values())
    assert sum(op.saved_bytes or 0 for op in derived(model).operators) == expected > 0


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("case", [1, 2, 3, 4])
def test_the_engine_runs_it_and_every_check_passes(derived, tmp_path, model, case):
    write_trace(derived(model), tmp_path)
    result = simulate(Scenario(trace_dir=str(tmp_path), case=case, gpus=2))
    assert all(check.passed for check in result.checks)


def test_files_hold_all_of_it(derived, tmp_path):
    trace = derived("zoo:cnn")
    write_trace(trace, tmp_path)
    again = read_trace(tmp_path)
    assert [op.name for op in again.operators] == [op.name for op in trace.operators]
    assert [op.time_s for op in again.operators] == [op.time_s for op in trace.operators]
    assert [op.saved_bytes for op in again.operators] == [op.saved_bytes for op in trace.operators]
    assert (again.batch_size, again.name, again.warnings) == (4, "cnn", ())
    assert again.meta["source"] == "derived"


def test_a_backward_operator_has_its_forward_operators_module(derived):
    trace = derived("zoo:language")
    by_module = {op.module for op in trace.operators if "AddmmBackward" in op.name}
    names = ("qkv", "out", "up", "down")
    assert by_module == {f"blocks.{i}.{name}" for i in (0, 1) for name in names}


def test_batch_norm_is_the_makers(derived):
    names = {gpu: {op.name for op in derived("zoo:cnn", gpu=gpu).operators} for gpu in (
        "h100-sxm", "mi300x", "cpu",
    )}  # fmt: skip
    assert EVALUATE + "CudnnBatchNormBackward0" in names["h100-sxm"]
    assert EVALUATE + "MiopenBatchNormBackward0" in names["mi300x"]
    assert EVALUATE + "NativeBatchNormBackward0" in names["cpu"]


@pytest.mark.parametrize(
    ("dtype", "kernel"), [("bf16", "Flash"), ("fp16", "Flash"), ("fp32", "Efficient")]
)
def test_attention_is_one_kernel_of_the_gpu(derived, dtype, kernel):
    trace = derived("zoo:language", dtype=dtype)
    names = [op.name for op in trace.operators]
    assert names.count("aten::scaled_dot_product_attention") == 2
    assert names.count(f"{EVALUATE}ScaledDotProduct{kernel}AttentionBackward0") == 2
    assert not any("oftmax" in name for name in names if "LogSoftmax" not in name)


def test_attention_with_dropout_keeps_a_seed_and_says_so(derived):
    without, with_dropout = derived("zoo:language"), derived("zoo:language_with_dropout")
    assert [op.name for op in with_dropout.operators] == [op.name for op in without.operators]
    extra = [
        (b.saved_bytes or 0) - (a.saved_bytes or 0)
        for a, b in zip(without.operators, with_dropout.operators, strict=True)
    ]
    assert sorted(extra)[-3:] == [0, 16, 16]
    assert any("without its dropout" in note for note in with_dropout.meta["notes"])
    assert len(without.meta["notes"]) == 1


def test_math_attention_keeps_scores_and_mask(derived):
    flash = derived("zoo:language_with_dropout")
    math = derived("zoo:language_with_dropout", attention="math")
    saved = {trace: sum(op.saved_bytes or 0 for op in trace.operators) for trace in (flash, math)}
    assert saved[math] > saved[flash]
    assert any("SoftmaxBackward" in op.name for op in math.operators)
    assert len(math.meta["notes"]) == 1


def test_recurrent_layers_count_their_products_and_say_what_is_left_out(derived):
    trace = derived("zoo:recurrent")
    lstm = next(op for op in trace.operators if op.name == "aten::lstm")
    products = 2 * 4 * 5 * (4 * 16) * (8 + 16)  # batch, steps, gates, input and state
    assert lstm.flops == pytest.approx(products, rel=0.1)
    assert any("step by step" in note for note in trace.meta["notes"])


def test_a_checkpointed_block_saves_nothing_and_runs_again_in_backward(derived):
    trace = derived("zoo:checkpointed")
    assert not any(op.saved_bytes for op in trace.operators if op.module.startswith("block"))
    flops = {
        phase: sum(
            trace.operators[i].flops
            for i in trace.phase(phase)
            if trace.operators[i].tensor_parallel
        )
        for phase in ("forward", "backward")
    }
    assert flops["backward"] / flops["forward"] == pytest.approx(3, rel=0.1)


def test_dropout_is_the_fused_operator(derived):
    names = [op.name for op in derived("zoo:dropout").operators]
    assert "aten::dropout" in names
    assert EVALUATE + "NativeDropoutBackward0" in names


def test_half_precision_halves_the_bytes_and_not_the_flops(derived):
    single, half = derived("zoo:mlp"), derived("zoo:mlp", dtype="bf16")
    linear = [trace.operators[0] for trace in (single, half)]
    assert linear[0].bytes == 2 * linear[1].bytes
    assert linear[0].flops == linear[1].flops
    assert [op.dtype for op in linear] == ["fp32", "bf16"]


def test_float32_convolutions_run_in_tf32_and_products_on_demand(derived):
    kinds = {
        dtype: {op.name: op.dtype for op in derived("zoo:cnn", dtype=dtype).operators}
        for dtype in ("fp32", "tf32")
    }
    assert kinds["fp32"]["aten::conv2d"] == kinds["tf32"]["aten::conv2d"] == "tf32"
    assert (kinds["fp32"]["aten::linear"], kinds["tf32"]["aten::linear"]) == ("fp32", "tf32")


@pytest.mark.parametrize(("optimizer", "operators"), [("sgd", 3), ("adam", 7), ("adamw", 8)])
def test_optimizers_are_foreach(derived, optimizer, operators):
    trace = derived("zoo:mlp", optimizer=optimizer)
    names = [trace.operators[i].name for i in trace.phase("optimizer")]
    assert len(names) == operators
    assert all(name.startswith("aten::_foreach_") for name in names)


def test_deriving_leaves_no_trace_behind():
    before = torch.get_default_dtype()
    first, second = (
        derive("zoo:mlp", gpu="a100-80gb", batch_size=4, dtype="bf16") for _ in range(2)
    )
    assert torch.get_default_dtype() is before
    assert first.operators == second.operators
    assert not torch._C._len_torch_dispatch_stack()


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        ("zoo:greedy", {}, "needs the values of its tensors"),
        ("zoo:frozen", {}, "has no parameter to train"),
        ("zoo:wrong", {}, "must return a module"),
        ("zoo:nothing", {}, "zoo has no function nothing"),
        ("no.such.module:f", {}, "cannot be imported"),
        ("zoo:mlp", {"gpu": "h1"}, "no such GPU"),
        ("zoo:mlp", {"attention": "fast"}, "must be flash or math"),
        ("zoo:mlp", {"optimizer": "lion"}, "must be sgd, adam, adamw"),
        ("zoo:mlp", {"dtype": "fp7"}, "must be fp32"),
        ("zoo:mlp", {"batch_size": 0}, "whole number from 1"),
        ("zoo:mlp", {"seq_len": 0}, "whole number from 1"),
    ],
)
def test_what_cannot_be_derived(model, options, message):
    with pytest.raises(ConfigError, match=message):
        derive(model, **{"gpu": "h100-sxm", "batch_size": 2, **options})
