"""From a compared step to the page that has its settings."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from dashboard import validation_open
from dashboard.address import door_address
from dashboard.links import (
    Parameters,
    parameters_of,
    read_link,
    scenario_of,
    shipped_traces,
    values_of,
)
from dashboard.settings import SETTINGS
from dashboard.traces_store import uploads
from triosim.errors import TrioSimError
from triosim.resolved import AnyScenario, resolve
from triosim.scenario import Scenario
from triosim.train import TrainScenario

_DEFAULTS = {field.name: field.default for field in fields(Scenario)}
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
        if link.rejected or resolve(there) != resolve(without_unused(scenario)):
            return None
    except TrioSimError:
        return None
    return "pages/simulate.py", "Simulate", door_address(parameters, SETTINGS)


def without_unused(scenario: Scenario) -> Scenario:
    """The step with the engine's defaults where a setting does not matter beside the others."""
    values = values_of(scenario)
    unused: dict[str, Any] = {
        name: _DEFAULTS[setting.field]
        for name, setting in SETTINGS.items()
        if setting.field in _DEFAULTS and not setting.matters(values)
    }
    return replace(scenario, **unused)
