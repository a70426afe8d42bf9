"""The roofline: its lower bounds, its parts, and how it follows the hardware."""

from __future__ import annotations

import csv
import statistics
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from triosim import ConfigError
from triosim.hardware import DTYPES, KINDS, MatmulFit, Work, gpu_names, load_gpu, predict_s

MATRIX = ("gemm", "conv", "conv_direct", "conv_weight")
sizes = st.integers(1, 2**16)
amounts = st.floats(0, 1e15)


@st.composite
def works(draw):
    kind = draw(st.sampled_from(KINDS))
    shape = draw(st.none() | st.tuples(sizes, sizes, sizes))
    if kind in MATRIX and shape is not None:
        m, n, k = shape
        flops = 2.0 * m * n * k * draw(st.integers(1, 64))
    else:
        flops = draw(amounts)
    dtype = draw(st.sampled_from([*DTYPES, "float32", "bfloat16", "int64"]))
    return Work(kind=kind, flops=flops, bytes=draw(amounts), dtype=dtype, shape=shape)


gpus = st.sampled_from(gpu_names()).map(load_gpu)


def faster(gpu, factor, *, compute=True, memory=True, fixed=True):
    """The GPU with some of its rates multiplied."""
    matmul = {
        name: replace(fit, overhead_s=fit.overhead_s / (factor if fixed else 1))
        for name, fit in gpu.matmul.items()
    }
    return replace(
        gpu,
        peak_flops={t: p * (factor if compute else 1) for t, p in gpu.peak_flops.items()},
        memory_bytes_per_s=gpu.memory_bytes_per_s * (factor if memory else 1),
        launch_s=gpu.launch_s / (factor if fixed else 1),
        matmul=matmul,
    )


@given(gpus, works())
def test_never_faster_than_the_data_sheet(gpu, work):
    """ORACLES F4: time >= max(flops / peak, bytes / bandwidth)."""
    seconds = predict_s(gpu, work)
    assert seconds >= work.flops / gpu.peak(work.dtype) * (1 - 1e-12)
    assert seconds >= work.bytes / gpu.memory_bytes_per_s * (1 - 1e-12)


@given(gpus, works())
def test_twice_the_gpu_takes_half_the_time(gpu, work):
    assert predict_s(faster(gpu, 2), work) == pytest.approx(predict_s(gpu, work) / 2, rel=1e-12)


@given(gpus, works(), st.floats(1, 100), st.booleans(), st.booleans(), st.booleans())
def test_a_faster_gpu_is_never_slower(gpu, work, factor, compute, memory, fixed):
    better = faster(gpu, factor, compute=compute, memory=memory, fixed=fixed)
    assert predict_s(better, work) <= predict_s(gpu, work) * (1 + 1e-12)


@given(gpus, st.lists(works(), max_size=4))
def test_parts_add_up(gpu, parts):
    whole = Work.of("other", parts)
    assert whole.flops == sum(part.flops for part in parts)
    assert whole.bytes == sum(part.bytes for part in parts)
    assert whole.kernels == len(parts)
    if parts:
        assert predict_s(gpu, whole) == sum(predict_s(gpu, part) for part in parts)


def test_a_view_costs_nothing():
    view = Work(kind="other", flops=0, bytes=0, dtype="fp32", kernels=0)
    assert all(predict_s(load_gpu(name), view) == 0 for name in gpu_names())


def test_a_memory_bound_kernel_by_hand():
    gpu = load_gpu("h100-sxm")
    work = Work(kind="elementwise", flops=0, bytes=3.35e9, dtype="fp32")
    expected = 1e-3 / gpu.efficiency["elementwise"] + gpu.launch_s
    assert predict_s(gpu, work) == pytest.approx(expected)


def ideal():
    """A GPU of 100 processors that loses nothing but what partly filled waves lose."""
    fit = MatmulFit(efficiency=1.0, ramp_k=0.0, small_tile=0.0, overhead_s=0.0)
    gpu = replace(load_gpu("h100-sxm"), processors=100, matmul={"default": fit})
    return replace(gpu, peak_flops={"fp32": 1e14}, memory_bytes_per_s=1e18)


def product(m, n, k):
    return Work(kind="gemm", flops=2.0 * m * n * k, bytes=0, dtype="fp32", shape=(m, n, k))


def test_full_waves_run_at_the_peak():
    # 100 tiles of 256 x 128 on 100 processors.
    work = product(2560, 1280, 4096)
    assert predict_s(ideal(), work) == pytest.approx(work.flops / 1e14)


