"""What a scenario is called: in a few words, as text and not as Markdown."""

from __future__ import annotations

from pathlib import Path

from dashboard.joined import joined
from dashboard.settings import case_title
from dashboard.traces_store import label_of
from triosim import Scenario
from triosim.errors import TrioSimError, counted
from triosim.figures.text import MIDDLE_DOT
from triosim.resolved import AnyScenario
from triosim.train import make_plan
from triosim.train.plan import Plan


def name_of(scenario: AnyScenario) -> str:
    """The workload, how it is spread, and on how many GPUs."""
    if isinstance(scenario, Scenario):
        name = label_of(Path(scenario.trace_dir).name)
        gpus = counted(scenario.gpus, "GPU")
        return f"{name}, {case_title(scenario.case)}, {gpus}{joined(scenario)}"
    try:
        return plan_name(make_plan(scenario))
    except TrioSimError:
        return f"{scenario.model or 'a model'} on {counted(scenario.gpus, 'GPU')}"


def plan_name(plan: Plan) -> str:
    """The model, its GPUs, and the axes that are more than one GPU long."""
    axes = [f"{name} {size}" for name, size in plan.sizes.items() if size > 1]
    where = f"{plan.model.name} on {counted(plan.scenario.gpus, 'GPU')}"
    return f" {MIDDLE_DOT} ".join([where, *axes])
