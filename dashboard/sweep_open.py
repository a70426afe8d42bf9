"""From a point of a sweep, or a layout of a search, to the page that has its settings."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dashboard.compare_open import door_to
from dashboard.plain import plain
from triosim.resolved import AnyScenario
from triosim.sweep import Point

ASKED, REFUSED = "sweep_open", "sweep_cannot_open"
NO_PAGE = "the page for it does not have all of its settings"


def ask_for(point: Point) -> None:
    """In a callback: the next run of the page opens this point."""
    st.session_state[ASKED] = point.scenario, point.reason


def ask_scenario(scenario: AnyScenario | None, reason: str = "") -> None:
    """In a callback: the same for a scenario."""
    st.session_state[ASKED] = scenario, reason


def clicked(chart: str, points: Sequence[Point]) -> None:
    """In a callback: a click on a point of a chart opens it."""
    selected = st.session_state[chart].selection.points
    for one in selected:
        data = one.get("customdata")
        if data is None:
            continue
        found = next((point for point in points if point.index == int(data[0])), None)
        if found is not None:
            ask_for(found)
            return


def open_asked() -> None:
    """Go to the page of what was asked for; where there is none, note why."""
    asked = st.session_state.pop(ASKED, None)
    if asked is None:
        return
    scenario, reason = asked
    st.session_state[REFUSED] = reason or NO_PAGE
    if scenario is None:
        return
    door = door_to(scenario)
    if door is not None:
        page, _, parameters = door
        st.session_state.pop(REFUSED)
        st.switch_page(page, query_params=parameters)


def say_refused() -> None:
    """Why what was clicked last could not be opened."""
    reason = st.session_state.pop(REFUSED, None)
    if reason is not None:
        st.info(f"This cannot be opened: {plain(reason)}", icon=":material/block:")
