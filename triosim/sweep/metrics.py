"""What a sweep keeps of each step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from triosim.analysis.breakdown import CLASSES
from triosim.result import Result
from triosim.train import TrainResult

GIB = 2**30


@dataclass(frozen=True, kw_only=True, slots=True)
class Metric:
    """A figure of a step: how it is called, its unit, and whether less of it is better."""

    text: str
    unit: str
    less_is_better: bool
    of: Callable[[Result], float | None]


def _of_training(name: str) -> Callable[[Result], float | None]:
    """Figures that only training of a language model has."""
    return lambda result: float(getattr(result, name)) if isinstance(result, TrainResult) else None


def _of_class(name: str) -> Callable[[Result], float | None]:
    return lambda result: float(getattr(result, f"{name}_ms"))


def _per_gpu(result: Result) -> float | None:
    speed = result.samples_per_s
    return None if speed is None else speed / result.scenario.gpus


METRICS: Mapping[str, Metric] = {
    "step_ms": Metric(
        text="step time", unit="ms", less_is_better=True, of=lambda result: result.total_ms
    ),
    "samples_per_s": Metric(
        text="samples per second", unit="1/s", less_is_better=False,
        of=lambda result: result.samples_per_s,
    ),
    "samples_per_s_per_gpu": Metric(
        text="samples per second and GPU", unit="1/s", less_is_better=False, of=_per_gpu
    ),
    "tokens_per_s_per_gpu": Metric(
        text="tokens per second and GPU", unit="1/s", less_is_better=False,
        of=_of_training("tokens_per_s_per_gpu"),
    ),
    "mfu": Metric(
        text="model FLOPs utilisation", unit="", less_is_better=False, of=_of_training("mfu")
    ),
    "speedup": Metric(
        text="speed-up over one GPU", unit="", less_is_better=False,
        of=lambda result: result.speedup,
    ),
    "peak_memory_gib": Metric(
        text="peak memory of the fullest GPU", unit="GiB", less_is_better=True,
        of=lambda result: result.peak_memory_bytes / GIB,
    ),
    "communication_gb": Metric(
        text="sent between GPUs in a step", unit="GB", less_is_better=True,
        of=lambda result: result.communication_bytes / 1e9,
    ),
    **{
        f"{name}_ms": Metric(
            text=name.replace("_", " "), unit="ms", less_is_better=name != "compute",
            of=_of_class(name),
        )
        for name in CLASSES
    },
}  # fmt: skip


def measure(result: Result) -> dict[str, float | None]:
    """Every metric of a step, None where its kind does not have it."""
    return {name: metric.of(result) for name, metric in METRICS.items()}
