"""How well the roofline of triosim.hardware predicts what was measured, out of sample.

    python -m benchmarks.roofline                    refit everything; two minutes
    python -m benchmarks.roofline FROM TO [GPU]      scale trace folder FROM to TO's batch

Fits the published matrix products of each GPU generation, then the two published H100 traces, and
judges every fit by what it has not seen: whole groups of shapes left out; VGG13 by ResNet-50 and
the other way round (the numbers, that is: which kernels cuDNN runs, triosim/trace/convolution.py
read off both). The fits to all of it are the numbers in triosim/hardware/data. Data that is
not beside the repository is passed over.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks.fitting import (
    Sample,
    fit_gemm,
    fit_trace,
    gemm_error,
    gemm_gpus,
    gemm_samples,
    trace_samples,
)
from triosim.hardware import Gpu, MatmulFit, load_gpu, predict_s
from triosim.trace import Trace, on_gpu, read_trace, scaled

SHARED = Path(__file__).resolve().parents[2] / "shared"
GEMM = SHARED / "published" / "gemm_measurements.csv"
TRACES = SHARED / "upstream" / "trace2-h100-bs128"
TRACE_GPU = "h100-sxm"
GENERATIONS = {"ampere": ("a100-80gb",), "hopper": ("h100-sxm", "h200"), "blackwell": ("b200",)}
FOLDS = 5


def main(arguments: Sequence[str]) -> None:
    if len(arguments) >= 2:
        print_batches(*arguments[:3])
        return
    if GEMM.is_file():
        print_gemm(gemm_samples(GEMM))
    else:
        print(f"no {GEMM.name} beside the repository: no matrix products to judge")
    if TRACES.is_dir():
        names = ("vgg13", "resnet50")
        print_traces({name: trace_samples(TRACES / name, TRACE_GPU) for name in names})
    else:
        print(f"no {TRACES.name} beside the repository: no traces to judge")


def print_gemm(samples: Sequence[Sample]) -> None:
    """One line per generation and type, and the fit to all of it."""
    print("matrix products, TensorRT-LLM kernels: |predicted / measured - 1|")
    print(f"in sample: as in the data files; left out: 1/{FOLDS} of the (n, k) groups in turn")
    print(f"{'':22} {'shapes':>7} {'in sample':>10} {'left out':>9} {'90th %':>8}   refitted")
    for generation, gpus in GENERATIONS.items():
        for dtype in ("bf16", "fp8"):
            chosen = [s for s in samples if s.gpu in gpus and _type(s) == dtype]
            if chosen:
                _print_gemm_line(f"{generation} {dtype}", chosen, dtype)


def _type(sample: Sample) -> str:
    return "fp8" if sample.work.dtype == "fp8" else "bf16"


def _print_gemm_line(name: str, samples: Sequence[Sample], dtype: str) -> None:
    fit = fit_gemm(samples, dtype)
    shipped = {s.gpu: load_gpu(s.gpu) for s in samples}
    inside = [_relative(gemm_error(shipped, fit.quantise_s, s)) for s in samples]
    outside = _left_out(samples, dtype)
    matmul = next(iter(gemm_gpus(fit, samples, dtype).values())).matmul[dtype]
    print(
        f"{name:22} {len(samples):>7} {statistics.median(inside):>10.1%} "
        f"{statistics.median(outside):>9.1%} {_percentile(outside, 0.9):>8.1%}   "
        f"{_described(matmul)}, memory {fit.memory:.3g}"
    )


def _left_out(samples: Sequence[Sample], dtype: str) -> list[float]:
    """Errors on each fifth of the groups by a fit to the other four."""
    groups = sorted({s.group for s in samples})
    errors = []
    for fold in range(FOLDS):
        # Strides through the sorted groups spread every fold over small and large shapes.
        unseen = set(groups[fold::FOLDS])
        fit = fit_gemm([s for s in samples if s.group not in unseen], dtype)
        gpus = gemm_gpus(fit, samples, dtype)
        judged = (s for s in samples if s.group in unseen)
        errors += [_relative(gemm_error(gpus, fit.quantise_s, s)) for s in judged]
    return errors


def _relative(log_error: float) -> float:
    return abs(math.exp(log_error) - 1)


def _percentile(values: Iterable[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _described(fit: MatmulFit) -> str:
    return (
        f"efficiency {fit.efficiency:.3g}, ramp_k {fit.ramp_k:.3g}, small_tile "
        f"{fit.small_tile:.3g}, overhead {fit.overhead_s * 1e6:.3g} us"
    )


def print_traces(samples: Mapping[str, Sequence[Sample]]) -> None:
    """Each trace by a fit to the other one, by a fit to both, and by the data files."""
    base = load_gpu(TRACE_GPU)
    print(f"\none step on an {TRACE_GPU}, float32: convolutions TF32, matrix products float32")
    print(f"{'':36} {'measured':>9} {'predicted':>10} {'step':>7} {'operators':>10}")
    fits: dict[str, Gpu] = {}
    for name in samples:
        others = [s for other, found in samples.items() if other != name for s in found]
        fits[f"without {name}"] = fit_trace(others, base)
        _print_step(name, "fitted without it", samples[name], fits[f"without {name}"])
    fits["refitted"] = fit_trace([s for found in samples.values() for s in found], base)
    for label, gpu in (("fitted with it", fits["refitted"]), ("data file", base)):
        for name, found in samples.items():
            _print_step(name, label, found, gpu)
    print("step: predicted / measured - 1; operators: median |predicted / measured - 1|")
    for name, found in samples.items():
        _print_kinds(name, found, fits[f"without {name}"])
    for label, gpu in fits.items():
        print(f"\n{label}: launch {gpu.launch_s * 1e6:.3g} us")
        print("  " + ", ".join(f"{kind} {share:.3g}" for kind, share in gpu.efficiency.items()))
        for kind in ("conv", "conv_direct", "conv_weight", "fp32"):
            print(f"  {kind}: {_described(gpu.matmul[kind])}")


def _print_step(name: str, label: str, samples: Sequence[Sample], gpu: Gpu) -> None:
    measured_s = sum(s.seconds for s in samples)
    predicted_s = sum(predict_s(gpu, s.work) for s in samples)
    errors = [abs(predict_s(gpu, s.work) / s.seconds - 1) for s in samples]
    print(
        f"{name:16}{label:20} {measured_s * 1e3:>6.1f} ms {predicted_s * 1e3:>7.1f} ms "
        f"{predicted_s / measured_s - 1:>+7.1%} {statistics.median(errors):>10.1%}"
    )


def _print_kinds(name: str, samples: Sequence[Sample], gpu: Gpu) -> None:
    """Where the time of a step is, measured and predicted without it, above 1 % of the step."""
    print(f"\n{name}, fitted without it, by kind: measured, predicted")
    least_s = 0.01 * sum(s.seconds for s in samples)
    for kind in dict.fromkeys(s.name for s in samples):
        chosen = [s for s in samples if s.name == kind]
        measured_s = sum(s.seconds for s in chosen)
        if measured_s >= least_s:
            predicted_s = sum(predict_s(gpu, s.work) for s in chosen)
            print(f"  {kind:28} {measured_s * 1e3:>7.2f} ms {predicted_s * 1e3:>7.2f} ms")


def batch_error(source: Trace, target: Trace, gpu: str | None = None) -> tuple[float, float]:
    """Relative error of `source` scaled to `target`'s batch, by roofline and in proportion.

    The paper of TrioSim reports 1.1 to 3.3 % from batch 128 to 256 on one GPU. `gpu` is what both
    were taken on, by default what the trace says.
    """
    by_roofline = scaled(source, batch_size=target.batch_size, trace_gpu=gpu)
    factor = target.batch_size / source.batch_size
    optimizer_s = sum(op.time_s for op in source.operators if op.phase == "optimizer")
    in_proportion_s = (source.total_s - optimizer_s) * factor + optimizer_s
    return by_roofline.total_s / target.total_s - 1, in_proportion_s / target.total_s - 1


def print_batches(source: str, target: str, gpu: str | None = None) -> None:
    one, other = read_trace(source), read_trace(target)
    by_roofline, in_proportion = batch_error(one, other, gpu)
    if on_gpu(one, trace_gpu=gpu).gpu is None:
        print("the trace does not name a GPU of the catalogue: times scale in proportion")
    print(
        f"batch {one.batch_size} ({one.total_s * 1e3:.3f} ms) to {other.batch_size} "
        f"({other.total_s * 1e3:.3f} ms measured): by roofline {by_roofline:+.1%}, in proportion "
        f"{in_proportion:+.1%}"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
