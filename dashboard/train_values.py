"""From what the controls of the page Train say to a scenario, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dashboard.described import read_description, write_description
from dashboard.links import read_speeds, write_speeds
from dashboard.settings import DESCRIBED
from dashboard.traces_store import folder_of
from dashboard.train_configs import path_of
from dashboard.train_settings import (
    CATALOGUE,
    CONFIG,
    CONSTANTS,
    EVERY_NTH,
    FIELDS,
    NAMED,
    NEEDED,
    OWN_GRID,
    RECOMPUTE,
    SETTINGS,
    SHAPED,
    SIZES,
    TRACE,
    TYPED,
)
from triosim.errors import ConfigError
from triosim.mesh import training_mesh
from triosim.network.topology.description import Description
from triosim.train import TrainScenario
from triosim.train.scenario import layer_period

_AXES = ("dp_replicate", "dp_shard", "cp", "tp", "pp")


def with_defaults(values: Mapping[str, Any]) -> dict[str, Any]:
    """All settings: those that are not given, or do not matter now, have their default."""
    known = {name: values.get(name, setting.default) for name, setting in SETTINGS.items()}
    return {
        name: value if SETTINGS[name].matters(known) else SETTINGS[name].default
        for name, value in known.items()
    }


def scenario_of(values: Mapping[str, Any]) -> TrainScenario:
    """The scenario that the controls say.

    Raises `ConfigError` naming the field.
    """
    known = with_defaults(values)
    given = {field: _meant(name, known[name]) for name, field in FIELDS.items()}
    given |= _model(known)
    if known["pipeline"] == OWN_GRID:
        given |= {"schedule": "1f1b", "grid": known["grid"] or ""}
    if known["recompute"] == EVERY_NTH:
        given["recompute"] = f"selective-layer:{known['period']}"
    if known["machine"] == DESCRIBED:
        given["machine"] = read_description(known["described"] or "", "described")
    if known["shape"]:
        given["machine"] += f":{known['shape'].strip()}"
    given["constants"] = {
        name: known[control] for control, name in CONSTANTS.items() if known[control] is not None
    } or None
    return TrainScenario(**given)


def model_scenario(values: Mapping[str, Any], *, sizes: bool = True) -> TrainScenario:
    """A scenario of the model alone, without what is typed over its sizes if `sizes` is false."""
    known = with_defaults(values)
    changed = sizes or known["origin"] == TYPED
    given = {name: _meant(name, known[name]) for name in SIZES} if changed else {}
    return TrainScenario(**{**given, **_model(known)})


def _meant(name: str, value: Any) -> Any:
    """The field's value for what a control says."""
    if name == "machine" and value == DESCRIBED:
        return None  # a description says it
    if name in NAMED:
        return NAMED[name][value]
    if name == "shard" and value is None:
        return -1
    if name == "slow":
        return read_speeds(value or "") or None
    if SETTINGS[name].kind == "text":
        return value or None
    return value


def _model(known: Mapping[str, Any]) -> dict[str, Any]:
    """Where the model is from; of the four ways one."""
    origin = known["origin"]
    missing = [name for name in NEEDED if known[name] is None]
    if origin == TYPED and missing:
        raise ConfigError(missing[0], "(empty)", "a model of your own needs it")
    return {
        "model": known["model"] if origin == CATALOGUE else None,
        "config": str(path_of(known["config"])) if origin == CONFIG else None,
        "trace_dir": _recorded(known["recorded"]) if origin == TRACE else None,
    }


def _recorded(name: str | None) -> str:
    if name is None:
        raise ConfigError("trace_dir", "(none)", "choose a recorded step")
    return str(folder_of(name))


def values_of(scenario: TrainScenario) -> dict[str, Any]:
    """What the controls say for a scenario: the inverse of `scenario_of`.

    Raises `ConfigError` where no control can say it: a file of a topology.
    """
    scenario = _without_rest(scenario)
    values = {name: _said(name, getattr(scenario, field)) for name, field in FIELDS.items()}
    values |= {"model": SETTINGS["model"].default, **_origin(scenario)}
    values |= _machine(scenario.machine)
    values |= dict.fromkeys(CONSTANTS) | {
        f"stack_{name}": value for name, value in scenario.constants or ()
    }
    if scenario.grid is not None:
        values["pipeline"] = OWN_GRID
    values["period"] = SETTINGS["period"].default
    if scenario.recompute not in RECOMPUTE:
        values |= {"recompute": EVERY_NTH, "period": layer_period(scenario.recompute)}
    return values


def _said(name: str, value: Any) -> Any:
    """What a control says for its field's value."""
    if name in NAMED and name != "machine":
        return next(said for said, meant in NAMED[name].items() if meant == value)
    if name == "shard" and value == -1:
        return None
    if name == "slow":
        return write_speeds(dict(value or ())) or None
    return value


def _origin(scenario: TrainScenario) -> dict[str, Any]:
    if scenario.trace_dir is not None:
        return {"origin": TRACE, "recorded": Path(scenario.trace_dir).name}
    if scenario.config is not None:
        return {"origin": CONFIG, "config": Path(scenario.config).parent.name}
    if scenario.model is None:
        return {"origin": TYPED}
    return {"origin": CATALOGUE, "model": scenario.model}


def _machine(machine: str | Description | None) -> dict[str, Any]:
    if isinstance(machine, Description):
        text = write_description(machine, "machine")
        return {"machine": DESCRIBED, "shape": None, "described": text}
    name, _, shape = (machine or "").partition(":")
    if machine is not None and name not in NAMED["machine"]:
        raise ConfigError("machine", Path(machine).name, "this page has no such machine")
    if shape and name not in SHAPED:
        raise ConfigError("machine", machine, "has no shape to choose")
    found = next(said for said, meant in NAMED["machine"].items() if meant == (name or None))
    return {"machine": found, "shape": shape or None, "described": None}


def _without_rest(scenario: TrainScenario) -> TrainScenario:
    """An axis other than dp_shard that takes what is left gets the number that it stands for."""
    asked = {axis: getattr(scenario, axis) for axis in _AXES}
    if -1 not in asked.values() or asked["dp_shard"] == -1:
        return scenario
    mesh = training_mesh(scenario.gpus, **asked)
    return replace(scenario, **{axis: mesh.axis_size(axis) for axis in _AXES})
