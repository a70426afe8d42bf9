"""The tabs of the page Compare; only the open one is built."""

from __future__ import annotations

import streamlit as st

from dashboard.compare_links import TABS
from dashboard.compare_run import Compared
from dashboard.compare_table import settings_table
from dashboard.timeline import show, style
from triosim.figures.compare_gantt import compare_gantts
from triosim.figures.compare_memory import compare_memory
from triosim.figures.compare_waterfall import compare_waterfall
from triosim.figures.text import time_text


def tabs(both: Compared) -> None:
    """Views of the comparison."""
    contents = (_difference, _timelines, _memory, _settings)
    opened = st.tabs(list(TABS), key="picture", on_change="rerun", bind="query-params")
    for tab, content in zip(opened, contents, strict=True):
        if tab.open:
            with tab:
                content(both)


def _difference(both: Compared) -> None:
    number = 1
    options = list(both.letters[1:])
    if len(options) > 1:
        if st.session_state.get("against", options[0]) not in options:
            st.session_state["against"] = options[0]
        chosen = st.segmented_control(
            "Compared with A", options, default=options[0], required=True, key="against",
            bind="query-params",
        )  # fmt: skip
        number = both.letters.index(chosen or options[0])
    base, mine = both.found.baseline, both.found.results[number]
    letter = both.letters[number]
    show(
        compare_waterfall(both.found.waterfall(number), base.total_ms, style=style()),
        f"Where the difference between A and {letter} comes from, part by part",
    )
    st.caption(
        f"From {time_text(base.total_ms)} (A) to {time_text(mine.total_ms)} ({letter}): means over "
        "all GPUs; the parts sum to the difference."
    )


def _timelines(both: Compared) -> None:
    streams = st.toggle("Communication streams", value=True, key="lanes", bind="query-params")
    show(
        compare_gantts(
            both.found.results, both.names, letters=both.letters, streams=streams, style=style()
        ),
        "The steps over time, below each other on one time axis",
    )
    st.caption(
        "One GPU of each kind. Drag over a picture to zoom: all of them follow; a double click "
        "shows the whole again."
    )


def _memory(both: Compared) -> None:
    show(
        compare_memory(both.found.results, both.names, letters=both.letters, style=style()),
        "Memory over time of the fullest GPU of each step",
        legend_below=True,
    )


def _settings(both: Compared) -> None:
    table = settings_table(both)
    if table.empty:
        st.info("These steps have the same settings.")
        return
    st.dataframe(table, hide_index=True)
    st.caption(
        "Settings that are not the same in all of them, with what was left open filled in. "
        "Of what only one kind of step has, what was chosen is listed."
    )
