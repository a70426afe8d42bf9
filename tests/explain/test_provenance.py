"""What is said of a computation's time is what the trace or the roofline says."""

from __future__ import annotations

import pytest

import triosim as ts
from triosim import Scenario, load_trace
from triosim.amounts import bytes_words, rate_words, time_words
from triosim.explain import explain
from triosim.explain.provenance import roofline_words
from triosim.hardware import Work, load_gpu
from triosim.scenario import SAMPLE_TRACES


def said(result, task):
    return " ".join(explain(result).of(task).lines)


def first(result, phase):
    program = result.tasks.program
    return next(t for t in range(len(program)) if program.phase[t] == phase)


def test_a_measured_time_is_quoted_as_the_trace_has_it():
    folder = str(SAMPLE_TRACES / "cpu-gpt2")
    result = ts.simulate(Scenario(trace_dir=folder, gpus=1))
    longest = max(load_trace(folder).operators, key=lambda op: op.time_s)
    task = int((result.tasks.end_s - result.tasks.start_s).argmax())
    assert result.tasks.program.name[task] == longest.name
    text = f"Its time was measured: the trace has {time_words(longest.time_s)} at batch"
    assert text in said(result, task)


def test_a_scaled_time_says_from_what_and_by_how_much():
    folder = str(SAMPLE_TRACES / "mlp")
    own = load_trace(folder).batch_size
    result = ts.simulate(Scenario(trace_dir=folder, gpus=1, batch_size_sim=2 * own))
    text = said(result, first(result, "forward"))
    assert f"at batch {own}" in text
    assert f"for batch {2 * own} that is multiplied by 2," in text


def test_a_stages_share_of_the_optimizer_is_a_share(result_of):
    result = result_of("pipeline")
    text = said(result, first(result, "optimizer"))
    assert "for the share of it that this GPU has that is multiplied by 0." in text


def test_a_roofline_has_both_sides():
    gpu = load_gpu("h100-sxm")
    work = Work(kind="elementwise", flops=1e9, bytes=gpu.memory_bytes_per_s, dtype="fp32")
    text = roofline_words(gpu, work)
    assert "its 1 GFLOP would take" in text
    assert f"and its {bytes_words(gpu.memory_bytes_per_s)} 1 s at 3,350 GB/s" in text
    assert "so memory limits it" in text


def test_a_pass_says_what_it_stands_for_and_its_kernels_why_they_take_their_time(result_of):
    result = result_of("sharded")
    task = first(result, "forward")
    made = result.writer.made[task]
    kernels = sum(one.kernels for one in made.passes)
    assert f"with {kernels:,} kernels" in said(result, task)
    inside = explain(result).inside(task)[0]
    program = inside.timeline.program
    copy, *_, kernel = (t for t in inside.tasks if program.phase[t] == "forward")
    assert program.name[copy] == "copy out"
    assert "It only moves data: its bytes at the 3,350 GB/s" in " ".join(inside.of(copy))
    text = " ".join(inside.of(kernel))
    assert "limits it" in text
    assert "On h100-sxm its" in text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 ms"), (2.5e-9, "2.5 ns"), (1e-6, "1 us"), (9.999e-4, "1 ms"), (0.0123, "12.3 ms"),
     (3.0, "3 s"), (1234.0, "1,234 s")],
)  # fmt: skip
def test_times_in_words(seconds, text):
    assert time_words(seconds) == text


def test_sizes_in_words():
    assert [bytes_words(n) for n in (0, 999, 999.9, 1.5e6)] == ["0 B", "999 B", "1 kB", "1.5 MB"]
    assert rate_words(450e9) == "450 GB/s"
