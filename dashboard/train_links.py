"""The address of the page Train: what it says, and a sentence for what it says wrongly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from dashboard import address, traces_store, train_configs
from dashboard.address import Raw, here, put_right, read_parameters, setting_value
from dashboard.described import MAX_TEXT
from dashboard.links import Link, Parameters, parameter_of, shipped_traces, text_of
from dashboard.settings import VERSION
from dashboard.train_settings import SETTINGS, VIEW
from dashboard.train_values import values_of, with_defaults
from triosim.errors import ConfigError
from triosim.train import TrainScenario

ADDRESS = "train_address"  # in the session
_VIEWED = {setting.name: setting.default for setting in VIEW}


def read_train(raw: Raw, *, own: bool = False) -> Link:
    """What an address means; parts that are not accepted count as absent, with a sentence each.

    `own` says that the page's widgets wrote it: a number out of range is then theirs to answer, and
    so is what does not matter for a moment.
    """
    link = read_parameters(raw, partial(_value, own))
    return link if own else _without_unused(link)


def _value(own: bool, name: str, texts: Sequence[str]) -> Any:
    value = setting_value(SETTINGS.get(name), name, texts, own=own, longest=MAX_TEXT)
    if name == "config" and value not in train_configs.configs():
        raise ConfigError(name, value or "(empty)", train_configs.absent(value))
    if name == "recorded" and value not in shipped_traces():
        if not traces_store.is_upload(value):
            legal = f"must be one of {', '.join(shipped_traces())}"
            raise ConfigError(name, value or "(empty)", legal)
        if value not in traces_store.uploads():
            raise ConfigError(name, value, traces_store.absent(value))
    return value


def _without_unused(link: Link) -> Link:
    """Settings that do not matter beside the others go, with a sentence each."""
    known = {name: link.values.get(name, setting.default) for name, setting in SETTINGS.items()}
    unused = [name for name in link.values if not SETTINGS[name].matters(known)]
    sentences = [
        f"{name} {text_of(link.values[name])}: {SETTINGS[name].reason}, so it is not used."
        for name in unused
    ]
    return replace(
        link,
        values={name: value for name, value in link.values.items() if name not in unused},
        parameters={name: said for name, said in link.parameters.items() if name not in unused},
        rejected=[*link.rejected, *sentences],
    )


def address_of(values: Mapping[str, Any]) -> Parameters:
    """The address of what the controls say; defaults and what does not matter are left out."""
    known = with_defaults(values)
    return {"v": VERSION} | {
        name: parameter_of(known[name])
        for name, setting in SETTINGS.items()
        if known[name] not in (setting.default, None)
    }


def keep_view() -> None:
    """Note what is looked at for the way back from another page."""
    address.keep_view(ADDRESS, _VIEWED)


def link_to(scenario: TrainScenario) -> Parameters:
    """The address of a scenario, for links from other pages."""
    return address.door_address(address_of(values_of(scenario)), SETTINGS)


def set_to() -> Mapping[str, Any]:
    """What the address means now."""
    values = read_train(here(), own=True).values
    return {name: value for name, value in values.items() if value != SETTINGS[name].default}


def read_address(arrived: bool) -> None:
    """Note what is wrong with the address and put it right, before the first widget."""
    put_right("train", read_train(here(), own=not arrived), SETTINGS, arrived=arrived)
