"""Explain: how far formula and simulation are apart here, and what each leaves out."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dashboard.lab.answers import value_text
from dashboard.lab.desk import Desk
from dashboard.lab.lab import Cause
from dashboard.plain import plain
from triosim.figures.text import short
from triosim.lab.run import Outcome

SAME = 1e-4


def explain(desk: Desk, found: Sequence[Outcome]) -> None:
    """The differences by name, those at work here first, beside what nobody models."""
    left, right = st.columns(2, gap="large")
    with left:
        st.markdown("**Formula and simulation**")
        if found:
            st.markdown(plain(apart(found[0])))
        causes = sorted(desk.lab.explain, key=lambda cause: not cause.applies(desk.values))
        st.markdown("\n".join(_line(cause, desk) for cause in causes))
    with right:
        st.markdown("**Not modelled**")
        st.markdown("\n".join(f"- {plain(text)}" for text in desk.lab.not_modelled))


def _line(cause: Cause, desk: Desk) -> str:
    here = " :blue-badge[here]" if cause.applies(desk.values) else ""
    return f"- **{plain(cause.name)}**{here}: {plain(cause.text)}"


def apart(one: Outcome) -> str:
    """How far the two are apart, in words."""
    if one.engine is None:
        return "Here there is a formula, but nothing to simulate."
    if not isinstance(one.closed, int | float) or not isinstance(one.engine, int | float):
        same = "the same as" if one.closed == one.engine else "not what"
        return f"The simulation gives {same} the formula: {value_text(one.closed)}."
    difference = one.engine - one.closed
    if abs(difference) <= SAME * max(abs(one.closed), 1e-12):
        return f"{one.label}: both give {short(one.closed)} {one.unit}."
    sign, longer = ("+", "more") if difference > 0 else ("\u2212", "less")
    share = abs(difference / one.closed) if one.closed else 0.0
    part = f" ({sign}{short(100 * share, 2)} %)" if share else ""
    # A difference of percentages is no percentage.
    unit = "points" if one.unit == "%" else one.unit
    text = (
        f"{one.label}: the simulation gives {short(abs(difference), 3)} {unit} {longer} than the "
        f"formula{part}."
    )
    return f"{text} {one.differs}" if one.differs else text
