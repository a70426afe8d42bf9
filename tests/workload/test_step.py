"""A description as an ordinary trace: what the rest of the engine makes of it."""

from pathlib import Path

import pytest

from triosim import Scenario, simulate
from triosim.errors import ConfigError
from triosim.trace import load_trace, scaled, write_trace
from triosim.trace.memory import Role, find_memory
from triosim.trace.parameters import find_parameters
from triosim.trace.partners import find_partners
from triosim.workload import count_parameters, load_model, trace_of

SAMPLES = Path(__file__).resolve().parents[2] / "sample_trace"
# What tracer/synthesize.py derived from the real modules, with the arguments that meta.json has.
DERIVED = {
    "gpt2": {"name": "gpt2", "batch": 8, "seq": 1024},
    "llama-3.2-1b": {"name": "llama3.2-1b", "batch": 4, "seq": 2048},
}


def made(name, **options):
    return trace_of(load_model(name), **{"batch": 2, "seq": 128, "gpu": "h100-sxm", **options})


@pytest.mark.parametrize("sample", DERIVED)
def test_the_traces_that_the_real_modules_made(sample):
    real = load_trace(SAMPLES / sample)
    options = DERIVED[sample]
    assert (real.batch_size, real.meta["seq_len"]) == (options["batch"], options["seq"])
    ours = made(**options, dtype=real.meta["dtype"], optimizer=real.meta["optimizer"])
    assert ours.meta["parameters"] == real.meta["parameters"]
    for value, tolerance in (("flops", 1e-3), ("saved_bytes", 1e-3), ("bytes", 1e-3)):
        expected, found = (
            sum(getattr(op, value) or 0 for op in trace.operators) for trace in (real, ours)
        )
        assert found == pytest.approx(expected, rel=tolerance), value
    assert ours.total_s == pytest.approx(real.total_s, rel=2e-3)


@pytest.mark.parametrize("name", ["gpt2", "llama3.2-1b", "qwen3-0.6b"])
@pytest.mark.parametrize("optimizer", ["adamw", "adam", "sgd"])
def test_parameters_gradients_and_state_are_found(name, optimizer):
    trace = made(name, optimizer=optimizer)
    parameters = find_parameters(trace)
    total = count_parameters(load_model(name)).total
    assert parameters.bytes == 2 * total
    assert parameters.unresolved == []
    assert all(gradient.output is not None for gradient in parameters.gradients)
    sizes = dict.fromkeys(Role, 0)
    for buffer in find_memory(trace).buffers:
        sizes[buffer.role] += buffer.bytes
    assert sizes[Role.PARAMETERS] == sizes[Role.GRADIENTS] == 2 * total
    states = 1 if optimizer == "sgd" else 3  # two moments and the denominators
    assert sizes[Role.OPTIMIZER] == states * 2 * total


def test_backward_operators_find_their_forward_operators():
    trace = made("llama3.2-1b")
    partners = find_partners(trace)
    products = [i for i in trace.phase("backward") if "MmBackward" in trace.operators[i].name]
    assert products
    for i in products:
        assert trace.operators[partners[i]].module == trace.operators[i].module


def test_ids_are_counted_and_every_time_is_a_roofline():
    trace = made("gpt2", implementation="eager")
    assert [op.id for op in trace.operators] == list(range(1, len(trace.operators) + 1))
    assert {op.provenance for op in trace.operators} == {"roofline"}
    assert all(op.time_s > 0 for op in trace.operators)


def test_it_survives_files(tmp_path):
    trace = made("gpt2")
    write_trace(trace, tmp_path / "gpt2")
    again = load_trace(tmp_path / "gpt2")
    assert [op.time_s for op in again.operators] == [op.time_s for op in trace.operators]
    assert again.meta["gpu"] == "h100-sxm"
    assert not again.warnings


def test_another_batch_is_what_scaling_expects():
    small, large = made("gpt2", batch=4, seq=512), made("gpt2", batch=8, seq=512)
    grown = scaled(small, batch_size=8)
    assert grown.total_s == pytest.approx(large.total_s, rel=0.03)


@pytest.mark.parametrize("case", [0, 1, 2, 3, 4])
def test_triosims_cases_run_on_it(case, tmp_path):
    write_trace(made("gpt2"), tmp_path / "gpt2")
    gpus = 1 if case == 0 else 2
    result = simulate(Scenario(trace_dir=str(tmp_path / "gpt2"), case=case, gpus=gpus))
    assert result.total_ms > 0
    assert all(check.passed is not False for check in result.checks)


@pytest.mark.parametrize("name", ["mixtral-8x7b", "deepseek-v2-lite"])
def test_mixtures_make_traces_too(name):
    trace = made(name)
    parameters = find_parameters(trace)
    assert parameters.bytes == 2 * count_parameters(load_model(name)).total
    assert parameters.unresolved == []


def test_what_cannot_be_made():
    with pytest.raises(ConfigError, match="optimizer lion: must be adam, adamw, sgd"):
        made("gpt2", optimizer="lion")
    with pytest.raises(ConfigError, match="no such GPU"):
        made("gpt2", gpu="abacus")
