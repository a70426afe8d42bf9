"""Recording for real, on this machine's CPU, and what the converter makes of it."""

from __future__ import annotations

import doctest
import json

import pytest
import torch

import tracer
from tracer.collect import collect
from tracer.convert import convert
from tracer.datacollect import main
from tracer.derive import derive
from triosim import Scenario, simulate, write_trace
from triosim.errors import ConfigError
from triosim.trace.parameters import find_parameters

# Operators that start no kernel on a GPU, which a trace of a CPU shows with the time they take
# there: views, counters that live on the CPU, gradients that only change hands.
WITHOUT_KERNEL = {
    "aten::detach_", "aten::empty", "aten::flatten", "aten::item", "aten::lift_fresh",
    "aten::reshape", "aten::split", "aten::t", "aten::to", "aten::transpose", "aten::view",
    "AccumulateGrad", "AddBackward0", "ReshapeAliasBackward0", "TBackward0",
    "TransposeBackward0", "UnsafeViewBackward0", "ViewBackward0",
}  # fmt: skip


def converted(recording):
    trace, report = convert(recording.profiler, recording.graph, meta=dict(recording.meta))
    return trace, report


def names(trace, phase):
    return [trace.operators[i].name for i in trace.phase(phase)]


def bare(name):
    return name.rpartition(": ")[2].removeprefix("torch::autograd::")


def left_out(found, expected):
    """What stands in `found` between and after the names of `expected`, which come in order."""
    extra, position = [], 0
    for name in expected:
        assert name in found[position:], f"{name} is missing or out of order"
        here = found.index(name, position)
        extra += found[position:here]
        position = here + 1
    return extra + found[position:]


def test_the_files_and_what_meta_says(recorded):
    recording = recorded("zoo:mlp", dtype="fp32", optimizer="adam")
    assert recording.profiler.name == "profiler_mlp-iter4.json"
    assert recording.graph.name == "graph_mlp-iter4.json"
    meta = json.loads((recording.profiler.parent / "meta.json").read_text(encoding="utf-8"))
    assert meta == recording.meta
    assert (meta["name"], meta["batch_size"], meta["gpu"]) == ("mlp", 4, "cpu")
    assert (meta["dtype"], meta["optimizer"], meta["iters"]) == ("fp32", "adam", 4)
    assert meta["torch"] == str(torch.__version__)
    assert 0 < meta["step_time_s"] < 10
    events = json.loads(recording.profiler.read_text(encoding="utf-8"))["traceEvents"]
    nodes = json.loads(recording.graph.read_text(encoding="utf-8"))["nodes"]
    assert len(events) > 50 < len(nodes)


@pytest.mark.parametrize("model", ["zoo:mlp", "zoo:cnn", "zoo:language"])
def test_the_converter_finds_what_deriving_finds(recorded, model):
    """The same forward and backward operators in the same order, plus those without a kernel."""
    measured, _ = converted(recorded(model))
    derived = derive(model, gpu="cpu", batch_size=4)
    for phase in ("forward", "backward", "optimizer"):
        extra = left_out(names(measured, phase), names(derived, phase))
        # Counting steps is the one foreach operator that a GPU does not run.
        counters = {"aten::_foreach_add_"} if phase == "optimizer" else set()
        assert {bare(name) for name in extra} <= WITHOUT_KERNEL | counters


@pytest.mark.parametrize("model", ["zoo:mlp", "zoo:cnn", "zoo:language"])
def test_measured_and_derived_traces_train_the_same(recorded, model):
    measured, _ = converted(recorded(model))
    derived = derive(model, gpu="cpu", batch_size=4)
    found, expected = find_parameters(measured), find_parameters(derived)
    assert found.bytes == expected.bytes
    assert found.unresolved == []
    assert [t.shape for t in found.tensors] == [t.shape for t in expected.tensors]


def test_a_recording_can_be_simulated(recorded, tmp_path):
    trace, _ = converted(recorded("zoo:cnn"))
    assert trace.batch_size == 4
    assert trace.meta["source"] == "measured"
    write_trace(trace, tmp_path)
    result = simulate(Scenario(trace_dir=str(tmp_path), case=1, gpus=4))
    assert all(check.passed for check in result.checks)


@pytest.mark.parametrize(("optimizer", "operator"), [("sgd", "add_"), ("adamw", "addcdiv_")])
def test_optimizers(recorded, optimizer, operator):
    trace, _ = converted(recorded("zoo:mlp", optimizer=optimizer))
    assert f"aten::_foreach_{operator}" in names(trace, "optimizer")


