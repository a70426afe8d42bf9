"""The address of the page Network: what it says, and a sentence for what it says wrongly."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st
from streamlit.errors import StreamlitAPIException

from dashboard import rejected
from dashboard.links import NUMBER, Link, Parameters, number_of, text_of
from dashboard.network_settings import AUTO, MAX_TEXT, SETTINGS
from dashboard.settings import VERSION
from triosim.errors import ConfigError
from triosim.network.collectives.choose import algorithms_for


def read_network(raw: Mapping[str, Sequence[str]], *, own: bool = False) -> Link:
    """What an address means; parts that are not accepted count as absent, with a sentence each.

    `own` says that the page's widgets wrote it: a number out of range, and what they say about each
    other, is then theirs to answer.
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
            if name == "algo" and not own:
                _check_algorithm(values[name], raw)
            parameters[name] = texts[0]
        except ConfigError as error:
            values.pop(name, None)
            wrong.append(error.named(name))
    return Link(values=values, parameters=parameters, rejected=wrong)


def _check_algorithm(name: str, raw: Mapping[str, Sequence[str]]) -> None:
    op = next(iter(raw.get("op", ())), SETTINGS["op"].default)
    if op in SETTINGS["op"].choices and name not in (AUTO, *algorithms_for(op)):
        raise ConfigError("algo", name, f"{op} can use {', '.join(algorithms_for(op))}")


def _value(name: str, texts: Sequence[str], own: bool) -> Any:
    setting = SETTINGS.get(name)
    if setting is None:
        raise ConfigError(name, " and ".join(texts) or "(empty)", "this page has no such setting")
    if len(texts) != 1:
        raise ConfigError(name, " and ".join(texts) or "(empty)", "a setting has one value")
    text = texts[0]
    if setting.kind == "text":
        if len(text) > MAX_TEXT and not own:
            raise ConfigError(name, text, f"must have at most {MAX_TEXT:,} characters")
        return text
    if setting.kind == "switch":
        if text.lower() not in ("true", "false"):
            raise ConfigError(name, text or "(empty)", "must be true or false")
        return text.lower() == "true"
    if setting.kind == "choice":
        if text not in setting.choices:
            raise ConfigError(name, text or "(empty)", f"must be {' or '.join(setting.choices)}")
        return text
    if own and NUMBER.fullmatch(text):
        return float(text)
    return number_of(setting, text)


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
    raw = {name: st.query_params.get_all(name) for name in st.query_params}
    values = read_network(raw, own=True).values
    return {
        name: value
        for name, value in values.items()
        if name != "step" and value != SETTINGS[name].default
    }


def read_address(arrived: bool) -> None:
    """Note what is wrong with the address and put it right, before the first widget."""
    raw = {name: st.query_params.get_all(name) for name in st.query_params}
    link = read_network(raw, own=not arrived)
    if arrived and raw:
        # A link means its defaults too, and not what was set here before.
        for name in SETTINGS:
            st.session_state.pop(name, None)
    rejected.note("network", link.rejected, arrived=arrived)
    if link.rejected:
        # Bound parameters cannot be written; their widgets drop what they cannot read themselves.
        with contextlib.suppress(StreamlitAPIException):
            st.query_params.from_dict(link.parameters)
            st.rerun()
