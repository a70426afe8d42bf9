"""One layer of a model on the engine: what a rank computes, sends and waits for, pass by pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from triosim.engine.program import LAUNCH_PHASE
from triosim.train import TrainScenario, make_plan
from triosim.train.blocks import BACKWARD, FORWARD
from triosim.train.network import Wires
from triosim.train.passes import Pass
from triosim.train.plan import Plan, Unit
from triosim.train.step import make_blocks

MS = 1e3
EXPOSED = "exposed_communication"
COMPUTE = "compute"
LAYER, HEAD = "layer", "head"

Row = tuple[str, str, str, float, float]
"""Stream, name, phase, start and end in ms."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerRun:
    """A unit's forward pass and, unless it is a prefill, the backward pass after it.

    Times are of both passes; `sent_bytes` is what a rank sends in each of them. `kept_bytes` is
    what one micro-batch leaves for backward.
    """

    passes: tuple[str, ...]
    seconds: tuple[float, ...]
    exposed_s: tuple[float, ...]
    sent_bytes: tuple[float, ...]
    rows: tuple[Row, ...]
    kept_bytes: int

    @property
    def total_ms(self) -> float:
        return MS * sum(self.seconds)

    @property
    def exposed_ms(self) -> float:
        return MS * sum(self.exposed_s)


@lru_cache(maxsize=256)
def layer_run(scenario: TrainScenario, part: str = LAYER) -> LayerRun:
    """The first layer, or what follows the last one, of a plan without pipeline stages.

    Raises `ConfigError` where the plan is not possible.
    """
    plan = make_plan(scenario)
    blocks = make_blocks(plan, Wires(plan))
    unit = _unit(plan, part)
    kinds = (FORWARD,) if scenario.prefill else (FORWARD, BACKWARD)
    passes = [blocks.simulate(unit, kind) for kind in kinds]
    return LayerRun(
        passes=kinds,
        seconds=tuple(one.seconds for one in passes),
        exposed_s=tuple(_exposed_s(one) for one in passes),
        sent_bytes=tuple(sum(m.sent_bytes for m in one.moved.values()) for one in passes),
        rows=_rows(passes),
        kept_bytes=blocks.memory(unit).kept,
    )


def layer_runs(scenarios: Sequence[TrainScenario], part: str = LAYER) -> list[LayerRun]:
    """Several of them: what a worker runs."""
    return [layer_run(scenario, part) for scenario in scenarios]


def _unit(plan: Plan, part: str) -> Unit:
    units = plan.virtual_stages[0]
    return next(unit for unit in units if unit.layer == 0) if part == LAYER else units[-1]


def _exposed_s(one: Pass) -> float:
    return sum(part.seconds for part in one.parts if part.kind == EXPOSED)


def _rows(passes: Sequence[Pass]) -> tuple[Row, ...]:
    """What the GPU runs, one pass after the other; launches are the CPU's and left out."""
    rows: list[Row] = []
    start_s = 0.0
    for one in passes:
        rows += [
            (stream, name, phase, MS * (start_s + a), MS * (start_s + b))
            for stream, name, phase, a, b in one.rows()
            if phase != LAUNCH_PHASE
        ]
        start_s += one.seconds
    return tuple(rows)
