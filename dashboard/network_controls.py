"""Widgets of the page Network, each bound to the parameter of its name in the address."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from dashboard.network_settings import MAX_TEXT, MEMBERS, SETTINGS
from dashboard.numbers import number_field, say_refused
from triosim.figures.text import bytes_text, digits

BOUND: Mapping[str, Any] = {"bind": "query-params"}
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


def choice(
    name: str,
    options: Sequence[str] = (),
    *,
    radio: bool = False,
    **more: Any,
) -> str:
    """One of the setting's choices (or of those given, which include its default).

    The address has what the page shows, so choices are named as people read them.
    """
    setting = SETTINGS[name]
    options = options or setting.choices
    if st.session_state.get(name, setting.default) not in options:
        st.session_state[name] = setting.default
    widget = st.radio if radio else st.selectbox
    more |= {"horizontal": True} if radio else {}
    chosen: str = widget(
        setting.label,
        options,
        index=list(options).index(setting.default),
        key=name,
        **BOUND,
        **more,
    )
    return chosen


def text(name: str, placeholder: str, **more: Any) -> str:
    """What stands in a line of text; empty where nothing does."""
    given = st.text_input(
        SETTINGS[name].label,
        None,
        key=name,
        placeholder=placeholder,
        max_chars=MAX_TEXT,
        **BOUND,
        **more,
    )
    return given or ""


def switch(name: str, **more: Any) -> bool:
    setting = SETTINGS[name]
    return st.toggle(setting.label, value=setting.default, key=name, **BOUND, **more)


def number(name: str, *, step: float = 1, high: float | None = None, **more: Any) -> Any:
    """A number of the setting's range; what was refused stands below it."""
    setting = SETTINGS[name]
    value = number_field(
        setting.label,
        setting.low,
        setting.high if high is None else high,
        setting.default,
        key=name,
        step=step,
        whole=setting.kind == "whole",
        name=setting.plain_label,
        **BOUND,
        **more,
    )
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
        value = number_field(
            f"{setting.label}, exact",
            setting.low,
            setting.high,
            setting.default,
            key=name,
            step=step,
            whole=setting.kind == "whole",
            name=setting.plain_label,
            label_visibility="collapsed",
            **BOUND,
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
        st.session_state[key] = value
    moved = st.select_slider(
        SETTINGS[name].label, marks, value, key=key, format_func=shown, on_change=_follow,
        args=(name, key),
    )  # fmt: skip
    if not known and moved != value:
        # A tab that is older than the server: its first move comes without the callback.
        st.session_state[f"late_{name}"] = moved
        st.rerun()


def _follow(name: str, key: str) -> None:
    st.session_state[name] = st.session_state[key]


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
