"""From a compared step to the page that has its settings."""

from __future__ import annotations

from dashboard import validation_open
from dashboard.links import (
    Parameters,
    parameters_of,
    read_link,
    scenario_of,
    shipped_traces,
    values_of,
)
from dashboard.traces_store import uploads
from triosim.errors import TrioSimError
from triosim.resolved import AnyScenario, resolve
from triosim.train import TrainScenario

Door = tuple[str, str, Parameters]


def door_to(scenario: AnyScenario) -> Door | None:
    """Page, label and address; None where that page lacks a setting of it."""
    if isinstance(scenario, TrainScenario):
        parameters = validation_open.door_to(scenario)
        return None if parameters is None else ("pages/train.py", "Train", parameters)
    try:
        parameters = parameters_of(values_of(scenario))
        raw = {
            name: said if isinstance(said, list) else [said] for name, said in parameters.items()
        }
        link = read_link(raw, [*shipped_traces(), *uploads()])
        there = scenario_of(link.values)
        if link.rejected or resolve(there) != resolve(scenario):
            return None
    except TrioSimError:
        return None
    return "pages/simulate.py", "Simulate", parameters
