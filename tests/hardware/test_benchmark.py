"""The benchmark of the roofline: its error between batches, and what it says without data."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import fitting, roofline
from triosim import write_trace
from triosim.hardware import Work, load_gpu, predict_s
from triosim.trace import scaled


def test_without_data_it_says_so(monkeypatch, capsys):
    monkeypatch.setattr(roofline, "GEMM", Path("nowhere/gemm.csv"))
    monkeypatch.setattr(roofline, "TRACES", Path("nowhere/traces"))
    roofline.main([])
    assert capsys.readouterr().out.splitlines() == [
        "no gemm.csv beside the repository: no matrix products to judge",
        "no traces beside the repository: no traces to judge",
    ]


def test_the_error_between_two_batches(make_trace):
    """5 us of the passes twice over and 10 us of optimizer; measured: 25 us."""
    source = make_trace([1.0], [4.0], optimizer_us=10.0, batch_size=1)
    target = replace(make_trace([2.0], [13.0], optimizer_us=10.0, batch_size=2), name="larger")
    by_roofline, in_proportion = roofline.batch_error(source, target)
    assert in_proportion == pytest.approx((2 * 5 + 10) / 25 - 1)
    assert by_roofline == in_proportion  # the GPU is unknown


def test_a_trace_scaled_by_the_roofline_has_no_error(make_trace, tmp_path, capsys):
    source = make_trace([1.0], [4.0], optimizer_us=10.0, batch_size=1)
    target = scaled(source, batch_size=4, trace_gpu="a40")
    assert roofline.batch_error(source, target, "a40")[0] == pytest.approx(0, abs=1e-12)
    for name, trace in (("one", source), ("four", target)):
        write_trace(trace, tmp_path / name)
    roofline.main([str(tmp_path / "one"), str(tmp_path / "four"), "a40"])
    assert "by roofline +0.0%" in capsys.readouterr().out
    roofline.main([str(tmp_path / "one"), str(tmp_path / "four")])
    assert "does not name a GPU" in capsys.readouterr().out


def test_the_search_finds_the_least():
    found = fitting.minimise(lambda x: (x[0] - 1.3) ** 2 + abs(x[1] + 0.7), [0.0, 0.0])
    assert found == pytest.approx([1.3, -0.7], abs=0.03)


def test_a_fit_recovers_the_numbers_that_made_the_data():
    """Samples made by the data file's own fit: the error goes to nothing."""
    gpu = load_gpu("h100-sxm")
    samples = []
    for m in (128, 512, 2048, 8192):
        for n in (1024, 4096, 12288):
            for k in (1024, 8192):
                size = 2.0 * (m * k + k * n + m * n)
                work = Work(
                    kind="gemm", flops=2.0 * m * n * k, bytes=size, dtype="bf16", shape=(m, n, k)
                )
                samples.append(fitting.Sample("h100-sxm", work, predict_s(gpu, work)))
    fit = fitting.fit_gemm(samples, "bf16")
    gpus = fitting.gemm_gpus(fit, samples, "bf16")
    errors = [abs(fitting.gemm_error(gpus, fit.quantise_s, s)) for s in samples]
    assert sum(errors) / len(errors) < 0.03
    assert fit.matmul.efficiency == pytest.approx(gpu.matmul["bf16"].efficiency, rel=0.05)
    assert math.isfinite(fit.matmul.ramp_k)
