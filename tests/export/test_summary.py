"""The text that the command line prints."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from triosim import Check, Scenario, simulate
from triosim.export.summary import summary


def number(text, label):
    return float(re.search(rf"{label}\s+([\d.,]+)", text)[1].replace(",", ""))


def test_the_numbers_are_the_result_s():
    result = simulate(Scenario(case=4, gpus=4, micro_batch_size=2))
    text = summary(result)
    assert text.splitlines()[0] == "transformer, case 4 (pipeline parallel), 4 GPUs, electrical"
    assert number(text, "step time") == pytest.approx(result.total_ms, abs=1e-4)
    assert number(text, "speed-up") == pytest.approx(result.speedup, abs=1e-3)
    assert number(text, "throughput") == pytest.approx(result.samples_per_s, abs=0.1)
    assert number(text, "sent GPU to GPU") == pytest.approx(
        result.communication_bytes / 1e9, abs=1e-3
    )
    assert number(text, "fetched") == pytest.approx(result.fetched_bytes / 1e9, abs=1e-3)
    assert number(text, "peak memory") == pytest.approx(result.peak_memory_bytes / 2**30, abs=1e-3)
    classes = re.findall(r"^    ([a-z ]+?)\s+([\d.]+) ms\s+([\d.]+)%$", text, re.MULTILINE)
    assert [name for name, *_ in classes] == (
        ["compute", "launch wait", "exposed communication", "bubble", "imbalance", "idle"]
    )
    assert sum(float(ms) for _, ms, _ in classes) == pytest.approx(result.total_ms, abs=1e-3)
    assert sum(float(share) for *_, share in classes) == pytest.approx(100, abs=0.3)
    assert f"{len(result.checks)} of {len(result.checks)} checks passed" in text


def test_one_gpu_is_not_gpus():
    assert ", 1 GPU," in summary(simulate(Scenario(gpus=1)))


def test_a_failed_check_is_shown():
    result = simulate(Scenario())
    failed = replace(result, checks=(Check(id="rule", passed=False, detail="why."),))
    assert summary(failed).endswith("  0 of 1 checks passed\n    FAILED rule: why.")


def test_a_step_that_takes_no_time(tmp_path, make_trace):
    from triosim import write_trace

    write_trace(make_trace([0.0], [0.0]), tmp_path)
    text = summary(simulate(Scenario(trace_dir=str(tmp_path), gpus=1, resident=True)))
    assert re.search(r"speed-up +n/a", text)
    assert re.search(r"throughput +n/a", text)
