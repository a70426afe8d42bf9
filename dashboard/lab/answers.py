"""What a student has answered in this session, and the file to take it along in."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

import pandas as pd
import streamlit as st

from triosim.export.table import to_csv
from triosim.figures.text import short
from triosim.lab import QUESTIONS, RIGHT, Grade, Question, Value, grade

STATE = "lab_answers"


@dataclass(frozen=True, slots=True)
class Try:
    """A guess and its grade."""

    guess: Value
    grade: Grade


@dataclass(slots=True)
class Answered:
    """One question in this session: every try in order, and whether the answer was asked for."""

    tries: list[Try] = field(default_factory=list)
    shown: bool = False

    @property
    def open(self) -> bool:
        """Whether the answer may be seen."""
        return self.shown or any(one.grade.verdict == RIGHT for one in self.tries)

    @property
    def guess(self) -> Value | None:
        """The latest guess."""
        return self.tries[-1].guess if self.tries else None


def answered(asked: Question) -> Answered:
    """This session's answers to a question."""
    found: dict[str, Answered] = st.session_state.setdefault(STATE, {})
    return found.setdefault(asked.id, Answered())


def commit(asked: Question, guess: Value) -> Try:
    """Grade a guess and keep it."""
    one = Try(guess, grade(asked, guess))
    answered(asked).tries.append(one)
    return one


def forget(asked: Question) -> None:
    """As if the question had never been answered here."""
    st.session_state.get(STATE, {}).pop(asked.id, None)


def voter() -> str:
    """A name for this session that says nothing about who it is."""
    name: str = st.session_state.setdefault("lab_voter", uuid.uuid4().hex)
    return name


def answers_file() -> Callable[[], bytes]:
    """What writes all tries of this session, when it is asked to.

    A browser asks outside of a run, where there is no session state.
    """
    found: dict[str, Answered] = st.session_state.setdefault(STATE, {})
    return partial(table_of, found)


def table_of(found: Mapping[str, Answered]) -> bytes:
    """A line for each try; the right answer where it has been revealed."""
    head = ["question", "text", "try", "answer", "unit", "grade", "slip", "right answer"]
    rows = []
    for name, asked in QUESTIONS.items():
        own = found.get(name)
        if own is None or not (own.tries or own.shown):
            continue
        right = value_text(asked.right) if own.open else ""
        tries = own.tries or [None]
        for number, one in enumerate(tries, 1):
            given = ["", "", "", "shown", ""]
            if one is not None:
                slip = one.grade.slip.name if one.grade.slip else ""
                given = [
                    str(number), value_text(one.guess), asked.answer.unit, one.grade.verdict, slip,
                ]  # fmt: skip
            rows.append([name, asked.text, *given, right])
    return to_csv(pd.DataFrame(rows, columns=head)).encode()


def value_text(value: Value) -> str:
    """An answer as people write it."""
    if isinstance(value, tuple):
        return " < ".join(value)
    return value if isinstance(value, str) else short(value)
