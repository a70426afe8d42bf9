"""The layers of a recorded step, found by module path.

The numbered part that most operators carry makes them, as in model.layers.3. What runs before the
first layer and after the last one makes the ends of the model.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from triosim.errors import ConfigError
from triosim.hardware.gpu import canonical_dtype
from triosim.trace import Trace
from triosim.trace.sizes import compute_dtype
from triosim.train.scenario import TrainScenario

_HALVES = ("bf16", "fp16")
_NUMBERED = re.compile(r"(?:^|(?<=\.))(\d+)(?=\.|$)")


@dataclass(frozen=True, kw_only=True, eq=False)
class Layers:
    """Where each operator of a trace belongs: -1 before the layers, `count` after them."""

    trace: Trace
    count: int
    of: tuple[int, ...]

    def operators(self, layer: int, phase: str) -> list[int]:
        return [i for i in self.trace.phase(phase) if self.of[i] == layer]


@lru_cache(maxsize=8)
def find_layers(trace: Trace) -> Layers:
    """The layers by module path; `ConfigError` where operators carry none."""
    numbered = [_NUMBERED.search(op.module) for op in trace.operators]
    prefixes = Counter(
        op.module[: found.start()]
        for op, found in zip(trace.operators, numbered, strict=True)
        if found is not None
    )
    if not prefixes:
        raise ConfigError(
            "trace_dir",
            trace.name,
            "its operators carry no module paths with numbered layers; record it anew with the "
            "tracer, which writes them (its older recordings and other profiler files have none)",
        )
    prefix = prefixes.most_common(1)[0][0]
    own = [
        int(found[1]) if found is not None and op.module[: found.start()] == prefix else None
        for op, found in zip(trace.operators, numbered, strict=True)
    ]
    names = {n: i for i, n in enumerate(sorted({n for n in own if n is not None}))}
    of = [-1] * len(own)
    for phase, start, end in (("forward", -1, len(names)), ("backward", len(names), -1)):
        _fill(of, [(i, own[i]) for i in trace.phase(phase)], names, start, end)
    return Layers(trace=trace, count=len(names), of=tuple(of))


def _fill(
    of: list[int], tagged: Sequence[tuple[int, int | None]], names: dict[int, int],
    start: int, end: int,
) -> None:  # fmt: skip
    """What carries no number belongs to the layer that runs around it."""
    last = max((k for k, (_, n) in enumerate(tagged) if n is not None), default=-1)
    layer = start
    for k, (i, number) in enumerate(tagged):
        layer = names[number] if number is not None else layer if k < last else end
        of[i] = layer


def _computed_in(trace: Trace) -> str:
    """The type that most of the step is computed in."""
    seconds: dict[str, float] = {}
    for op in trace.operators:
        name = canonical_dtype(compute_dtype(op))
        seconds[name] = seconds.get(name, 0.0) + op.time_s
    return max(seconds, key=seconds.__getitem__)


def check_traced(scenario: TrainScenario, trace: Trace, split: bool) -> None:
    """Raise `ConfigError` for what a trace cannot be asked."""
    for axis in ("tp", "cp", "ep"):
        if getattr(scenario, axis) != 1:
            problem = "a trace can be spread over dp and pp; this axis needs a model's description"
            raise ConfigError(axis, getattr(scenario, axis), problem)
    own = _computed_in(trace)
    wider = own in _HALVES and scenario.precision in ("fp32", "tf32")
    if scenario.precision.startswith("fp8") or wider:
        problem = f"a trace has the types it was taken in, this one {own}"
        raise ConfigError("precision", scenario.precision, problem)
    if scenario.recompute in ("selective-op", "attention"):
        legal = "of a trace, none, full and selective-layer:N are known"
        raise ConfigError("recompute", scenario.recompute, legal)
    if split:
        problem = "needs the weights' part of backward apart, which a trace does not tell"
        raise ConfigError("schedule", scenario.schedule, problem)
