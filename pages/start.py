"""The first page: what this is, one example already drawn, and doors to the rest."""

import streamlit as st

from dashboard import look
from dashboard.address import door_address
from dashboard.examples import EXAMPLES, RUNNING
from dashboard.links import Parameters, parameters_of, values_of
from dashboard.settings import SETTINGS
from dashboard.timeline import show, style
from dashboard.train_head import headline
from dashboard.train_links import link_to
from dashboard.train_run import answer_to
from triosim.figures.train_breakdown import train_breakdown
from triosim.figures.train_timeline import step_timeline
from triosim.train import TrainResult


def pictures(result: TrainResult) -> None:
    """The example's step over time, and where its time goes."""
    steps = step_timeline(result, (0.0, result.step_ms), style=style())
    parts = train_breakdown(result, style=style())
    # Rows of one width, so that both share the time axis between them.
    for figure in (steps, parts):
        figure.update_layout(margin={"l": 110})
        figure.update_yaxes(automargin=False)
    steps.update_xaxes(title=None, ticksuffix=" ms", tickangle=0, nticks=4)
    steps.update_layout(height=steps.settings["height"] - 26)
    # One legend is enough: these bars say themselves what they are.
    for bar in parts.traces:
        bar["text"] = [f"{bar['name']} {text}" if text else "" for text in bar["text"]]
    # Text that has no room is left out, and not turned or squeezed.
    parts.update_layout(showlegend=False, height=56, uniformtext={"minsize": 9, "mode": "hide"})
    parts.update_xaxes(visible=False)
    show(steps, "Timeline of the example's training step")
    show(parts, "Where the example's step goes")


def door(page: str, title: str, icon: str, address: Parameters, text: str) -> None:
    """A link to a ready-made scenario."""
    with st.container(border=True, height="stretch", gap="xsmall"):
        st.page_link(page, label=title, icon=icon, query_params=address)
        st.caption(text)


def doors() -> None:
    """First the example's own page, then recorded steps."""
    first, *others = st.columns(1 + len(EXAMPLES))
    with first:
        text = "This step, with other settings."
        door("pages/train.py", "Train", ":material/model_training:", link_to(RUNNING), text)
    for column, example in zip(others, EXAMPLES, strict=True):
        with column:
            address = door_address(parameters_of(values_of(example.scenario)), SETTINGS)
            door("pages/simulate.py", example.title, example.icon, address, example.text)


look.open_page("start")
title, links = st.columns([0.77, 0.23], vertical_alignment="center")
title.subheader(
    "What happens to a training step on other hardware, or spread differently?", anchor=False
)
with links.container(horizontal=True, horizontal_alignment="right"):
    st.page_link("pages/traces.py", label="See a trace", icon=":material/data_table:")
    st.page_link("pages/validation.py", label="How far off?", icon=":material/verified:")
answer = answer_to(RUNNING)
st.caption(
    "Example: one step of Llama 3.1 8B on eight H100 (95 GB), with FSDP2, compiled. Train opens "
    "it; the other doors open recorded steps on Simulate."
)
headline(answer)
pictures(answer.result)
doors()
