"""Fitting a generation's efficiencies to measured kernels: data in, a `Gpu` with new numbers out.

Parameters move on the whole line: shares through a logistic, positive ones through an exponential.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from triosim.hardware import Gpu, MatmulFit, Work, kind_of, load_gpu, predict_s
from triosim.trace import read_trace
from triosim.trace.scale import works_of

GEMM_GPUS = {
    "A100-SXM-80GB": "a100-80gb",
    "H100-SXM-80GB": "h100-sxm",
    "H200-SXM": "h200",
    "B200-SXM": "b200",
}
# An FP8 product there starts from 16-bit activations, which it turns into FP8 first: so many bytes
# per element of them, in a kernel of its own.
QUANTISE_BYTES = 3
PULL = 1e-3  # of the squared way from the start, in units of the loss


@dataclass(frozen=True, slots=True)
class Sample:
    """One measured kernel or operator; `group` is left out as a whole when judging."""

    gpu: str
    work: Work
    seconds: float
    group: tuple[int, int] = (0, 0)
    name: str = ""


def gemm_samples(path: Path) -> list[Sample]:
    """The published matrix products."""
    samples = []
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            m, n, k = int(row["m"]), int(row["n"]), int(row["k"])
            size = 1 if row["dtype"] == "fp8" else 2
            work = Work(
                kind="gemm",
                flops=2.0 * m * n * k,
                bytes=float((m * k + n * k) * size + 2 * m * n),
                dtype=row["dtype"],
                shape=(m, n, k),
            )
            gpu = GEMM_GPUS[row["gpu_type"]]
            samples.append(Sample(gpu, work, float(row["latency_us"]) * 1e-6, (n, k)))
    return samples


def trace_samples(folder: Path, gpu: str) -> list[Sample]:
    """The operators of a trace whose work its tensors tell."""
    trace = read_trace(folder)
    return [
        Sample(gpu, work, op.time_s, name=f"{op.phase} {kind_of(op.name)}")
        for op, work in zip(trace.operators, works_of(trace), strict=True)
        if work is not None and op.time_s > 0
    ]


@dataclass(frozen=True, kw_only=True, slots=True)
class Fit:
    """One generation's products of one type; `quantise_s` was measured with FP8 ones."""

    matmul: MatmulFit
    memory: float
    quantise_s: float


