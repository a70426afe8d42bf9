"""The first page: what this is, one example already drawn, and doors to the rest."""

import streamlit as st

from dashboard import look, views
from dashboard.examples import EXAMPLES, FIRST
from dashboard.links import parameters_of, values_of
from dashboard.runner import result_of
from dashboard.timeline import representatives, show, style
from triosim import Result
from triosim.figures import breakdown_bars, gantt_bars


def example(result: Result) -> None:
    """The running example: headline numbers, timeline, breakdown."""
    views.headline(result)
    ranks = representatives(result)
    steps = gantt_bars(result, ranks, (0.0, result.total_ms), style=style())
    parts = breakdown_bars(result, ranks, style=style())
    # Rows of one width, so that both share the time axis between them.
    for figure in (steps, parts):
        figure.update_layout(margin={"l": 150})
        figure.update_yaxes(automargin=False)
    parts.update_layout(height=96)
    parts.update_xaxes(visible=False)
    show(steps, "Timeline of the example")
    show(parts, "Where the example's step goes")


def doors() -> None:
    """Links to ready-made scenarios."""
    for column, door in zip(st.columns(len(EXAMPLES)), EXAMPLES, strict=True):
        with column, st.container(border=True, height="stretch", gap="xsmall"):
            st.page_link(
                "pages/simulate.py",
                label=door.title,
                icon=door.icon,
                query_params=parameters_of(values_of(door.scenario)),
            )
            st.caption(door.text)


look.open_page("start")
title, link = st.columns([0.78, 0.22], vertical_alignment="center")
title.subheader(
    "What happens to a training step on other hardware, or spread differently?", anchor=False
)
with link.container(horizontal=True, horizontal_alignment="right"):
    st.page_link("pages/traces.py", label="Look at a trace", icon=":material/data_table:")
result = result_of(FIRST)
st.caption(
    f"Example: {views.title_of(result.scenario)} that exchange "
    f"{FIRST.ptp_bandwidth_gb_per_s:g} GB/s. Every door below opens a step that you can change."
)
example(result)
doors()
