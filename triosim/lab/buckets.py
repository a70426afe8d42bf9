"""A training step made by hand for questions on buckets: backward in equal parts, nothing else."""

from __future__ import annotations

from functools import lru_cache

from triosim.analysis.breakdown import break_down
from triosim.scenario import Scenario
from triosim.simulate import make_plan, run
from triosim.trace.model import Operator, Tensor, Trace

MIB = 2**20


def exposed_ms(
    *, backward_ms: float, buckets: int, gradients_mb: float, algbw_gb_per_s: float
) -> float:
    """What the optimizer waits for after backward, by the engine.

    As many layers as buckets, each with its share of backward and of the gradients.
    """
    trace = _trace(backward_ms, buckets, gradients_mb)
    scenario = Scenario(
        case=2,
        gpus=8,
        ptp_bandwidth_gb_per_s=algbw_gb_per_s,
        resident=True,
        bucket_mb=gradients_mb * 1e6 / buckets / MIB,
    )
    timeline = run(scenario, make_plan(scenario, trace))
    return break_down(timeline, 0).classes_s["exposed_communication"] * 1e3


@lru_cache(maxsize=64)
def _trace(backward_ms: float, layers: int, gradients_mb: float) -> Trace:
    size = round(gradients_mb * 1e6 / layers)
    activations = [_tensor(i, 1) for i in range(layers + 1)]
    weights = [_tensor(100 + i, size) for i in range(layers)]
    gradients = [_tensor(200 + i, size) for i in range(layers)]
    errors = [_tensor(300 + i, 1) for i in range(layers)]
    forward = [
        _operator(f"layer {i}", "forward", 0.0, (activations[i], weights[i]), (activations[i + 1],))
        for i in range(layers)
    ]
    backward = [
        _operator(
            f"layer {i} backward",
            "backward",
            backward_ms / layers,
            (activations[layers] if i == layers - 1 else errors[i + 1], activations[i], weights[i]),
            (errors[i], gradients[i]),
        )
        for i in reversed(range(layers))
    ]
    step = _operator("step", "optimizer", 0.0, (*weights, *gradients), ())
    return Trace(name="buckets", operators=(*forward, *backward, step), batch_size=1)


def _tensor(number: int, size: int) -> Tensor:
    return Tensor(id=number, storage=number, shape=(size,), numel=size, element_bytes=1)


def _operator(
    name: str, phase: str, ms: float, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]
) -> Operator:
    return Operator(id=1, name=name, phase=phase, time_s=ms * 1e-3, inputs=inputs, outputs=outputs)
