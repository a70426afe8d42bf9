"""The controls of the page Train: what they say, and where sentences about them stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard import bound, complaints
from dashboard.described import MAX_TEXT
from dashboard.numbers import say_refused
from dashboard.plain import plain
from dashboard.train_settings import SETTINGS, control_of, in_labels
from triosim.errors import ConfigError, TraceFormatError, TrioSimError


@dataclass
class Controls:
    """What the controls say, and the places beside them for a sentence each.

    A setting that does not matter beside those drawn before it is not drawn.
    """

    values: dict[str, Any] = field(default_factory=dict)
    slots: dict[str, DeltaGenerator] = field(default_factory=dict)

    def matters(self, name: str) -> bool:
        return SETTINGS[name].matters(self.known)

    @property
    def known(self) -> Mapping[str, Any]:
        """What is set so far; what comes later has its default."""
        return {**{name: s.default for name, s in SETTINGS.items()}, **self.values}

    def choice(self, name: str, **more: Any) -> None:
        if self.matters(name):
            self.put(name, bound.choice(SETTINGS[name], **more))

    def switch(self, name: str, **more: Any) -> None:
        self.put(name, bound.switch(SETTINGS[name], **more))

    def text(self, name: str, placeholder: str, **more: Any) -> None:
        if self.matters(name):
            self.put(name, bound.text(SETTINGS[name], placeholder, MAX_TEXT, **more))

    def number(self, name: str, **more: Any) -> None:
        if self.matters(name):
            self.put(name, bound.number(SETTINGS[name], **more))

    def put(self, name: str, value: Any) -> None:
        """What a control says, with a place for a sentence below it."""
        self.values[name] = value
        self.slots[name] = say_refused(name)

    def row(self, names: Sequence[str], **more: Any) -> None:
        """Numbers side by side; sentences about them stand below and have the whole width."""
        names = [name for name in names if self.matters(name)]
        if not names:
            return
        with st.container(key=f"pair_bare_{names[0]}", horizontal=True, wrap=False):
            for name in names:
                widget = bound.choice if SETTINGS[name].kind == "choice" else bound.number
                self.values[name] = widget(SETTINGS[name], **more.get(name, {}))
        say_refused(*names)
        # What one of them is refused for is not lost where the plan is wrong in another.
        self.slots |= dict.fromkeys(names, st.empty())

    def complain(self, error: TrioSimError) -> None:
        """Put the sentence beside the control that caused it, or where the result would be."""
        name, sentence = "", plain(str(error))
        if isinstance(error, ConfigError):
            name = control_of(error.field)
            sentence = plain(in_labels(error))
        elif isinstance(error, TraceFormatError):
            name = "recorded"
        slot = self.slots.get(name)
        if slot is not None:
            complaints.beside(slot, sentence)
        complaints.on_top(sentence, "No result", beside=slot is not None)
