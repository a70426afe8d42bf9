"""The address of the page Network: what it says, and a sentence for what it says wrongly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from dashboard.address import Raw, here, put_right, read_parameters, setting_value
from dashboard.described import MAX_TEXT
from dashboard.links import Link, Parameters, text_of
from dashboard.network_settings import AUTO, SETTINGS
from dashboard.settings import VERSION
from triosim.errors import ConfigError
from triosim.network.collectives.choose import algorithms_for


def read_network(raw: Raw, *, own: bool = False) -> Link:
    """What an address means; parts that are not accepted count as absent, with a sentence each.

    `own` says that the page's widgets wrote it: a number out of range, and what they say about each
    other, is then theirs to answer.
    """

    def value(name: str, texts: Sequence[str]) -> Any:
        found = setting_value(SETTINGS.get(name), name, texts, own=own, longest=MAX_TEXT)
        if name == "algo" and not own:
            _check_algorithm(found, raw)
        return found

    return read_parameters(raw, value)


def _check_algorithm(name: str, raw: Raw) -> None:
    op = next(iter(raw.get("op", ())), SETTINGS["op"].default)
    if op in SETTINGS["op"].choices and name not in (AUTO, *algorithms_for(op)):
        raise ConfigError("algo", name, f"{op} can use {', '.join(algorithms_for(op))}")


def parameters_here() -> Parameters:
    """The address of what the widgets say now; defaults are left out."""
    said = {
        name: text_of(st.session_state[name])
        for name, setting in SETTINGS.items()
        if st.session_state.get(name, setting.default) not in (setting.default, "")
    }
    return {"v": VERSION, **said}


def set_to() -> Mapping[str, Any]:
    """What the address means now; the player writes its step without telling the page."""
    values = read_network(here(), own=True).values
    return {
        name: value
        for name, value in values.items()
        if name in SETTINGS and name != "step" and value != SETTINGS[name].default
    }


def read_address(arrived: bool) -> None:
    """Note what is wrong with the address and put it right, before the first widget."""
    put_right("network", read_network(here(), own=not arrived), SETTINGS, arrived=arrived)
