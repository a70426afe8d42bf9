"""Predictions of published runs, with the calibrated stack and with the generic one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace

from triosim.errors import TrioSimError
from triosim.hardware.stacks import Stack, load_stack
from triosim.train import TrainScenario, make_plan
from triosim.train.blocks import BACKWARD, FORWARD
from triosim.train.train import run_plan
from triosim.validation.tables import LAYER, Row

GENERIC = "generic"


@dataclass(frozen=True, kw_only=True, slots=True)
class Prediction:
    """Seconds and GiB of one run; without them `problem` says why there are none."""

    seconds: float | None = None
    gib: float | None = None
    problem: str = ""


def predict(scenario: TrainScenario, measured: str, stack: Stack | None = None) -> Prediction:
    """One run, with other constants of its stack where given.

    A scenario that the engine refuses is a prediction with a problem.
    """
    try:
        plan = make_plan(scenario)
        result = run_plan(plan if stack is None else replace(plan, stack=stack))
        if measured != LAYER:
            return Prediction(seconds=result.step_s, gib=result.peak_memory_gib)
        blocks = result.writer.blocks
        layer = next(unit for unit in result.plan.units(0) if unit.layer >= 0)
        seconds = sum(blocks.simulate(layer, kind).seconds for kind in (FORWARD, BACKWARD))
        return Prediction(seconds=seconds)
    except TrioSimError as error:
        return Prediction(problem=str(error))


def uncalibrated(scenario: TrainScenario) -> TrainScenario:
    """The same run with the generic stack, compiled where it was."""
    return replace(scenario, stack=GENERIC, compile=scenario.compiled)


def predict_rows(rows: Sequence[Row], jobs: int = 1) -> Iterator[tuple[Prediction, Prediction]]:
    """For each row the calibrated and the uncalibrated prediction, in `jobs` processes."""
    if jobs <= 1:
        yield from map(_both, rows)
        return
    with ProcessPoolExecutor(max_workers=jobs) as pool:
        yield from pool.map(_both, rows, chunksize=4)


def _both(row: Row) -> tuple[Prediction, Prediction]:
    own, generic = row.scenario, uncalibrated(row.scenario)
    return predict(own, row.measured), predict(generic, row.measured, told(row))


def told(row: Row) -> Stack:
    """The generic stack with the operators that ran: known of the code, whatever its speed."""
    stack = load_stack(GENERIC)
    return stack if row.operators is None else replace(stack, implementation=row.operators)
