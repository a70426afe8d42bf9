"""Play: the question's scenario in sliders, on the real engine; formula and guess beside it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from dashboard.computed import once
from dashboard.lab.answers import Answered, value_text
from dashboard.lab.desk import BOUND, Desk
from dashboard.lab.lab import Lab, mark_text, setting_key, setting_of
from dashboard.lab.present import style
from dashboard.plain import plain
from dashboard.timeline import show
from triosim.figures.answer_axis import AxisRow, answer_axis
from triosim.lab import NUMBER, Parameter, Question
from triosim.lab.run import Outcome, outcomes

SLIDERS_PER_ROW = 5
Parameters = Sequence[tuple[Parameter, float]]


def sliders(asked: Question, parameters: Parameters, key: str) -> dict[str, float]:
    """Draw some sliders and read them; where they stand is in the address."""
    values: dict[str, float] = {}
    with st.container(key=f"lab_sliders_{key}"):
        rows = math.ceil(len(parameters) / SLIDERS_PER_ROW) or 1
        per_row = max(3, math.ceil(len(parameters) / rows))
        for first in range(0, len(parameters), per_row):
            columns = st.columns(per_row, gap="medium")
            for (parameter, value), column in zip(parameters[first:], columns, strict=False):
                with column:
                    values[parameter.name] = _slider(asked, parameter, value)
    return values


def _slider(asked: Question, parameter: Parameter, value: float) -> float:
    key = setting_key(asked, parameter.name)
    if parameter.marks:
        marks = [mark_text(mark) for mark in sorted({*parameter.marks, value})]
        chosen = st.select_slider(parameter.label, marks, mark_text(value), key=key, **BOUND)
        return float(chosen)
    kind = int if parameter.whole else float
    moved = st.slider(
        parameter.label, kind(parameter.low), kind(parameter.high), kind(value),
        kind(parameter.step), format="%d" if parameter.whole else "%g", key=key, **BOUND,
    )  # fmt: skip
    return kind(moved)


def reset(lab: Lab, asked: Question) -> None:
    """Back to the question's scenario."""
    for parameter, value in lab.parameters(asked):
        setting = setting_of(setting_key(asked, parameter.name), parameter, value)
        st.session_state[setting.name] = setting.default


def run(lab: Lab, asked: Question, values: Mapping[str, float]) -> tuple[Outcome, ...]:
    """The question's quantities at the sliders' values, from before or from a worker."""
    quick = asked.id in lab.quick
    found: tuple[Outcome, ...] = once(
        "Simulating", outcomes_at, asked.id, tuple(values.items()), here=quick
    )
    return found


def outcomes_at(question: str, moved: tuple[tuple[str, float], ...]) -> tuple[Outcome, ...]:
    """A question's quantities; hashable arguments are those of something kept."""
    return outcomes(question, dict(moved))


def play(lab: Lab, asked: Question, own: Answered) -> tuple[Desk, tuple[Outcome, ...]]:
    """The question's sliders and one axis; then the lab's own sliders and pictures.

    Returns what is set, and what came out.
    """
    both = lab.parameters(asked)
    count = len(asked.parameters)
    values = sliders(asked, both[:count], "question")
    found = run(lab, asked, values)
    if any(values[parameter.name] != value for parameter, value in both[:count]):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.button(
                "Reset to the question", on_click=reset, args=(lab, asked),
                key=f"reset_{asked.id}", icon=":material/undo:",
            )  # fmt: skip
            if own.guess is not None and asked.kind == NUMBER:
                st.caption("Your guess was for the question's scenario.")
    axis(asked, found, own)
    if lab.more_title:
        st.markdown(f"**{plain(lab.more_title)}**")
    values |= sliders(asked, both[count:], "more")
    desk = Desk(lab=lab, asked=asked, values=values)
    if lab.draw is not None:
        lab.draw(desk)
    return desk, found


def axis(asked: Question, found: Sequence[Outcome], own: Answered) -> None:
    """Numbers of one unit on one axis, the others in words below."""
    unit = next((one.unit for one in found if isinstance(one.closed, int | float)), "")
    on_axis = [one for one in found if isinstance(one.closed, int | float) and one.unit == unit]
    rows = [_row(one, own if one is found[0] else None) for one in on_axis]
    if rows:
        show(
            answer_axis(rows, unit, style=style()),
            f"{asked.id}: formula, simulation and guess of {', '.join(r.label for r in rows)}",
            key=f"axis_{asked.id}",
        )
    for problem in dict.fromkeys(one.problem for one in found if one.problem):
        st.warning(plain(problem))
    rest = [one for one in found if one not in on_axis]
    if rest:
        st.dataframe(
            pd.DataFrame(
                {
                    "": [one.label for one in rest],
                    "formula": [_text(one.closed, one.unit) for one in rest],
                    "simulation": [
                        "" if one.engine is None else _text(one.engine, one.unit) for one in rest
                    ],
                }
            ),
            hide_index=True,
            width="content",
        )


def _text(value: object, unit: str) -> str:
    return f"{value_text(value)} {unit}".strip()  # type: ignore[arg-type]


def _row(one: Outcome, own: Answered | None) -> AxisRow:
    guess = own.guess if own is not None else None
    return AxisRow(
        label=one.label,
        formula=float(one.closed) if isinstance(one.closed, int | float) else None,
        simulation=float(one.engine) if isinstance(one.engine, int | float) else None,
        guess=float(guess) if isinstance(guess, int | float) else None,
    )
