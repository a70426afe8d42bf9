"""How a scenario's step varies from step to step: jitter, and GPUs that are slow now and then."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from triosim.jitter import (
    MAX_SPEEDS,
    Floats,
    StepTimes,
    draw_speeds,
    on_curve,
    slowest_factors,
)
from triosim.parallel.plan import Plan
from triosim.scenario import Scenario

PIPELINE_DRAWS = 48

Step = Callable[[Plan], float]  # the seconds of a step


def step_times(scenario: Scenario, plan: Plan, step: Step) -> StepTimes | None:
    """The distribution of a step's time over many; None where every step is the same.

    `step` simulates a plan like the scenario's, with other speeds.
    """
    slow = scenario.speeds
    now_and_then = bool(slow) and scenario.slow_every > 1
    if scenario.jitter == 0 and not now_and_then:
        return None
    draw = _pipeline_draws if scenario.case == 4 else _draws
    often = draw(scenario, plan, step, slow)
    if not now_and_then:
        return StepTimes.of(often)
    usual = draw(scenario, plan, step, {})
    return StepTimes.of(often, usual, slow_every=scenario.slow_every)


def _draws(scenario: Scenario, plan: Plan, step: Step, slow: Mapping[int, float]) -> Floats:
    """Step times of the cases in which the slowest rank decides."""

    def step_s(factor: float) -> float:
        # All ranks as slow as the slowest: the others only wait for it.
        speeds = dict.fromkeys(range(plan.gpus), 1 / factor)
        return step(replace(plan, speeds=speeds, fold=True))

    return on_curve(slowest_factors(plan.gpus, slow, scenario.jitter, scenario.seed), step_s)


def _pipeline_draws(
    scenario: Scenario, plan: Plan, step: Step, slow: Mapping[int, float]
) -> Floats:
    """Step times of pipelines, one simulation each; a single one where nothing is random."""
    draws = PIPELINE_DRAWS if scenario.jitter else 1
    each = (speeds_in_step(scenario, slow, (scenario.seed, i)) for i in range(draws))
    return np.array([step(replace(plan, speeds=speeds)) for speeds in each])


def speeds_in_step(
    scenario: Scenario, slow: Mapping[int, float], seed: int | tuple[int, int]
) -> dict[int, float]:
    """The ranks that are not at full speed in one step."""
    # The stages of a pipeline are classes of their own anyway.
    most = scenario.gpus if scenario.case == 4 else MAX_SPEEDS
    return draw_speeds(scenario.gpus, slow, scenario.jitter, seed, most)
