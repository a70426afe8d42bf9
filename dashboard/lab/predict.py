"""Predict: a frozen scenario, one input, and nothing that gives the answer away before it is asked
for."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dashboard.lab.answers import Answered, Try, answered, commit, forget, value_text, voter
from dashboard.lab.counts import shared_counts
from dashboard.lab.present import class_of
from dashboard.plain import plain
from triosim.lab import CHOICE, CLOSE, NUMBER, RANKING, RIGHT, Quantity, Question, Value

SAID = {
    RIGHT: (":material/check_circle:", "Right"),
    CLOSE: (":material/near_me:", "Close"),
    "wrong": (":material/cancel:", "Not yet"),
}


def predict(asked: Question) -> Answered:
    """The question with its input, and the grade of the last try."""
    st.markdown(f"**{asked.id}.** {plain(asked.text)}")
    own = answered(asked)
    if not own.open:
        _ask(asked)
    if own.tries:
        _verdict(own.tries[-1], asked)
    return own


def _ask(asked: Question) -> None:
    """Buttons answer before the page runs, so that it is drawn once, as it then is."""
    with st.form(f"predict_{asked.id}", border=False, enter_to_submit=True):
        _input(asked)
        with st.container(horizontal=True, vertical_alignment="center"):
            st.form_submit_button(
                "Commit", type="primary", key=f"commit_{asked.id}", on_click=_commit, args=(asked,)
            )
            st.form_submit_button(
                "Show me", key=f"show_{asked.id}", on_click=show_me, args=(asked,)
            )
    if st.session_state.pop(_missing_key(asked), False):
        st.warning(_what_is_missing(asked), icon=":material/edit:")


def _commit(asked: Question) -> None:
    """Grade what stands in the input, and count it for the class."""
    guess = _guess(asked)
    if guess is None:
        st.session_state[_missing_key(asked)] = True
        return
    one = commit(asked, guess)
    if class_of(asked):
        shared_counts().vote(class_of(asked), asked.id, voter(), label_of(asked, one))


def _missing_key(asked: Question) -> str:
    return f"missing_{asked.id}"


def show_me(asked: Question) -> None:
    """Open the answer without a guess."""
    answered(asked).shown = True


def label_of(asked: Question, one: Try) -> str:
    """What a class's counts call an answer: an option as it is, else the grade or the slip."""
    return str(one.guess) if asked.kind == CHOICE else one.grade.label


def right_label(asked: Question) -> str:
    """What they call the right one."""
    return str(asked.right) if asked.kind == CHOICE else RIGHT


def _input(asked: Question) -> None:
    key = f"guess_{asked.id}"
    if asked.kind == NUMBER:
        st.number_input(
            f"Your answer ({asked.answer.unit})", value=None, placeholder="a number", step=None,
            format="%g", key=key,
        )  # fmt: skip
    elif asked.kind == CHOICE:
        st.radio("Your answer", asked.options, index=None, key=key)
    else:
        st.multiselect(
            "Your answer: choose all, in order", asked.options, key=key,
            placeholder="the first, then the next ...",
        )  # fmt: skip


def _guess(asked: Question) -> Value | None:
    """What stands in the input; None where that is no answer yet."""
    given: Any = st.session_state.get(f"guess_{asked.id}")
    if asked.kind != RANKING:
        return given
    return tuple(given) if given and len(given) == len(asked.options) else None


def _what_is_missing(asked: Question) -> str:
    return {
        NUMBER: "Type a number first.",
        CHOICE: "Choose one first.",
    }.get(asked.kind, "Choose all of them first, in order.")


def _verdict(one: Try, asked: Question) -> None:
    icon, word = SAID[one.grade.verdict]
    guess = f"{value_text(one.guess)} {asked.answer.unit}".strip()
    hint = f" {one.grade.slip.hint}" if one.grade.slip else ""
    text = plain(f"{word}: {guess}.{hint}")
    if one.grade.verdict == RIGHT:
        st.success(text, icon=icon)
    elif one.grade.verdict == CLOSE:
        st.warning(text, icon=icon)
    else:
        st.error(text, icon=icon)


def reveal(asked: Question) -> None:
    """The answer, its formula, and what else the scenario says."""
    with st.container(key=f"answer_{asked.id}", border=True, gap="small"):
        _quantity(asked, asked.answer)
        st.markdown(plain(asked.why))
        if asked.also:
            st.markdown("\n".join(f"- {_line(asked, quantity)}" for quantity in asked.also))
        if asked.published:
            st.caption(plain(asked.published))
        st.button(
            "Answer again", key=f"again_{asked.id}", on_click=forget, args=(asked,),
            icon=":material/restart_alt:", type="tertiary",
        )  # fmt: skip


def _quantity(asked: Question, quantity: Quantity) -> None:
    value = f"{value_text(asked.closed(quantity))} {quantity.unit}".strip()
    st.subheader(plain(value), anchor=False)
    if quantity.formula:
        st.latex(quantity.formula)


def _line(asked: Question, quantity: Quantity) -> str:
    value = f"{value_text(asked.closed(quantity))} {quantity.unit}".strip()
    return f"{plain(quantity.label)}: **{plain(value)}**"
