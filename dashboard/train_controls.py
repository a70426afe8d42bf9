"""Widgets of the page Train, each bound to the parameter of its name in the address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard import complaints
from dashboard.numbers import number_field, say_refused
from dashboard.plain import plain
from dashboard.train_settings import SETTINGS, control_of
from triosim.errors import ConfigError, TrioSimError

BOUND: Mapping[str, Any] = {"bind": "query-params"}


@dataclass
class Controls:
    """What the controls say, and the places beside them for a sentence each."""

    values: dict[str, Any] = field(default_factory=dict)
    slots: dict[str, DeltaGenerator] = field(default_factory=dict)

    def choice(self, name: str, **more: Any) -> None:
        setting = SETTINGS[name]
        self.values[name] = st.selectbox(
            setting.label,
            setting.choices,
            index=list(setting.choices).index(setting.default),
            key=name,
            **BOUND,
            **more,
        )
        self.slots[name] = st.empty()

    def switch(self, name: str, **more: Any) -> None:
        setting = SETTINGS[name]
        self.values[name] = st.toggle(
            setting.label, value=setting.default, key=name, **BOUND, **more
        )
        self.slots[name] = st.empty()

    def number(self, name: str, **more: Any) -> None:
        self.values[name] = number(name, **more)
        self.slots[name] = say_refused(name)

    def row(self, names: Sequence[str], **more: Any) -> None:
        """Numbers side by side; sentences about them stand below and have the whole width."""
        with st.container(key=f"pair_{names[0]}"):
            columns = st.columns(len(names), wrap=False, gap="small")
        for name, column in zip(names, columns, strict=True):
            with column:
                self.values[name] = number(name, **more.get(name, {}))
        for name in names:
            self.slots[name] = say_refused(name)

    def complain(self, error: TrioSimError) -> None:
        """Put the sentence beside the control that caused it, or where the result would be."""
        slot, sentence = None, plain(str(error))
        if isinstance(error, ConfigError):
            name = control_of(error.field)
            slot = self.slots.get(name)
            label = SETTINGS[name].plain_label if name else error.field
            sentence = plain(error.named(label.partition(":")[0]))
        if slot is not None:
            complaints.beside(slot, sentence)
        complaints.on_top(sentence, "No result", beside=slot is not None)


def number(name: str, *, step: float = 1, **more: Any) -> Any:
    """A number of the setting's range."""
    setting = SETTINGS[name]
    return number_field(
        setting.label,
        setting.low,
        setting.high,
        setting.default,
        key=name,
        step=step,
        whole=setting.kind == "whole",
        name=setting.plain_label,
        **BOUND,
        **more,
    )
