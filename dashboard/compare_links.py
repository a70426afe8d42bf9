"""The address of the page Compare: the scenarios themselves, and what is being looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from dashboard.address import here, put_right, read_parameters, setting_value
from dashboard.links import Parameters, text_of
from dashboard.packed import pack
from dashboard.settings import VERSION, Setting
from triosim.errors import ConfigError
from triosim.figures.compare_colours import LETTERS
from triosim.resolved import AnyScenario

PAGE = "pages/compare.py"
SCENARIOS = "scenarios"
TABS = ("Where the difference is", "Timelines", "Memory", "Settings")
VIEW: Mapping[str, Setting] = {
    setting.name: setting
    for setting in (
        Setting(name="picture", label="Tab", default=TABS[0], kind="choice", choices=TABS),
        Setting(
            name="against", label="Compared", default=LETTERS[1], kind="choice",
            choices=tuple(LETTERS[1:]),
        ),
        Setting(name="lanes", label="Communication streams", default=True, kind="switch"),
    )
}  # fmt: skip


def link_to(scenarios: Sequence[AnyScenario]) -> Parameters:
    """The address that compares some scenarios, the first of which is the baseline."""
    return {"v": VERSION, SCENARIOS: pack(scenarios)}


def packed_here() -> str:
    """The scenarios as the address has them; "" for none."""
    return st.query_params.get(SCENARIOS, "")


def set_scenarios(scenarios: Sequence[AnyScenario]) -> None:
    """In a callback: compare these from now on."""
    if scenarios:
        st.query_params[SCENARIOS] = pack(scenarios)
    elif SCENARIOS in st.query_params:
        del st.query_params[SCENARIOS]


def read_address(arrived: bool) -> None:
    """Note what is wrong with the address and put it right, before the first widget."""
    put_right("compare", read_parameters(here(), _value), VIEW, arrived=arrived)


def _value(name: str, texts: Sequence[str]) -> Any:
    if name != SCENARIOS:
        return setting_value(VIEW.get(name), name, texts, own=False)
    if len(texts) != 1:
        raise ConfigError(name, f"{len(texts)} times", "stands once in a link")
    return texts[0]


def set_to() -> Mapping[str, Any]:
    """What the page is set to now."""
    return read_parameters(here(), _value).values


def address_now() -> Parameters:
    """The address as it should read, for the way back from another page."""
    parameters: Parameters = {"v": VERSION}
    if packed_here():
        parameters[SCENARIOS] = packed_here()
    seen = {name: st.session_state.get(name) for name in VIEW}
    return parameters | {
        name: text_of(value)
        for name, value in seen.items()
        if value not in (VIEW[name].default, None)
    }
