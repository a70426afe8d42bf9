"""Fitting constants of a stack: on steps whose constants are known."""

from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import pytest

pytest.importorskip("scipy", reason="the fit needs SciPy")

from benchmarks import stacks
from benchmarks.stacks import BOUNDS, JOBS, Fit, changed, on_bound, thinned
from triosim.hardware.stacks import load_stack, stack_names
from triosim.train import TrainScenario
from triosim.validation import load_source, predict, rows_of

JOB = replace(JOBS["zero-bubble"], constants=("gemm", "memory"))
TRUE = {"gemm": 0.72, "memory": 0.95}


@pytest.fixture(scope="module")
def rows():
    """Small steps, some of large products and some of scores, published as `TRUE` predicts them."""
    first = rows_of(load_source("zero-bubble"))[0]
    made = []
    for number, (hidden, heads, seq) in enumerate(
        [(8192, 32, 1024), (4096, 32, 4096), (2048, 32, 8192), (6144, 48, 2048)]
    ):
        scenario = TrainScenario(
            model="megatron-1.7b", layers=2, hidden=hidden, heads=heads, ffn=4 * hidden, gpus=1,
            dp_shard=1, seq_len=seq, micro_batch_size=2, gpu="a100-80gb", stack="megatron-2021",
            precision="fp16", compile=False,
        )  # fmt: skip
        stack = changed(load_stack(scenario.stack), JOB, TRUE)
        seconds = predict(scenario, "step", stack).seconds
        made.append(
            replace(first, number=number, scenario=scenario, published_s=seconds, size=f"h{hidden}")
        )
    return made


def test_known_constants_are_found_again(rows, monkeypatch):
    monkeypatch.setattr(stacks, "NOISE", 1e-3)  # these steps have none
    with ProcessPoolExecutor(max_workers=1) as pool:
        fit = Fit(JOB, rows, pool)
        assert fit.without(None) == pytest.approx(TRUE, rel=0.03)
        values = fit.without("h8192")
        held_back = [row for row in rows if row.size == "h8192"]
        assert fit.errors(values, held_back)[0] == pytest.approx(0, abs=0.03)


def test_a_constant_that_no_row_depends_on_is_reported(rows):
    """On one GPU nothing is sent."""
    with ProcessPoolExecutor(max_workers=1) as pool:
        fit = Fit(replace(JOB, constants=("gemm", "collective_us")), rows, pool)
    assert fit.untold() == ["collective_us"]


def test_a_constant_on_its_bound_is_no_measurement():
    low, high = BOUNDS["gemm"]
    assert on_bound("gemm", low)
    assert on_bound("gemm", high)
    assert not on_bound("gemm", 0.8)


@pytest.mark.parametrize("name", stack_names())
def test_a_shipped_constant_on_its_bound_is_said_to_be_unidentified(name):
    stack = load_stack(name)
    unidentified = stack.unidentified
    for constant, bounds in BOUNDS.items():
        if constant == "clock" or not stack.sources.get(constant, "").startswith("fitted"):
            continue
        if getattr(stack, constant).value in bounds:
            assert constant in unidentified


def test_a_source_says_which_of_its_constants_are_unidentified():
    found = load_source("torchtitan").unidentified
    assert any(line.startswith("attention:") and "on its bound" in line for line in found)
    assert not load_source("simumax-b200").unidentified


def test_every_size_keeps_rows_when_they_are_thinned():
    rows = rows_of(load_source("zero-bubble"))
    assert {row.size for row in thinned(rows)} == {row.size for row in rows}
