"""What the controls of the simulation page are made of.

Each widget is bound to the parameter of its name in the address. A slider beside an exact number is
only a handle: the number is what counts, so every legal value has a place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard import complaints
from dashboard.echo import follow, set_widget
from dashboard.links import named as in_words
from dashboard.numbers import number_field, say_refused
from dashboard.plain import plain
from dashboard.settings import SETTINGS, Setting
from triosim.errors import ConfigError, TraceFormatError, TrioSimError

MAX_TEXT = 2000
EXACT_PX = 84  # of a number beside its slider


@dataclass
class Controls:
    """The settings that the widgets show, and the places beside them for a sentence each."""

    values: dict[str, Any] = field(default_factory=dict)
    slots: dict[str, DeltaGenerator] = field(default_factory=dict)

    def complain(self, error: TrioSimError) -> None:
        """Put the sentence beside the control that caused it, or where the result would be."""
        if isinstance(error, ConfigError):
            sentence, field = plain(in_words(error)), error.field
        else:
            sentence = plain(str(error))
            field = "trace_dir" if isinstance(error, TraceFormatError) else ""
        slot = self.slots.get("trace" if field == "trace_dir" else field)
        if slot is not None:
            complaints.beside(slot, sentence)
        complaints.on_top(sentence, "No result", beside=slot is not None)

    def put(self, name: str, widget: Callable[[Setting], Any]) -> Any:
        """Draw a setting's widget if the setting matters now."""
        setting = SETTINGS[name]
        if not setting.matters(self.known):
            self.values[name] = setting.default
            return setting.default
        value = self.values[name] = widget(setting)
        self.slots[name] = say_refused(name)
        return value

    @property
    def known(self) -> Mapping[str, Any]:
        """What is set so far; what comes later has its default."""
        return {**{name: s.default for name, s in SETTINGS.items()}, **self.values}


def radio(
    setting: Setting, options: Sequence[str], captions: Mapping[str, str] | None = None
) -> str:
    return st.radio(
        setting.label,
        options,
        index=list(options).index(setting.default),
        captions=None if captions is None else [captions[option] for option in options],
        horizontal=captions is None,
        key=setting.name,
        bind="query-params",
    )


def toggle(setting: Setting) -> bool:
    return st.toggle(setting.label, value=setting.default, key=setting.name, bind="query-params")


def slider(setting: Setting) -> int:
    value: int = st.slider(
        setting.label,
        int(setting.low),
        int(setting.high),
        setting.default,
        key=setting.name,
        bind="query-params",
    )
    return value


def number(setting: Setting, *, step: float, collapsed: bool = False, **more: Any) -> Any:
    return number_field(
        f"{setting.plain_label}, exact" if collapsed else setting.label,
        setting.low,
        setting.high,
        setting.default,
        key=setting.name,
        step=step,
        whole=setting.kind == "whole",
        name=setting.plain_label,
        label_visibility="collapsed" if collapsed else "visible",
        bind="query-params",
        **more,
    )


def optional(setting: Setting, absent: int | None, help_text: str) -> int | None:
    """Empty shows what that stands for."""
    shown = "" if absent is None else f"{absent:.15g}"
    value: int | None = number(setting, step=1, placeholder=shown, help=help_text)
    return value


def named(setting: Setting, names: Sequence[str], absent: str, **more: Any) -> str | None:
    """One of some names, or None, which is shown as what it stands for: in the same words always.

    A browser sends an entry by its words, so others would be another entry. Streamlit takes a
    widget whose state is None as one without a default, so that is an empty text here.
    """
    if st.session_state.get(setting.name, "") is None:
        st.session_state[setting.name] = ""
    chosen: str = st.selectbox(
        setting.label,
        ("", *names),
        key=setting.name,
        format_func=lambda name: name or absent,
        bind="query-params",
        **more,
    )
    return chosen or None


def text(setting: Setting, placeholder: str, **more: Any) -> str | None:
    """What is typed; None where nothing is."""
    return st.text_input(
        setting.label,
        None,
        key=setting.name,
        placeholder=placeholder,
        bind="query-params",
        max_chars=MAX_TEXT,
        **more,
    )


def number_with_slider(
    setting: Setting,
    marks: Sequence[float],
    *,
    step: float,
    shown: Callable[[float], str] = "{:.15g}".format,
) -> Any:
    """A slider over round values beside the exact number, which is what counts."""
    with st.container(
        key=f"pair_{setting.name}", horizontal=True, wrap=False, vertical_alignment="bottom"
    ):
        left = st.container()
        value = number(setting, step=step, collapsed=True, width=EXACT_PX)
    with left:
        _handle(setting, sorted({*marks, value}), value, shown)
    return value


def _handle(
    setting: Setting, options: Sequence[float], value: float, shown: Callable[[float], str]
) -> None:
    """A slider that shows the value of the setting's own widget and sets it when moved."""
    key = f"{setting.name}_slider"
    known = key in st.session_state
    # Written only when it differs: writing in every run would pull a slider back under the hand.
    if known and st.session_state[key] != value:
        set_widget(key, value)
    moved = st.select_slider(
        setting.label,
        options,
        value,
        key=key,
        format_func=shown,
        on_change=follow,
        args=(setting.name, key),
    )
    if not known and moved != value:
        # A tab that is older than the server: its first move comes without the callback.
        st.session_state["late_move"] = setting.name, moved
        st.rerun()
