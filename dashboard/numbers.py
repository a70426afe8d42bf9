"""Number fields that say what is wrong with a number and keep the last good one.

Streamlit's own limits answer with a sign inside the field and tell the server nothing, and its
field of whole numbers reads 1e3 as 1 and 1.5 as 1. So these fields have no limits and read every
number as a decimal one; the check is here. What a number field never lets through is what is no
number: a browser gives it on as an empty field, which means the default.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.plain import plain
from dashboard.settings import number_text, range_text
from triosim.errors import ConfigError


def number_field(
    label: str,
    low: float,
    high: float,
    default: float | None,
    *,
    key: str,
    step: float = 1,
    whole: bool = True,
    name: str = "",
    **more: Any,
) -> Any:
    """A field for a number from `low` to `high`, called `name` in the sentence of `say_refused`."""
    limits = low, high, whole
    known = _kept()
    given, kept = st.session_state.get(key), known.get(key, default)
    kept = None if kept is None else min(max(kept, low), high)
    # Where only the limits have moved since, there is nothing to say.
    if given is not None and not is_legal(given, *limits):
        if given != known.get(key):
            refuse(name or label, given, *limits, key=key)
        st.session_state[key] = kept  # as a whole number, or the address would say 4.0
    value = st.number_input(
        label,
        value=None if default is None else float(default),
        step=float(step),
        format="%g",
        key=key,
        **more,
    )
    if value is not None and not is_legal(value, *limits):
        # An address is read when the field is drawn: put right in the next run.
        refuse(name or label, value, *limits, key=key)
        value = kept
    if value is not None:
        value = int(value) if whole else float(value)
    known[key] = value
    return value


def _kept() -> dict[str, Any]:
    """The last good number of each field.

    NOTE: one entry of the session state for all fields, because Streamlit goes through all entries
    for each field that it draws: 12 % of a rerun of the page Train with an entry a field.
    """
    kept: dict[str, Any] = st.session_state.setdefault("kept_numbers", {})
    return kept


def is_legal(value: float, low: float, high: float, whole: bool) -> bool:
    """Whether a number may stay (NaN may not)."""
    return low <= value <= high and (not whole or float(value).is_integer())


def refuse(name: str, value: float, low: float, high: float, whole: bool, *, key: str) -> None:
    """Note a sentence for `say_refused`."""
    legal = f"must be a {'whole ' if whole else ''}number from {range_text(low, high)}"
    sentence = ConfigError(name, number_text(value), legal).named(name)
    st.session_state[f"{key}_refused"] = sentence


def say_refused(*keys: str) -> DeltaGenerator:
    """What was wrong with the numbers that came last, if anything was, in a place of its own."""
    slot = st.empty()
    found = _take_waiting(keys)
    _said().update(found)
    say(slot, found.values())
    return slot


def take_said(keys: Iterable[str]) -> dict[str, str]:
    """What `say_refused` has said since this was asked last, by key."""
    said = _said()
    return {key: said.pop(key) for key in keys if key in said}


def take_refused(keys: Iterable[str]) -> dict[str, str]:
    """The same, and what nobody has said yet."""
    keys = tuple(keys)
    return take_said(keys) | _take_waiting(keys)


def _take_waiting(keys: Iterable[str]) -> dict[str, str]:
    """The sentences of `refuse` that nobody has said yet, by key."""
    state = st.session_state
    return {key: state.pop(f"{key}_refused") for key in keys if f"{key}_refused" in state}


def _said() -> dict[str, str]:
    """The sentences of `say_refused`, one entry of the session state as for `_kept`."""
    said: dict[str, str] = st.session_state.setdefault("said_of_numbers", {})
    return said


def say(place: Any, sentences: Iterable[str]) -> None:
    """Sentences one below the other; nothing where there are none."""
    lines = [plain(sentence) for sentence in sentences]
    if lines:
        place.error("  \n".join(lines))
