"""What if one kind of thing were free, or twice as fast: the step simulated again for each.

The program stays what it is, in its order and with its algorithms; only what is of that kind
becomes cheaper. So a bound, not a promise: what is hidden already costs nothing, and what becomes
shorter may only make room for the next wait. Where sharing turns out worse, the figure says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from triosim.analysis.breakdown import SLOWDOWN
from triosim.engine.executor import execute
from triosim.engine.program import Program
from triosim.engine.timeline import Timeline
from triosim.explain.changed import ALL_COMPUTE, ALL_MOVES, COMPUTING, SLOW_GPUS, changed
from triosim.explain.kinds import LAUNCH, REMOTE, task_kind
from triosim.joined import circuits_of, network_of
from triosim.network.optical import CircuitSwitch
from triosim.result import Result
from triosim.train import TrainResult

CIRCUITS = "circuit set-up"
FREE, TWICE_AS_FAST = 0.0, 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class WhatIf:
    """The step if a kind of thing took no time, and half of its time; milliseconds."""

    kind: str
    free_ms: float
    twice_as_fast_ms: float
    base_ms: float


def what_if(result: Result) -> tuple[WhatIf, ...]:
    """One entry for each kind of thing in the step, the most gained first."""
    base_ms = result.total_ms
    rows = [
        WhatIf(
            kind=kind,
            free_ms=step_ms(result, kind, FREE),
            twice_as_fast_ms=step_ms(result, kind, TWICE_AS_FAST),
            base_ms=base_ms,
        )
        for kind in kinds_in(result)
    ]
    return tuple(sorted(rows, key=lambda row: (row.free_ms, row.twice_as_fast_ms, row.kind)))


def step_ms(result: Result, kind: str, factor: float) -> float:
    """The step's milliseconds if what is of a kind took `factor` times as long."""
    made = result.writer.made if isinstance(result, TrainResult) else None
    program = changed(result.tasks.program, kind, factor, made)
    timeline = execute(program, _circuits(result, factor if kind == CIRCUITS else 1.0))
    return _total_ms(result, timeline)


def _total_ms(result: Result, timeline: Timeline) -> float:
    """As the result counts it: the makespan, or the period of overlapping steps."""
    return replace(result, tasks=timeline).total_ms


def kinds_in(result: Result) -> list[str]:
    """Everything in the step that could be cheaper."""
    programs = list(_programs(result))
    found: dict[str, None] = {}
    for program in programs:
        for task in range(len(program)):
            if task in program.parts:
                found.update(dict.fromkeys(_computed(program, task)))
            elif program.transfer[task] >= 0 or program.duration_s[task] > 0:
                found[task_kind(program, task)] = None
    kinds = list(found)
    computing = [kind for kind in kinds if kind in COMPUTING]
    moves = [kind for kind in kinds if kind not in (*COMPUTING, *REMOTE, LAUNCH)]
    kinds += [ALL_COMPUTE] * (len(computing) > 1) + [ALL_MOVES] * (len(moves) > 1)
    kinds += [SLOWDOWN] * any(program.overlap_slowdown > 0 for program in programs)
    kinds += [SLOW_GPUS] * any(rank_class.speed < 1 for rank_class in result.classes)
    kinds += [CIRCUITS] * (_circuits(result, 1.0) is not None)
    return kinds


def _computed(program: Program, task: int) -> Iterator[str]:
    """Phases of a composite task; its passes say what else is in it."""
    return (part.key[0] for part in program.parts[task] if part.kind == "compute"
            and part.key[0] in COMPUTING)  # fmt: skip


def _programs(result: Result) -> Iterator[Program]:
    """The step's program, and each different pass's."""
    yield result.tasks.program
    if isinstance(result, TrainResult):
        passes = {id(one): one for made in set(result.writer.made.values()) for one in made.passes}
        yield from (one.timeline.program for one in passes.values() if one.timeline is not None)


def _circuits(result: Result, factor: float) -> CircuitSwitch | None:
    """A fresh switch with that part of the set-up time, where the step needs one."""
    if isinstance(result, TrainResult):
        return None
    scenario = result.scenario
    cheaper = replace(
        scenario,
        circuit_setup_ms=scenario.circuit_setup_ms * factor,
        circuit_teardown_ms=scenario.circuit_teardown_ms * factor,
    )
    return circuits_of(cheaper, network_of(cheaper))
