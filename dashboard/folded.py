"""Folded groups of a sidebar, drawn only where they show something.

Every control costs time in each run of a page, and most of them stand in folded groups at their
defaults. Such a group is drawn once it is opened. One with a setting that is not at its default is
drawn folded as well: Streamlit takes what is not drawn out of the address.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import streamlit as st

from dashboard.settings import Setting


def folded(label: str, settings: Iterable[Setting], draw: Callable[[], None]) -> None:
    """A group of the controls of `settings`, which `draw` draws; those not drawn are defaults."""
    group = st.expander(label, key=key_of(label), on_change="rerun")
    if group.open or any(map(_is_set, settings)):
        with group:
            draw()


def key_of(label: str) -> str:
    """Where the session keeps whether a group is open."""
    return f"unfolded {label}"


def _is_set(setting: Setting) -> bool:
    """Whether somebody has changed it: a person, a callback, or a link that is yet to be read."""
    now = st.session_state.get(setting.name)
    return now not in (setting.default, None) or setting.name in st.query_params
