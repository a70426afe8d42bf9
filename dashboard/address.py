"""What the addresses of all pages have in common."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import streamlit as st
from streamlit.errors import StreamlitAPIException

from dashboard import rejected
from dashboard.frame import FRAME, frame_value
from dashboard.links import NUMBER, Link, Parameters, number_of, parameter_of, window_of
from dashboard.settings import VERSION, Setting
from triosim.errors import ConfigError

Raw = Mapping[str, Sequence[str]]


def return_to(page: str, address: str, names: Iterable[str], *, arrived: bool) -> None:
    """Back from another page without an address: open the one that was here.

    Streamlit leaves a bare address behind when a page is left, or the parameters of a page that was
    opened with some, so the browser's Back finds that. It takes those of that page's widgets out,
    and a version alone is left: no more than a bare address. `address` is the state in which the
    page keeps its own, which a link that starts a session does not find; an address with none of
    the page's `names` counts as bare. A door to a page's defaults is a `door_address`.
    """
    settings = st.session_state.get(address)
    if not arrived or settings is None or not set(st.query_params).isdisjoint(names):
        return
    others = set(st.query_params) - {"v", *FRAME}
    bare = not set(st.query_params) - {"v"}  # who presents a step means its defaults
    if others or (bare and settings.keys() - {"v"}):
        del st.session_state["page"]
        st.switch_page(page, query_params=settings)


def door_address(parameters: Parameters, settings: Mapping[str, Setting]) -> Parameters:
    """The address of a link from one page to another.

    Where a version is all that it has, a default is named: `return_to` would take it for Back.
    """
    if parameters.keys() - {"v"}:
        return parameters
    first = next(iter(settings.values()))
    return {**parameters, first.name: parameter_of(first.default)}


def keep_view(address: str, defaults: Mapping[str, Any]) -> None:
    """Note what is looked at for the way back, also after a move that redraws a fragment alone.

    `address` is as in `return_to`; `defaults` has the keys of the widgets that are about no
    scenario.
    """
    known: Parameters = st.session_state.get(address, {})
    kept = {name: text for name, text in known.items() if name not in defaults}
    for name, default in defaults.items():
        if st.session_state.get(name) not in (default, None):
            kept[name] = parameter_of(st.session_state[name])
    st.session_state[address] = kept


def here() -> dict[str, list[str]]:
    """The address as it is now."""
    return {name: st.query_params.get_all(name) for name in st.query_params}


def read_parameters(raw: Raw, value_of: Callable[[str, Sequence[str]], Any]) -> Link:
    """What an address means; parts that are not accepted count as absent, with a sentence each.

    `value_of` reads one parameter and raises `ConfigError`. Those of the frame belong to no page.
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
            if name in FRAME:
                frame_value(name, texts)
            else:
                values[name] = value_of(name, texts)
            parameters[name] = texts[0] if len(texts) == 1 else list(texts)
        except ConfigError as error:
            wrong.append(error.named(name))
    return Link(values=values, parameters=parameters, rejected=wrong)


def setting_value(
    setting: Setting | None, name: str, texts: Sequence[str], *, own: bool, longest: int = 0
) -> Any:
    """The value of a setting that has one parameter of its name; text has a longest length.

    `own` says that the page's widgets wrote it: a number out of range is then theirs to answer.
    Raises `ConfigError`.
    """
    said = " and ".join(texts) or "(empty)"
    if setting is None:
        raise ConfigError(name, said, "this page has no such setting")
    if setting.kind == "window":
        return window_of(name, texts)
    if len(texts) != 1:
        raise ConfigError(name, said, "a setting has one value")
    text = texts[0]
    if setting.kind == "text":
        if len(text) > longest and not own:
            raise ConfigError(name, text, f"must have at most {longest:,} characters")
        return text
    if setting.kind == "switch":
        if text.lower() not in ("true", "false"):
            raise ConfigError(name, said, "must be true or false")
        return text.lower() == "true"
    if setting.kind == "choice":
        if text not in setting.choices:
            raise ConfigError(name, said, f"must be one of {', '.join(setting.choices)}")
        return text
    if own and NUMBER.fullmatch(text):
        return float(text)
    return number_of(setting, text)


def set_to(value_of: Callable[[str, Sequence[str]], Any]) -> Mapping[str, Any]:
    """What the address means now."""
    return read_parameters(here(), value_of).values


def chosen(settings: Mapping[str, Setting]) -> Parameters:
    """What bound widgets are set to, as an address says it: defaults are left out."""
    seen = {name: st.session_state.get(name) for name in settings}
    return {
        name: parameter_of(value)
        for name, value in seen.items()
        if value not in (settings[name].default, None, "")
    }


def set_all(values: Mapping[str, Any], settings: Mapping[str, Setting]) -> None:
    """In a callback: set bound widgets, whether they are drawn by now or not.

    Streamlit writes what is set into the address, except for a widget that was never drawn.
    """
    for name, value in values.items():
        st.session_state[name] = value
        if value not in (settings[name].default, None):
            with contextlib.suppress(StreamlitAPIException):  # drawn: Streamlit will write it
                st.query_params[name] = parameter_of(value)


def put_right(page: str, link: Link, names: Iterable[str], *, arrived: bool) -> None:
    """Note what is wrong with the address and correct it, before the first widget is drawn.

    `names` are the keys of the page's bound widgets.
    """
    if arrived and len(st.query_params):
        # A link means its defaults too, and not what was set here before.
        for name in names:
            st.session_state.pop(name, None)
    rejected.note(page, link.rejected, arrived=arrived)
    if link.rejected:
        # Bound parameters cannot be written; their widgets drop what they cannot read themselves.
        with contextlib.suppress(StreamlitAPIException):
            st.query_params.from_dict(link.parameters)
            st.rerun()
