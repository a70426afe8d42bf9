"""A question on an instructor's screen: asked, then the class's answers, the answer, a picture."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dashboard.frame import preset
from dashboard.lab.answers import value_text
from dashboard.lab.classroom import classroom
from dashboard.lab.desk import Desk
from dashboard.lab.lab import Lab
from dashboard.lab.play import sliders
from dashboard.lab.predict import reveal
from dashboard.plain import plain
from dashboard.seminar.presets import ANSWER, PICTURE
from triosim.lab import NUMBER, RANKING, Question


def slide(lab: Lab, asked: Question, parts: Sequence[str]) -> None:
    """The question with what has been revealed of it; the latest part has the room."""
    now = parts[-1] if parts else ""
    if now == PICTURE:
        picture(lab, asked)
        return
    left, right = st.columns([0.55, 0.45] if now else [0.6, 0.4], gap="large")
    with left, st.container(key="slide_question"):
        st.subheader(lab.title, anchor=False)
        st.markdown(f"**{asked.id}.** {plain(asked.text)}")
        _how_to_answer(asked)
        if now == ANSWER:
            st.caption(plain(lab.source))
    with right:
        if now == ANSWER:
            reveal(asked)
            return
        if not now:
            st.latex(lab.formula)
        classroom(asked)
    if preset():
        st.caption(f"Answer at {plain(_join())}")


def picture(lab: Lab, asked: Question) -> None:
    """The answer in a line, and the lab's own pictures."""
    answer_line(asked)
    values = sliders(asked, lab.parameters(asked), "question")
    if lab.draw is not None:
        lab.draw(Desk(lab=lab, asked=asked, values=values))


def answer_line(asked: Question) -> None:
    """What was asked for and its value."""
    said = f"{asked.answer.label}: {value_text(asked.right)} {asked.answer.unit}".strip()
    st.markdown(f"**{asked.id}.** {plain(said)}")


def _how_to_answer(asked: Question) -> None:
    if asked.kind == NUMBER:
        unit = asked.answer.unit
        st.markdown(f"Answer: a number ({plain(unit)})." if unit else "Answer: a number.")
        return
    order = "All in order:" if asked.kind == RANKING else "One of:"
    st.markdown("\n".join([order, *(f"- {plain(option)}" for option in asked.options)]))


def _join() -> str:
    """The address that students open."""
    base = (st.context.url or "").split("?")[0].rstrip("/")
    return f"{base.rpartition('/')[0]}/seminar?preset={preset()}"
