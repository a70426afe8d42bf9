"""Folded groups of a sidebar, drawn only where they show something.

Every control costs time in each run of a page, and most of them stand in folded groups at their
defaults. Such a group is drawn once it is opened. One with a setting that is not at its default is
drawn folded as well: Streamlit takes what is not drawn out of the address. What was wrong with a
number of a folded group is said below it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import streamlit as st

from dashboard.numbers import say, take_refused, take_said
from dashboard.settings import Setting


def folded(label: str, settings: Iterable[Setting], draw: Callable[[], None]) -> None:
    """A group of the controls of `settings`, which `draw` draws; those not drawn are defaults."""
    settings = tuple(settings)
    names = [setting.name for setting in settings]
    group = st.expander(label, key=key_of(label), on_change="rerun")
    # A number that is typed and folded away at once was refused in the run before, or will be here.
    unseen = take_said(names)
    if group.open or any(map(_is_set, settings)):
        with group:
            draw()
    if not group.open:
        say(st, (unseen | take_refused(names)).values())


def key_of(label: str) -> str:
    """Where the session keeps whether a group is open."""
    return f"unfolded {label}"


def _is_set(setting: Setting) -> bool:
    """Whether somebody has changed it: a person, a callback, or a link that is yet to be read."""
    now = st.session_state.get(setting.name)
    return now not in (setting.default, None) or setting.name in st.query_params
