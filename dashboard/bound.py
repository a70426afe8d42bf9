"""Widgets that are bound to the parameter of their setting's name in the address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from dashboard.numbers import number_field
from dashboard.settings import Setting

BOUND: Mapping[str, Any] = {"bind": "query-params"}


def choice(
    setting: Setting, options: Sequence[str] = (), *, radio: bool = False, **more: Any
) -> str:
    """One of the setting's choices (or of those given, which include its default).

    The address has what the page shows, so choices are named as people read them.
    """
    options = options or setting.choices
    if st.session_state.get(setting.name, setting.default) not in options:
        st.session_state[setting.name] = setting.default
    widget = st.radio if radio else st.selectbox
    more |= {"horizontal": True} if radio else {}
    index = list(options).index(setting.default)
    chosen: str = widget(setting.label, options, index=index, key=setting.name, **BOUND, **more)
    return chosen


def switch(setting: Setting, **more: Any) -> bool:
    return st.toggle(setting.label, value=setting.default, key=setting.name, **BOUND, **more)


def text(setting: Setting, placeholder: str, longest: int, **more: Any) -> str | None:
    """What stands in a line of text, or an area of several lines; None where nothing does."""
    widget = st.text_area if "height" in more else st.text_input
    return widget(
        setting.label,
        None,
        key=setting.name,
        placeholder=placeholder,
        max_chars=longest,
        **BOUND,
        **more,
    )


def number(setting: Setting, *, step: float = 1, high: float | None = None, **more: Any) -> Any:
    """A number of the setting's range; `say_refused` says what was wrong with the last one."""
    return number_field(
        more.pop("label", setting.label),
        setting.low,
        setting.high if high is None else high,
        setting.default,
        key=setting.name,
        step=step,
        whole=setting.kind == "whole",
        name=setting.plain_label,
        **BOUND,
        **more,
    )
