"""A lab's page: Idea, Predict, Play, Explain, in this order."""

from __future__ import annotations

import streamlit as st

from dashboard import look, rejected
from dashboard.address import return_to
from dashboard.lab.answers import Answered, answers_file
from dashboard.lab.classroom import classroom
from dashboard.lab.explain import explain
from dashboard.lab.lab import Lab
from dashboard.lab.links import address_of, read_address, set_to
from dashboard.lab.play import play
from dashboard.lab.predict import predict, reveal
from dashboard.plain import plain
from dashboard.seminar import presenter
from dashboard.seminar.slides import slide
from dashboard.settings import VERSION
from triosim.lab import Question, question

CSS = """
<style>
.st-key-lab_idea, .st-key-lab_predict { line-height: 1.45; }
.st-key-lab_idea .katex, [class*="st-key-answer_"] .katex { font-size: 1.05em; }
.st-key-lab_idea .katex-display, [class*="st-key-answer_"] .katex-display { margin: 0.2em 0; }
/* What scrolls sideways also cuts above and below: tall brackets need room of their own. */
.katex-display { overflow-x: auto; overflow-y: hidden; padding: 0.35em 0; }
[class*="st-key-lab_sliders"] { gap: 0.4rem; }
@media (max-width: 640px) {
  .st-key-cardschange [data-testid="stMetricValue"] * { white-space: normal; font-size: 1.1rem; }
  [class*="st-key-lab_sliders"] [data-testid="stColumn"] {
    min-width: 0; flex: 1 1 calc(50% - 1rem);
  }
  [class*="st-key-lab_sliders"] [data-testid="stColumn"]:not(:has(label)) { display: none; }
}
</style>
"""


def open_lab(lab: Lab) -> None:
    """Run the whole page."""
    arrived = look.open_page(lab.code, VERSION)
    return_to(lab.page, f"{lab.code}_address", lab.all_settings(), arrived=arrived)
    read_address(lab, arrived=arrived)
    st.html(style_sheet())
    quiet = not rejected.show(lab.code, set_to(lab))
    shown = presenter.presented(lab.questions)
    if shown is None:
        _parts(lab, quiet=quiet)
    else:
        slide(lab, shown, presenter.revealed())
    st.session_state[f"{lab.code}_address"] = address_of(lab)


def _parts(lab: Lab, *, quiet: bool) -> None:
    """Idea, Predict, Play and Explain.

    `quiet`: nothing else on the page changes with a slider of Play.
    """
    left, right = st.columns([0.42, 0.58], gap="large")
    with left, st.container(key="lab_idea"):
        idea(lab)
    with right, st.container(key="lab_predict"):
        asked = _chosen(lab)
        own = predict(asked)
        classroom(asked)
        if own.open:
            reveal(asked)
    if own.open:
        played = st.fragment(_play_and_explain) if quiet else _play_and_explain
        played(lab, asked, own)
    else:
        st.caption("Play and Explain open when you have the answer, or press Show me.")
    take_along()


def _play_and_explain(lab: Lab, asked: Question, own: Answered) -> None:
    st.subheader("Play", anchor=False)
    desk, found = play(lab, asked, own)
    st.subheader("Explain", anchor=False)
    explain(desk, found)
    st.session_state[f"{lab.code}_address"] = address_of(lab)


def style_sheet() -> str:
    """The labs' own rules of style."""
    return CSS


def idea(lab: Lab) -> None:
    """At most 60 words, the formula, its source."""
    st.subheader(lab.title, anchor=False)
    st.markdown(plain(lab.idea))
    st.latex(lab.formula)
    st.caption(plain(lab.source))


def _chosen(lab: Lab) -> Question:
    """Which of the three questions is open."""
    name = st.segmented_control(
        "Predict: choose a question",
        lab.questions,
        default=lab.questions[0],
        required=True,
        key=lab.question_key,
        bind="query-params",
    )
    return question(name or lab.questions[0])


def take_along() -> None:
    """The student's answers as a file."""
    st.download_button(
        "My answers (CSV)", answers_file(), "answers.csv", "text/csv", on_click="ignore",
        icon=":material/download:", type="tertiary",
    )  # fmt: skip
