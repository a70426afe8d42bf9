"""The traces that ship with the project: complete, small, and fit to be simulated at once."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from triosim import Scenario, read_trace, simulate
from triosim.trace.parameters import find_parameters

SAMPLES = Path(__file__).resolve().parents[3] / "sample_trace"
DERIVED = ("vgg13", "resnet50", "gpt2", "bert-base", "llama-3.2-1b", "vit-b-16")
MEASURED = ("cpu-resnet18", "cpu-gpt2")
PARAMETERS = {
    "vgg13": 133_047_848, "resnet50": 25_557_032, "gpt2": 124_439_808, "bert-base": 109_514_298,
    "llama-3.2-1b": 1_235_814_400, "vit-b-16": 86_567_656, "cpu-resnet18": 11_689_512,
    "cpu-gpt2": 124_439_808,
}  # fmt: skip


def test_they_are_small():
    total = sum(path.stat().st_size for path in SAMPLES.rglob("*") if path.is_file())
    assert total < 8e6


@pytest.mark.parametrize("name", [*DERIVED, *MEASURED])
def test_meta_says_how_it_was_made(name):
    meta = json.loads((SAMPLES / name / "meta.json").read_text(encoding="utf-8"))
    assert meta["name"] == name
    assert meta["source"] == ("derived" if name in DERIVED else "measured")
    assert meta["gpu"] == ("h100-sxm" if name in DERIVED else "cpu")
    assert {"batch_size", "dtype", "torch", "command", "optimizer"} <= set(meta)
    assert str(SAMPLES) not in json.dumps(meta)


@pytest.mark.parametrize("name", [*DERIVED, *MEASURED])
def test_every_parameter_is_recognised(name):
    trace = read_trace(SAMPLES / name)
    parameters = find_parameters(trace)
    assert sum(t.numel for t in parameters.tensors) == PARAMETERS[name]
    assert parameters.unresolved == []
    assert trace.warnings == ()


@pytest.mark.parametrize("name", [*DERIVED, *MEASURED])
@pytest.mark.parametrize("case", [1, 2, 3, 4])
def test_eight_gpus_pass_every_check_at_once(name, case):
    scenario = Scenario(trace_dir=str(SAMPLES / name), case=case, gpus=8)
    start_s = time.perf_counter()
    result = simulate(scenario)
    assert all(check.passed for check in result.checks)
    assert time.perf_counter() - start_s < 5  # a loaded machine; about a quarter second alone


@pytest.mark.parametrize("name", ["vgg13", "resnet50"])
def test_convolutional_networks_match_the_measured_traces(upstream, name):
    """Operator for operator the step that TrioSim measured on an H100 at the same batch."""
    trace, measured = read_trace(SAMPLES / name), read_trace(upstream / name)
    assert trace.batch_size == measured.batch_size == 128
    assert [(op.phase, op.name, op.tensor_parallel) for op in trace.operators] == [
        (op.phase, op.name, op.tensor_parallel) for op in measured.operators
    ]
    assert [t.shape for t in find_parameters(trace).tensors] == [
        t.shape for t in find_parameters(measured).tensors
    ]


@pytest.mark.parametrize("name", ["vgg13", "resnet50"])
def test_the_derived_step_is_as_long_as_the_measured_one(upstream, name):
    """Not a proof: the fits know these two traces. `benchmarks.roofline` judges out of sample."""
    trace, measured = read_trace(SAMPLES / name), read_trace(upstream / name)
    assert trace.total_s == pytest.approx(measured.total_s, rel=0.05)


@pytest.mark.parametrize(("name", "macs"), [("vgg13", 11.32e9), ("resnet50", 4.09e9)])
def test_flops_are_three_times_the_published_forward_pass(name, macs):
    """Multiply-adds as torchvision's model cards give them (11.31 and 4.09 GMAC, 224 x 224)."""
    trace = read_trace(SAMPLES / name)
    flops = sum(op.flops for op in trace.operators if op.tensor_parallel)
    first = trace.operators[0].flops  # no gradient flows into the images
    assert flops == pytest.approx(3 * 2 * macs * 128 - first, rel=5e-3)
