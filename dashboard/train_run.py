"""Training steps from a worker, kept for all sessions: read them, never change them."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.computed import once
from triosim.errors import ConfigError
from triosim.train import TrainResult, TrainScenario, make_plan, train
from triosim.train.fit import Change
from triosim.train.plan import Plan
from triosim.train.result import Band

# A few seconds of simulation; more belongs on the command line.
MAX_TASKS = 200_000
HEAVY_TASKS = 40_000  # about a second


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A step and its band, which a worker has already computed."""

    result: TrainResult
    band: Band


def answer_to(scenario: TrainScenario) -> Answer:
    """The step, from before or from a worker.

    Raises `TrioSimError`.
    """
    heavy = check_size(make_plan(scenario)) > HEAVY_TASKS
    found: Answer = once("Simulating", compute, scenario, heavy=heavy)
    return found


def compute(scenario: TrainScenario) -> Answer:
    """The step and its band."""
    result = train(scenario)
    return Answer(result=result, band=result.band)


def changes_for(result: TrainResult) -> list[Change]:
    """What would make the step fit."""
    found: list[Change] = once("Trying changes", find_changes, result.scenario, heavy=True)
    return found


def find_changes(scenario: TrainScenario) -> list[Change]:
    return train(scenario).changes_to_fit


def check_size(plan: Plan) -> int:
    """About how many tasks a step has; refuse what would try a class's patience.

    Raises `ConfigError` for the global batch.
    """
    scenario = plan.scenario
    if plan.stages > 1:
        # A pass on each virtual stage, forward and backward, and both ends of its transfer.
        tasks = 6 * plan.stages * max(scenario.chunks, 1) * plan.microbatches
    else:
        tasks = 5 * plan.model.layers * plan.microbatches
    if tasks > MAX_TASKS:
        raise ConfigError(
            "global_batch",
            plan.global_batch,
            f"{plan.microbatches:,} micro-batches make about {tasks:,} tasks and the page stops at "
            f"{MAX_TASKS:,}; the command line has no such limit",
        )
    return tasks
