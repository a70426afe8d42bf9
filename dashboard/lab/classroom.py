"""Class mode: how many have answered, and what, once the instructor shows it."""

from __future__ import annotations

import streamlit as st

from dashboard.lab.counts import shared_counts
from dashboard.lab.predict import right_label
from dashboard.lab.present import class_of, presenting, style
from dashboard.timeline import show
from triosim.errors import counted
from triosim.figures.class_counts import class_counts
from triosim.lab import Question

REFRESH_S = 2


def classroom(asked: Question) -> None:
    """The class's counts; nothing outside a class."""
    name = class_of(asked)
    if name:
        _counts(asked, name)


@st.fragment(run_every=REFRESH_S)
def _counts(asked: Question, name: str) -> None:
    counts = shared_counts()
    total = counts.total(name, asked.id)
    shown = counts.revealed(name, asked.id)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"Class: {counted(total, 'answer')}" + ("" if shown else ", hidden"))
        if presenting():
            st.button(
                "Hide the class's answers" if shown else "Show the class's answers",
                key=f"reveal_class_{asked.id}", on_click=counts.reveal, args=(name, asked.id),
                kwargs={"shown": not shown}, icon=":material/bar_chart:",
            )  # fmt: skip
            st.button(
                "Start again", key=f"clear_class_{asked.id}", on_click=counts.clear,
                args=(name, asked.id), type="tertiary", icon=":material/restart_alt:",
            )  # fmt: skip
    if shown and total:
        slips = {slip.name: slip.hint for slip in asked.slips}
        show(
            class_counts(counts.counts(name, asked.id), right_label(asked), slips, style=style()),
            f"What the class answered to {asked.id}",
            key=f"class_{asked.id}",
        )
