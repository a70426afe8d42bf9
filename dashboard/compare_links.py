"""The address of the page Compare: the scenarios themselves, and what is being looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from dashboard.address import chosen, here, put_right, read_parameters, setting_value
from dashboard.links import Parameters
from dashboard.packed import count_of, pack
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
    link = read_parameters(here(), partial(value_of, own=not arrived))
    put_right("compare", link, VIEW, arrived=arrived)


def value_of(name: str, texts: Sequence[str], *, own: bool = True) -> Any:
    """The value of a parameter; raises `ConfigError`.

    `own` says that the page's widgets wrote it: a step that was compared may then have gone.
    """
    if name == SCENARIOS:
        if len(texts) != 1:
            raise ConfigError(name, f"{len(texts)} times", "stands once in a link")
        return texts[0]
    value = setting_value(VIEW.get(name), name, texts, own=False)
    if name == "against" and not own and value not in _letters()[1:]:
        raise ConfigError(name, value, f"this link has only the steps {', '.join(_letters())}")
    return value


def _letters() -> str:
    """Those of the steps of the link; of a link that cannot be read, all that there could be."""
    try:
        return LETTERS[: count_of(packed_here())]
    except ConfigError:
        return LETTERS


def address_now() -> Parameters:
    """The address as it should read, for the way back from another page."""
    parameters: Parameters = {"v": VERSION}
    if packed_here():
        parameters[SCENARIOS] = packed_here()
    return parameters | chosen(VIEW)
