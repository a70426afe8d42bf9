"""The address of the page Train: what it says, and a sentence for what it says wrongly."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st
from streamlit.errors import StreamlitAPIException

from dashboard import rejected
from dashboard.links import NUMBER, Link, Parameters, number_of, text_of
from dashboard.settings import VERSION
from dashboard.train_settings import SETTINGS, values_of
from triosim.errors import ConfigError
from triosim.train import TrainScenario


def read_train(raw: Mapping[str, Sequence[str]], *, own: bool = False) -> Link:
    """What an address means; parts that are not accepted count as absent, with a sentence each.

    `own` says that the page's widgets wrote it: a number out of range is then theirs to answer.
    """
    version = raw.get("v", [VERSION])
    if list(version) != [VERSION]:
        said = " and ".join(version) or "(empty)"
        sentence = f"v {said}: this page reads links of version {VERSION}, so nothing in this link "
        return Link(values={}, parameters={"v": VERSION}, rejected=[sentence + "is used."])
    values: dict[str, Any] = {}
    parameters: Parameters = {"v": VERSION}
    wrong: list[str] = []
    for name, texts in raw.items():
        if name == "v":
            continue
        try:
            values[name] = _value(name, texts, own)
            parameters[name] = texts[0]
        except ConfigError as error:
            wrong.append(error.named(name))
    return Link(values=values, parameters=parameters, rejected=wrong)


def _value(name: str, texts: Sequence[str], own: bool) -> Any:
    setting = SETTINGS.get(name)
    said = " and ".join(texts) or "(empty)"
    if setting is None:
        raise ConfigError(name, said, "this page has no such setting")
    if len(texts) != 1:
        raise ConfigError(name, said, "a setting has one value")
    if setting.kind == "switch":
        if texts[0].lower() not in ("true", "false"):
            raise ConfigError(name, said, "must be true or false")
        return texts[0].lower() == "true"
    if setting.kind == "choice":
        if texts[0] not in setting.choices:
            raise ConfigError(name, said, f"must be one of {', '.join(setting.choices)}")
        return texts[0]
    if own and NUMBER.fullmatch(texts[0]):
        return float(texts[0])
    return number_of(setting, texts[0])


def address_of(values: Mapping[str, Any]) -> Parameters:
    """The address of what the controls say; defaults are left out."""
    return {"v": VERSION} | {
        name: text_of(values[name])
        for name, setting in SETTINGS.items()
        if values.get(name, setting.default) not in (setting.default, None)
    }


def link_to(scenario: TrainScenario) -> Parameters:
    """The address of a scenario, for links from other pages."""
    return address_of(values_of(scenario))


def set_to() -> Mapping[str, Any]:
    """What the address means now."""
    raw = {name: st.query_params.get_all(name) for name in st.query_params}
    values = read_train(raw, own=True).values
    return {name: value for name, value in values.items() if value != SETTINGS[name].default}


def read_address(arrived: bool) -> None:
    """Note what is wrong with the address and put it right, before the first widget."""
    raw = {name: st.query_params.get_all(name) for name in st.query_params}
    link = read_train(raw, own=not arrived)
    if arrived and raw:
        # A link means its defaults too, and not what was set here before.
        for name in SETTINGS:
            st.session_state.pop(name, None)
    rejected.note("train", link.rejected, arrived=arrived)
    if link.rejected:
        # Bound parameters cannot be written; their widgets drop what they cannot read themselves.
        with contextlib.suppress(StreamlitAPIException):
            st.query_params.from_dict(link.parameters)
            st.rerun()