def test_half_precision(recorded):
    trace, _ = converted(recorded("zoo:mlp", dtype="bf16"))
    assert {t.element_bytes for t in trace.operators[0].inputs} == {2}


def test_the_three_lines_of_the_manual(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    finder = doctest.DocTestFinder(recurse=False)
    runner = doctest.DocTestRunner()
    for test in finder.find(tracer.record, "record", globs={}):
        assert runner.run(test).attempted > 5
    assert runner.summarize(verbose=False).failed == 0
    assert (tmp_path / "data" / "meta.json").is_file()


def test_several_models_in_one_folder(tmp_path, capsys):
    words = ["2", "--model", "zoo:mlp", "zoo:cnn", "--iters", "4", "--device", "cpu"]
    assert main([*words, "--output", str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {
        "profiler_mlp-iter4.json", "graph_mlp-iter4.json", "meta_mlp-iter4.json",
        "profiler_cnn-iter4.json", "graph_cnn-iter4.json", "meta_cnn-iter4.json", "meta.json",
    }  # fmt: skip
    shown = capsys.readouterr()
    assert shown.out.count("ms a step without the profiler") == 2
    assert "mlp: 100%" in shown.err  # tqdm's bar


def test_a_bare_module_is_fed_with_images(recorded):
    trace, _ = converted(recorded("zoo:images"))
    assert trace.operators[0].inputs[0].shape == (4, 3, 224, 224)
    assert "aten::cross_entropy_loss" in names(trace, "forward")


def test_the_images_of_a_folder(tmp_path):
    reason = "needs torchvision, which does not import beside this torch"
    pytest.importorskip("torchvision", reason=reason, exc_type=Exception)
    pillow = pytest.importorskip("PIL.Image", reason="torchvision reads images with Pillow")
    for label in ("cat", "dog"):
        (tmp_path / "images" / label).mkdir(parents=True)
        for i in range(2):
            pillow.new("RGB", (400, 300), (60 * i, 0, 0)).save(
                tmp_path / "images" / label / f"{i}.png"
            )
    recording = collect(
        "zoo:images", batch_size=4, iters=4, device="cpu", data=str(tmp_path / "images"),
        output=tmp_path / "recording", progress=False,
    )  # fmt: skip
    trace, _ = converted(recording)
    assert trace.operators[0].inputs[0].shape == (4, 3, 224, 224)
    with pytest.raises(ConfigError, match="holds 4 images; a batch is 5"):
        collect("zoo:images", batch_size=5, data=str(tmp_path / "images"), device="cpu")


def test_a_transformers_model(tmp_path):
    pytest.importorskip("transformers", reason="needs transformers (pip install transformers)")
    recording = collect(
        "zoo:tiny_gpt2", batch_size=2, iters=4, device="cpu", output=tmp_path, progress=False
    )
    trace, _ = converted(recording)
    assert names(trace, "forward").count("aten::scaled_dot_product_attention") == 2
    assert find_parameters(trace).unresolved == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["2", "--iters", "3"], "datacollect: --iters 3: must be at least 4"),
        (["0"], "datacollect: --batch 0: must be a whole number from 1"),
        (["2", "--device", "cuda"], "datacollect: --device cuda: PyTorch finds no GPU here"),
        (["2", "--data", "nowhere"], "datacollect: --data nowhere: holds images, and zoo:mlp"),
    ],
)
def test_one_sentence_for_what_is_wrong(words, sentence, tmp_path, capsys):
    if "cuda" in words and torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    words = ["--model", "zoo:mlp", "--output", str(tmp_path / "new"), *words]
    assert main([*words[4:5], *words[:4], *words[5:]]) == 2
    error = capsys.readouterr().err
    assert error.startswith(sentence)
    assert error.count("\n") == 1


def test_a_missing_package_is_named(monkeypatch, capsys):
    monkeypatch.setitem(__import__("sys").modules, "torchvision", None)
    assert main(["2", "--model", "torchvision:resnet50"]) == 2
    assert "pip install torchvision" in capsys.readouterr().err
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    assert main(["2", "--model", "transformers:gpt2"]) == 2
    assert 'pip install "transformers"' in capsys.readouterr().err


def test_iterations_that_are_too_few():
    with pytest.raises(ConfigError, match="must be at least 4"):
        tracer.record(lambda: None, batch_size=1, iters=2)