def test_padding_to_tiles_costs():
    # One row takes a tile of 64 rows: as long as 64 rows would.
    assert predict_s(ideal(), product(1, 6400, 64)) == pytest.approx(
        predict_s(ideal(), product(64, 6400, 64))
    )
    assert predict_s(ideal(), product(1, 6400, 64)) > 1.5 * product(1, 6400, 64).flops / 1e14


def test_the_last_wave_is_as_long_as_a_full_one():
    """101 products of one tile each: two waves, the time of 200."""
    one = product(64, 64, 8)
    many = replace(one, flops=101 * one.flops)
    full = replace(one, flops=200 * one.flops)
    assert predict_s(ideal(), many) == pytest.approx(predict_s(ideal(), full))


def test_few_channels_leave_processors_idle():
    gpu = load_gpu("h100-sxm")
    half = Work(kind="norm", flops=0, bytes=1e9, dtype="fp32", shape=(1000, 66, 1))
    whole = replace(half, shape=(1000, 132, 1))
    assert predict_s(gpu, half) - gpu.launch_s == pytest.approx(
        2 * (predict_s(gpu, whole) - gpu.launch_s)
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "magic"}, "kind magic: must be gemm, conv, "),
        ({"flops": -1}, "flops -1: must be at least 0"),
        ({"bytes": float("nan")}, "bytes nan: must be at least 0"),
        ({"shape": (0, 1, 1)}, "shape .*must be three numbers from 1"),
    ],
)
def test_work_that_cannot_be(changes, message):
    with pytest.raises(ConfigError, match=message):
        Work(**{"kind": "gemm", "flops": 1, "bytes": 1, "dtype": "fp32", **changes})


# Against what was measured; python -m benchmarks.roofline judges out of sample.

# Published kernel times, TensorRT-LLM in bfloat16: GPU, m, n, k, microseconds.
PUBLISHED_US = [
    ("h100-sxm", 4096, 4096, 4096, 174.285),
    ("h100-sxm", 128, 4096, 4096, 16.099),
    ("h100-sxm", 8192, 1024, 16384, 332.107),
    ("h100-sxm", 2048, 12288, 12288, 756.581),
]


@pytest.mark.parametrize(("gpu", "m", "n", "k", "measured_us"), PUBLISHED_US)
def test_published_matrix_products(gpu, m, n, k, measured_us):
    work = Work(
        kind="gemm",
        flops=2.0 * m * n * k,
        bytes=2.0 * (m * k + k * n + m * n),
        dtype="bf16",
        shape=(m, n, k),
    )
    assert predict_s(load_gpu(gpu), work) * 1e6 == pytest.approx(measured_us, rel=0.15)


@pytest.mark.parametrize("gpu", ["A100-SXM-80GB", "H100-SXM-80GB", "H200-SXM", "B200-SXM"])
def test_all_published_matrix_products(shared, gpu):
    """The median error is 5 % and less; 10 % leaves room for a refit."""
    names = {"A100-SXM-80GB": "a100-80gb", "H200-SXM": "h200", "B200-SXM": "b200"}
    errors = []
    with (shared / "published" / "gemm_measurements.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if row["gpu_type"] != gpu or row["dtype"] != "bfloat16":
                continue
            m, n, k = (int(row[name]) for name in "mnk")
            size = 2.0 * (m * k + k * n + m * n)
            work = replace(product(m, n, k), dtype="bf16", bytes=size)
            seconds = predict_s(load_gpu(names.get(gpu, "h100")), work)
            errors.append(abs(seconds / (float(row["latency_us"]) * 1e-6) - 1))
    assert len(errors) > 500
    assert statistics.median(errors) < 0.1


@settings(max_examples=30)
@given(st.sampled_from(["h100-sxm", "a100-80gb", "b200"]), st.integers(7, 14))
def test_large_products_reach_a_sensible_share_of_the_peak(name, log2):
    gpu, size = load_gpu(name), 2**log2
    work = replace(product(size, size, size), dtype="bf16", bytes=6.0 * size * size)
    share = work.flops / gpu.peak("bf16") / predict_s(gpu, work)
    assert 0 < share < 1
    assert share > 0.5 or size < 2048


@example(load_gpu("a40"), Work(kind="norm", flops=0, bytes=1, dtype="fp32", shape=(1, 2, 1)), 2)
@settings(max_examples=300)
@given(gpus, works(), st.integers(1, 64))
def test_a_shard_takes_at_least_its_part_of_the_time(gpu, work, ways):
    part = predict_s(gpu, work.shard(ways))
    assert part >= predict_s(gpu, work) / ways * (1 - 1e-9)
    assert part <= predict_s(gpu, work) * (1 + 1e-9)
