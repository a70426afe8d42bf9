"""Widgets of the page Network, each bound to the parameter of its name in the address."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from dashboard import bound
from dashboard.described import MAX_TEXT
from dashboard.echo import follow, set_widget
from dashboard.network_settings import MEMBERS, SETTINGS
from dashboard.numbers import say_refused
from triosim.figures.text import bytes_text, digits

MB = 1e6
SIZE_MARKS = tuple(
    float(f"{mantissa}e{exponent}") for exponent in range(-4, 6) for mantissa in (1, 2, 5)
)
RANK_MARKS = (
    1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 128, 256, 512, 1024, 4096, 16_384, 65_536,
    131_072,
)  # fmt: skip
SPEED_MARKS = (1.0, 5.0, 10.0, 25.0, 50.0, 65.0, 100.0, 130.0, 200.0, 300.0, 450.0, 900.0, 1800.0)
SETUP_MARKS = (0.0, *(float(f"{m}e{e}") for e in range(-3, 3) for m in (1, 2, 5)))


def choice(name: str, options: Sequence[str] = (), **more: Any) -> str:
    """One of the setting's choices, or of those given."""
    return bound.choice(SETTINGS[name], options, **more)


def text(name: str, placeholder: str, **more: Any) -> str:
    """What stands in a line of text; empty where nothing does."""
    return bound.text(SETTINGS[name], placeholder, MAX_TEXT, **more) or ""


def switch(name: str, **more: Any) -> bool:
    return bound.switch(SETTINGS[name], **more)


def number(name: str, **more: Any) -> Any:
    """A number of the setting's range; what was refused stands below it."""
    value = bound.number(SETTINGS[name], **more)
    say_refused(name)
    return value


def number_with_slider(
    name: str,
    marks: Sequence[float],
    *,
    step: float = 1,
    shown: Callable[[float], str] = digits,
) -> Any:
    """A slider of round values beside the exact number, which is what counts."""
    setting = SETTINGS[name]
    if f"late_{name}" in st.session_state:
        st.session_state[name] = st.session_state.pop(f"late_{name}")
    with st.container(key=f"pair_{name}"):
        left, right = st.columns([0.6, 0.4], vertical_alignment="bottom", wrap=False)
    with right:
        value = bound.number(
            setting, step=step, label=f"{setting.label}, exact", label_visibility="collapsed"
        )
    with left:
        _handle(name, sorted({*marks, value}), value, shown)
    say_refused(name)
    return value


def _handle(name: str, marks: Sequence[float], value: float, shown: Callable[[float], str]) -> None:
    key = f"{name}_slider"
    known = key in st.session_state
    # Written only when it differs: writing in every run would pull a slider back under the hand.
    if known and st.session_state[key] != value:
        set_widget(key, value)
    moved = st.select_slider(
        SETTINGS[name].label, marks, value, key=key, format_func=shown, on_change=follow,
        args=(name, key),
    )  # fmt: skip
    if not known and moved != value:
        # A tab that is older than the server: its first move comes without the callback.
        st.session_state[f"late_{name}"] = moved
        st.rerun()


def size_bytes(name: str) -> float:
    """A message size: the slider says it in its own unit, the field in MB."""
    size = number_with_slider(name, SIZE_MARKS, shown=lambda mb: bytes_text(mb * MB))
    return float(size) * MB


def members(name: str = "group", ranks: str = "members") -> tuple[str, str]:
    """Who takes part: `Members.kind`, and the ranks typed for it."""
    kind = MEMBERS[choice(name)]
    last = int(st.session_state.get("ranks") or SETTINGS["ranks"].default) - 1
    example = "0-7 or 0,4; 1,5" if last >= 7 else f"0-{last}" if last > 0 else "0"
    typed = text(ranks, example) if kind == "list" else ""
    return kind, typed
