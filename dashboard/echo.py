"""Widgets that the server sets: a browser may say once more what they said before.

Whoever moves one control and at once another one sends the second message before the browser has
taken what the server set in answer to the first: in that message the widget has its old value.
"""

from __future__ import annotations

import time
from typing import Any

import streamlit as st

AT_ONCE_S = 1.0  # sooner than a person moves the same widget back
_LATELY = "set_lately"


def set_widget(key: str, value: Any) -> None:
    """Set a widget, and remember what it said until now."""
    lately: dict[str, tuple[Any, float]] = st.session_state.setdefault(_LATELY, {})
    lately[key] = st.session_state.get(key), time.monotonic()
    st.session_state[key] = value


def follow(target: str, key: str) -> None:
    """The callback of a slider that stands for another widget: set that one."""
    if not is_echo(key):
        st.session_state[target] = st.session_state[key]


def is_echo(key: str) -> bool:
    """In a widget's callback: whether it only says what it said before it was set."""
    lately: dict[str, tuple[Any, float]] = st.session_state.get(_LATELY, {})
    before, set_s = lately.get(key, (None, float("-inf")))
    return st.session_state[key] == before and time.monotonic() - set_s < AT_ONCE_S
