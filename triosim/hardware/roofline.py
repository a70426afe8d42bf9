"""How long a piece of work takes on a GPU: the slower of computing and moving, plus a launch.

Never less than flops / peak or bytes / bandwidth: every efficiency is at most 1 and partly filled
waves only add. Left out: caches (what fits in L2 can move faster), clocks that drop under load, and
which of a library's kernels is chosen.
"""

from __future__ import annotations

from math import ceil

from triosim.hardware.gpu import Gpu, MatmulFit
from triosim.hardware.kinds import MATRIX_KINDS
from triosim.hardware.work import Work

# The pieces into which libraries cut a matrix product, and into how many they cut the sum over k
# where there are too few pieces for all processors.
_TILES = (
    (256, 128), (128, 256), (128, 128), (256, 64), (64, 256), (128, 64), (64, 128), (64, 64),
)  # fmt: skip
_SPLITS = (1, 2, 4, 8, 16, 32, 64, 128)
_LEAST_SLICE = 64
_PARTIAL_SUM_BYTES = 4


def predict_s(gpu: Gpu, work: Work) -> float:
    """Seconds that a piece of work takes on a GPU.

    max(flops / (peak x efficiency), bytes / (bandwidth x efficiency)) + kernels x fixed time; the
    parts of an operator with parts add up.
    """
    if work.parts:
        return sum(predict_s(gpu, part) for part in work.parts)
    fixed_s = gpu.launch_s
    if work.kind in MATRIX_KINDS:
        fixed_s = gpu.fit(work.kind, work.dtype).overhead_s
    return max(_compute_s(gpu, work), _memory_s(gpu, work)) + work.kernels * fixed_s


def _compute_s(gpu: Gpu, work: Work) -> float:
    peak = gpu.peak(work.dtype)
    ideal_s = work.flops / peak
    if work.kind in MATRIX_KINDS:
        fit = gpu.fit(work.kind, work.dtype)
        if work.shape is None:
            return ideal_s / fit.efficiency
        m, n, k = work.shape
        products = work.flops / (2.0 * m * n * k)
        rate = peak * fit.efficiency / gpu.processors
        return max(ideal_s, _product_s(work.shape, products, rate, gpu, fit))
    return ideal_s / (gpu.efficiency["attention"] if work.kind == "attention" else 1.0)


def _product_s(
    shape: tuple[int, int, int], products: float, rate: float, gpu: Gpu, fit: MatmulFit
) -> float:
    """The fastest way to cut `products` matrix products into tiles and slices of k.

    A wave of tiles takes 2 tm tn (k + ramp) / rate, `rate` being one processor's; slices of k are
    added up in memory. The last wave is as long as a full one.
    """
    m, n, k = shape
    best_s = float("inf")
    for tm, tn in _TILES:
        tiles = ceil(m / tm) * ceil(n / tn) * products
        per_step_s = 2.0 * tm * tn / rate * (1 + fit.small_tile * (tm + tn) / (tm * tn))
        for split in _SPLITS:
            if split > 1 and (tiles * split > 4 * gpu.processors or k < _LEAST_SLICE * split):
                break  # more slices than fill the processors only add partial sums
            waves = ceil(tiles * split / gpu.processors)
            seconds = waves * per_step_s * (k / split + fit.ramp_k)
            if split > 1:
                moved = products * m * n * _PARTIAL_SUM_BYTES * split
                seconds += moved / gpu.memory_bytes_per_s
            best_s = min(best_s, seconds)
    return best_s


def _memory_s(gpu: Gpu, work: Work) -> float:
    kind = "memory" if work.kind in (*MATRIX_KINDS, "attention") else work.kind
    seconds = work.bytes / (gpu.memory_bytes_per_s * gpu.efficiency[kind])
    if work.kind == "norm" and work.shape is not None:
        # Statistics of one channel are one processor's work: few channels leave the others idle.
        channels = work.shape[1]
        seconds *= max(1.0, gpu.processors / channels)
    return seconds
