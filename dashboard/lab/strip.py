"""A lab's questions on a page that has pictures of its own.

While a question is open and not answered, the page draws nothing that gives it away.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from dashboard.lab.answers import answered
from dashboard.lab.classroom import classroom
from dashboard.lab.collectives import LAB, NO_QUESTION, SCENES
from dashboard.lab.explain import explain
from dashboard.lab.page import idea, style_sheet, take_along
from dashboard.lab.play import play
from dashboard.lab.predict import predict, reveal
from dashboard.network_settings import PRESET_NAMES, SETTINGS
from dashboard.seminar import presenter
from dashboard.seminar.presets import PICTURE
from dashboard.seminar.slides import answer_line, slide
from triosim.lab import Question, question

KEY = "ask"


def choose_question() -> Question | None:
    """Which question is asked; choosing one sets the page to its scenario."""
    setting = SETTINGS[KEY]
    # Beside the page's controls until it is used; on a phone those are out of sight.
    asking = st.session_state.get(KEY, st.query_params.get(KEY, NO_QUESTION)) != NO_QUESTION
    with st.container() if asking else st.sidebar:
        name = st.segmented_control(
            setting.label,
            setting.choices,
            default=setting.default,
            required=True,
            key=KEY,
            bind="query-params",
            on_change=_set_page,
            help="Predict first; the page shows its pictures when you have answered.",
        )
    return None if name in (None, NO_QUESTION) else question(name)


def scene(name: str) -> Mapping[str, Any]:
    """What the page's controls say under a question."""
    given = SCENES.get(name, {})
    names = (*PRESET_NAMES, "show")
    return {key: given.get(key, SETTINGS[key].default) for key in names}


def _set_page() -> None:
    name = st.session_state.get(KEY)
    if name and name != NO_QUESTION:
        for key, value in scene(name).items():
            st.session_state[key] = value


def ask(asked: Question) -> bool:
    """Idea and Predict; whether the answer may be seen."""
    st.html(style_sheet())
    if presenter.presented((asked.id,)):
        parts = presenter.revealed()
        if not parts or parts[-1] != PICTURE:
            slide(LAB, asked, parts)
            return False
        answer_line(asked)
        return True
    left, right = st.columns([0.42, 0.58], gap="large")
    with left, st.container(key="lab_idea"):
        idea(LAB)
    with right, st.container(key="lab_predict"):
        own = predict(asked)
        classroom(asked)
        if own.open:
            reveal(asked)
    if own.open:
        return True
    st.caption("The page's pictures come back when you have the answer, or press Show me.")
    take_along()
    return False


def play_and_explain(asked: Question) -> None:
    """Play with the formula's own scenario, and Explain, below the page's pictures."""
    if presenter.presented((asked.id,)):
        return
    st.subheader(f"Play with {asked.id}", anchor=False)
    desk, found = play(LAB, asked, answered(asked))
    st.subheader("Explain", anchor=False)
    explain(desk, found)
    take_along()
