"""Training scenario in, result out: resolve -> write the step -> execute -> read off."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from triosim.engine.executor import execute
from triosim.train.checks import run_train_checks
from triosim.train.notes import assumptions_of, warnings_of
from triosim.train.plan import Plan
from triosim.train.resolve import make_plan
from triosim.train.result import TrainResult
from triosim.train.scenario import TrainScenario
from triosim.train.size import check_size
from triosim.train.step import StepWriter


def train(scenario: TrainScenario) -> TrainResult:
    """Simulate one training step of a language model on a device mesh.

    Raises `ConfigError` or `Infeasible`, both of them `TrioSimError`. A plan that does not fit in
    memory is a result with `fits` false.
    """
    result = simulate_step(scenario)
    noted = result.noting(checks=run_train_checks(result), warnings=warnings_of(result))
    assert isinstance(noted, TrainResult)
    return noted


def simulate_step(scenario: TrainScenario, *, fold: bool = True) -> TrainResult:
    """The same without checks and notes; without `fold` every rank is simulated."""
    return run_plan(make_plan(scenario), fold=fold)


def run_plan(plan: Plan, *, fold: bool = True) -> TrainResult:
    """Write a plan's step and execute it."""
    check_size(plan)
    with _all_stays():
        writer = StepWriter(plan, fold=fold)
        timeline = execute(writer.write())
    return TrainResult(
        scenario=plan.scenario,
        tasks=timeline,
        single_gpu_s=None,
        samples=plan.global_batch,
        plan=plan,
        writer=writer,
        run=run_plan,
        assumptions=assumptions_of(plan),
    )


@contextmanager
def _all_stays() -> Iterator[None]:
    """No search for garbage while a program grows: of its many objects none goes before the end."""
    searching = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if searching:
            gc.enable()
