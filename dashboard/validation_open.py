"""From a published run to its step on the page Train."""

from __future__ import annotations

import streamlit as st

from dashboard.links import Parameters
from dashboard.pinned import pin_buttons
from dashboard.plain import plain
from dashboard.train_export import train_command
from dashboard.train_links import link_to, read_train
from dashboard.train_published import spelt_out
from dashboard.train_values import scenario_of
from dashboard.validation_run import row_of
from triosim.errors import TrioSimError
from triosim.scenario import SAMPLE_TRACES
from triosim.train import TrainScenario, make_plan
from triosim.validation.tables import LAYER

OPEN, SHOWN = "validation_open", "validation_shown"


def door_to(scenario: TrainScenario) -> Parameters | None:
    """The address of a scenario on the page Train; None where that page lacks a setting of it."""
    try:
        parameters = link_to(scenario)
        read = read_train({name: [str(text)] for name, text in parameters.items()})
        if read.rejected:
            return None
        there = spelt_out(make_plan(scenario_of(read.values)))
        return parameters if there == spelt_out(make_plan(scenario)) else None
    except TrioSimError:
        return None


def command_of(scenario: TrainScenario) -> str:
    """The command of a run; files of the project are named from its folder."""
    root = f"{SAMPLE_TRACES.parent}/"
    paths = {
        name: value.removeprefix(root)
        for name in ("machine", "config")
        if isinstance(value := getattr(scenario, name), str)
    }
    return train_command(scenario, paths)


def ask_for(name: str, number: int) -> None:
    """In a callback: the next run of the page opens this run."""
    st.session_state[OPEN] = name, number


def open_asked() -> None:
    """Go to the page Train where a run was asked for; where it cannot show it, note that."""
    asked = st.session_state.pop(OPEN, None)
    if asked is None:
        return
    row = row_of(*asked)
    parameters = None if row is None else door_to(row.scenario)
    if parameters is not None:
        st.session_state.pop(SHOWN, None)
        st.switch_page("pages/train.py", query_params=parameters)
    st.session_state[SHOWN] = asked


def show_asked(name: str) -> None:
    """A run of this source that the page Train has no settings for, with its command."""
    source, number = st.session_state.get(SHOWN, ("", 0))
    if source != name:
        return
    row = row_of(source, number)
    with st.container(border=True):
        if row is None:
            st.markdown(
                f"**Row {number}** has no step to open on the page Train: it is predicted without "
                "a software stack."
            )
            return
        st.markdown(
            f"**Row {number}**, {plain(row.label)}: the page Train does not have all of its "
            "settings. The same run on the command line, from the project's folder:"
        )
        st.code(command_of(row.scenario), language=None, wrap_lines=True)
        if row.measured == LAYER:
            st.caption("Published was one layer's forward and backward, not a step.")
        with st.container(horizontal=True):
            pin_buttons(row.scenario)