def share(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def minimise(loss: Callable[[Sequence[float]], float], start: Sequence[float]) -> list[float]:
    """Coordinate descent: step along one parameter at a time, halve the step when none helps."""
    best, least = list(start), loss(start)
    step = 0.8
    while step > 0.02:
        moved = False
        for i in range(len(best)):
            for move in (step, -step):
                trial = [x + move * (i == j) for j, x in enumerate(best)]
                value = loss(trial)
                if value < least - 1e-6:
                    best, least, moved = trial, value, True
                    break
        if not moved:
            step /= 2
    return best


GEMM_START = (2.0, 4.0, 2.0, 1.2, 1.5, 2.0)


def _gemm_fit(x: Sequence[float]) -> Fit:
    matmul = MatmulFit(
        efficiency=share(x[0]),
        ramp_k=math.exp(x[1]),
        small_tile=math.exp(x[2]),
        overhead_s=math.exp(x[3]) * 1e-6,
    )
    return Fit(matmul=matmul, memory=share(x[4]), quantise_s=math.exp(x[5]) * 1e-6)


def fit_gemm(samples: Sequence[Sample], dtype: str) -> Fit:
    """The least mean |log(predicted / measured)|.

    FP8 products take the overhead and the memory side of the 16-bit fit in the data file: with the
    quantising kernel in the measurement they cannot be told apart.
    """

    def fit(x: Sequence[float]) -> Fit:
        found = _gemm_fit(x)
        if dtype != "fp8":
            return found
        shipped = load_gpu(samples[0].gpu)
        matmul = replace(found.matmul, overhead_s=shipped.matmul["bf16"].overhead_s)
        return replace(found, matmul=matmul, memory=shipped.efficiency["memory"])

    def loss(x: Sequence[float]) -> float:
        found = fit(x)
        gpus = gemm_gpus(found, samples, dtype)
        errors = [abs(gemm_error(gpus, found.quantise_s, sample)) for sample in samples]
        return sum(errors) / len(errors) + _pull(x, GEMM_START)

    return fit(minimise(loss, GEMM_START))


def gemm_gpus(fit: Fit, samples: Iterable[Sample], dtype: str) -> dict[str, Gpu]:
    """The samples' GPUs with a fit in place of their own."""
    gpus = {}
    for name in {sample.gpu for sample in samples}:
        gpu = load_gpu(name)
        gpus[name] = replace(
            gpu,
            matmul={**gpu.matmul, dtype: fit.matmul},
            efficiency={**gpu.efficiency, "memory": fit.memory},
        )
    return gpus


def gemm_error(gpus: Mapping[str, Gpu], quantise_s: float, sample: Sample) -> float:
    """log(predicted / measured); FP8 with the quantising kernel that was measured with it."""
    gpu, work = gpus[sample.gpu], sample.work
    seconds = predict_s(gpu, work)
    if work.dtype == "fp8" and work.shape is not None:
        m, _, k = work.shape
        moved = m * k * QUANTISE_BYTES / (gpu.memory_bytes_per_s * gpu.efficiency["copy"])
        seconds += moved + quantise_s
    return math.log(seconds / sample.seconds)


def _pull(x: Sequence[float], start: Iterable[float]) -> float:
    """A faint pull towards the start settles what the data leaves open."""
    return PULL * sum((a - b) ** 2 for a, b in zip(x, start, strict=True))


# Where the search begins, and what stays where no sample bears on it.
TRACE_START: dict[str, float] = {
    "launch": 0.2, "memory": 1.5, "elementwise": 2.3, "copy": 1.5, "norm": 1.5, "pool": 0.5,
    "pool_backward": -1.0, "optimizer": 1.5, "conv.small_tile": 2.0, "conv_direct.share": 0.0,
    "conv_weight.share": 1.0, "conv_weight.ramp_k": 4.5, "conv_weight.small_tile": 3.5,
    "fp32.efficiency": 0.5, "fp32.ramp_k": 4.0, "fp32.small_tile": 2.0,
}  # fmt: skip


def with_trace(base: Gpu, x: Sequence[float]) -> Gpu:
    """A GPU with the numbers that traces fix.

    Convolutions are products of the generation's 16-bit fit with tiles of their own; those on NCHW
    tensors and weight gradients reach a part of its efficiency. float32 products have a fit of
    their own. Reductions over a batch stream like copies: alone they are too short to tell.
    """
    value = dict(zip(TRACE_START, x, strict=True))
    gemm = base.matmul["bf16"]
    matmul = {
        **base.matmul,
        "conv": replace(gemm, small_tile=math.exp(value["conv.small_tile"])),
        "conv_direct": replace(
            gemm, efficiency=gemm.efficiency * share(value["conv_direct.share"])
        ),
        "conv_weight": replace(
            gemm,
            efficiency=gemm.efficiency * share(value["conv_weight.share"]),
            ramp_k=math.exp(value["conv_weight.ramp_k"]),
            small_tile=math.exp(value["conv_weight.small_tile"]),
        ),
        "fp32": replace(
            gemm,
            efficiency=share(value["fp32.efficiency"]),
            ramp_k=math.exp(value["fp32.ramp_k"]),
            small_tile=math.exp(value["fp32.small_tile"]),
        ),
    }
    efficiency = {**base.efficiency}
    for kind in ("memory", "elementwise", "copy", "norm", "pool", "pool_backward", "optimizer"):
        efficiency[kind] = share(value[kind])
    efficiency["reduction"] = efficiency["copy"]
    launch_s = math.exp(value["launch"]) * 1e-6
    return replace(base, matmul=matmul, efficiency=efficiency, launch_s=launch_s)


def fit_trace(samples: Sequence[Sample], base: Gpu) -> Gpu:
    """Fit to operators: the mean |log(predicted / measured)|, half by count and half by time."""
    total_s = sum(sample.seconds for sample in samples)
    weights = [0.5 / len(samples) + 0.5 * sample.seconds / total_s for sample in samples]
    loss = partial(_trace_loss, samples, weights, base)
    return with_trace(base, minimise(loss, list(TRACE_START.values())))


def _trace_loss(
    samples: Sequence[Sample], weights: Sequence[float], base: Gpu, x: Sequence[float]
) -> float:
    gpu = with_trace(base, x)
    errors = (
        weight * abs(math.log(predict_s(gpu, sample.work) / sample.seconds))
        for sample, weight in zip(samples, weights, strict=True)
        if sample.work.kernels
    )
    return sum(errors) + sum(
        PULL * (a - b) ** 2 for a, b in zip(x, TRACE_START.values(), strict=True)
    )
