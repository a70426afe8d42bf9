"""Module paths of real recordings against the models' own names, and what stays as it was."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import tracer
from tracer.collect.modules import module_ranges
from tracer.convert import convert, save
from tracer.convert.kineto import MODULE_RANGE
from tracer.derive import derive
from triosim.train import TrainScenario, train
from triosim.train.layers import find_layers

PRODUCTS = ("AddmmBackward0", "MmBackward0")  # of a Linear with a bias and without


def converted(recording):
    return convert(recording.profiler, recording.graph, meta=dict(recording.meta))[0]


def of_phase(trace, phase):
    """Name and module of each operator."""
    found = [trace.operators[i] for i in trace.phase(phase)]
    return [(op.name.rpartition(": ")[2], op.module) for op in found]


def record_step(folder, call, parameters, **options):
    """The trace of training with `call`, which gives a loss."""
    optimizer = torch.optim.SGD(parameters, lr=0.1)

    def step():
        optimizer.zero_grad()
        call().backward()
        optimizer.step()

    options = {"batch_size": 4, "iters": 4, "device": "cpu", "progress": False, **options}
    return converted(tracer.record(step, output=folder, **options))


class Stack(nn.Module):
    """Two numbered layers; `run` calls one of them."""

    def __init__(self, run):
        super().__init__()
        self.layers = nn.ModuleList([nn.Sequential(nn.Linear(8, 8), nn.ReLU()) for _ in range(2)])
        self.run = run

    def forward(self, x):
        for layer in self.layers:
            x = self.run(layer, x)
        return x.sum()


@pytest.fixture
def language(recorded):
    return converted(recorded("zoo:language"))


@pytest.fixture
def model():
    import zoo

    return zoo.LanguageModel()


def test_paths_are_the_names_of_the_model(language, model):
    paths = {path for path, _ in model.named_modules()}
    found = {op.module for op in language.operators}
    assert found <= paths
    # Lists run nothing themselves.
    assert paths - found <= {path for path, m in model.named_modules() if type(m) is nn.ModuleList}
    assert not any(op.name.startswith(MODULE_RANGE) for op in language.operators)


def test_the_layers_are_those_of_the_model(language, model):
    layers = find_layers(language)
    assert layers.count == len(model.blocks)
    for number in range(layers.count):
        for phase in ("forward", "backward"):
            assert layers.operators(number, phase)


def test_forward_and_backward_of_a_linear_have_its_path(language, model):
    forward = Counter(of_phase(language, "forward"))
    backward = Counter(of_phase(language, "backward"))
    linears = [path for path, part in model.named_modules() if isinstance(part, nn.Linear)]
    assert len(linears) == 2 * 4 + 1
    for path in linears:
        assert forward["aten::linear", path] == 1
        assert sum(backward[name, path] for name in PRODUCTS) == 1


def test_the_optimizer_has_none(language):
    assert {module for _, module in of_phase(language, "optimizer")} == {""}


@pytest.mark.parametrize("model", ["zoo:mlp", "zoo:cnn", "zoo:language"])
def test_they_are_those_of_the_derived_trace(recorded, model):
    """Which finds them without a profiler. A view has no kernel there and is left out."""
    measured, derived = converted(recorded(model)), derive(model, gpu="cpu", batch_size=4)
    for phase in ("forward", "backward"):
        rest = iter(of_phase(measured, phase))
        for expected in of_phase(derived, phase):
            assert expected in rest, f"{expected} is missing or out of order"


def test_a_recorded_transformer_goes_on_the_mesh(recorded, tmp_path):
    pytest.importorskip("transformers", reason="needs transformers (pip install transformers)")
    recording = recorded("zoo:tiny_gpt2")
    trace, report = convert(recording.profiler, recording.graph, meta=dict(recording.meta))
    save(trace, report, tmp_path)
    assert find_layers(trace).count == 2  # n_layer
    constants = {"launch_us": 0.0, "collective_us": 0.0, "overlap_slowdown": 0.0}
    on = {"trace_dir": str(tmp_path), "gpu": "cpu", "machine": "switch", "constants": constants}
    alone = train(TrainScenario(**on, gpus=1, micro_batch_size=4))
    passes_s = sum(op.time_s for op in trace.operators if op.phase != "optimizer")
    optimizer_s = alone.writer.state.optimizer_s(0)  # this plan's own, not the recorded one
    assert alone.step_s == pytest.approx(passes_s + optimizer_s, rel=1e-9)
    # Two layers of 12 h^2 + 13 h, embeddings of 100 tokens and 16 positions, the last norm.
    assert alone.writer.state.count(0) == 2 * (12 * 32**2 + 13 * 32) + (100 + 16) * 32 + 2 * 32
    both = train(TrainScenario(**on, gpus=2, micro_batch_size=4))
    assert both.step_s >= passes_s
    staged = train(TrainScenario(**on, gpus=2, pp=2, micro_batch_size=4, global_batch=8))
    assert passes_s < staged.step_s < 2 * (passes_s + optimizer_s)


def test_parts_called_by_hand_need_the_module(tmp_path):
    model, x = Stack(None), torch.randn(4, 8)

    def call():
        return model.layers[1](model.layers[0](x)).sum()

    known = record_step(tmp_path, call, model.parameters(), module=model)
    assert [m for name, m in of_phase(known, "forward") if name == "aten::linear"] == [
        "layers.0.0", "layers.1.0",
    ]  # fmt: skip
    unknown = record_step(tmp_path, call, model.parameters())
    assert [m for name, m in of_phase(unknown, "forward") if name == "aten::linear"] == ["0", "0"]


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointed_layers(tmp_path, reentrant):
    """What runs again in backward is a part of the layer whose backward needs it."""
    model = Stack(lambda layer, x: checkpoint(layer, x, use_reentrant=reentrant))
    x = torch.randn(4, 8, requires_grad=True)
    trace = record_step(tmp_path, lambda: model(x), model.parameters())
    backward = of_phase(trace, "backward")
    assert [path for name, path in backward if name in PRODUCTS] == ["layers.1.0", "layers.0.0"]
    again = [path for name, path in backward if name == "aten::linear"]
    assert again == (["layers.1.0", "layers.0.0"] if reentrant else [])


# torch asks for the gradient of an activation while it compiles, and hides this warning itself.
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")
def test_a_compiled_layer_has_its_path(tmp_path):
    model, x = Stack(lambda layer, x: layer(x)), torch.randn(4, 8)
    model.layers = nn.ModuleList([torch.compile(m, backend="aot_eager") for m in model.layers])
    trace = record_step(tmp_path, lambda: model(x), model.parameters())
    for phase, name in (("forward", "aten::addmm"), ("backward", "aten::mm")):
        found = {path for other, path in of_phase(trace, phase) if other == name}
        assert found == {"layers.0", "layers.1"}


def test_a_module_that_raises_leaves_the_paths_of_the_others():
    def run(layer, x):
        try:
            layer(x[:, :3])
        except RuntimeError:
            return layer[1](x)

    model, x = Stack(run), torch.randn(4, 8)
    with torch.profiler.profile() as session, module_ranges():
        model(x)
    found = [event.name for event in session.events() if event.name.startswith(MODULE_RANGE)]
    names = ["layers.0", "layers.0.0", "layers.0.1", "layers.1", "layers.1.0", "layers.1.1"]
    assert found == [MODULE_RANGE + name for name in names]
    outer = next(e for e in session.events() if e.name == f"{MODULE_RANGE}layers.0")
    inner = next(e for e in session.events() if e.name == f"{MODULE_RANGE}layers.0.1")
    assert outer.time_range.end <= inner.time_range.start


def test_recording_changes_no_gradient_and_leaves_no_hook(model):
    tokens = torch.randint(0, 100, (4, 16))
    model(tokens).backward()
    expected = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    with module_ranges():
        model(tokens).backward()
    assert all(torch.equal(p.grad, e) for p, e in zip(model.parameters(), expected, strict=True))
    hooks = nn.modules.module
    assert not hooks._global_forward_pre_hooks
    assert not hooks._global_forward_hooks
