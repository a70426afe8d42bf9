"""What a lab's own pictures are drawn from: the question, what is set, and how to draw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.lab.lab import Lab
from dashboard.lab.present import style
from dashboard.plain import plain
from dashboard.timeline import show
from triosim.errors import TrioSimError
from triosim.figures import Style
from triosim.lab import Question
from triosim.lab.run import sentence

BOUND: Mapping[str, Any] = {"bind": "query-params"}
CHOICE_PX = 290  # two beside each other on a projector's half, one on a phone


@dataclass(frozen=True, kw_only=True)
class Desk:
    """`values` are those of all sliders, by parameter name."""

    lab: Lab
    asked: Question
    values: Mapping[str, float]

    @property
    def style(self) -> Style:
        return style()

    def count(self, name: str) -> int:
        """A whole number among the sliders' values."""
        return int(self.values[name])

    def choice(self, name: str, *, width: int | Literal["stretch"] = CHOICE_PX, **more: Any) -> str:
        """One of the choices of a setting of the lab's own, by its name in `Lab.settings`."""
        setting = self.lab.setting(self.asked, name)
        if st.session_state.get(setting.name, setting.default) not in setting.choices:
            st.session_state[setting.name] = setting.default
        chosen: str = st.selectbox(
            setting.label,
            setting.choices,
            index=list(setting.choices).index(setting.default),
            key=setting.name,
            width=width,
            **BOUND,
            **more,
        )
        return chosen

    def row(self) -> DeltaGenerator:
        """Choices and switches beside each other, or below where there is no room."""
        return st.container(horizontal=True, vertical_alignment="bottom")

    def tabs(self, name: str, **more: Any) -> str:
        """The same as buttons in a row."""
        setting = self.lab.setting(self.asked, name)
        chosen: str = st.segmented_control(
            setting.label,
            setting.choices,
            default=setting.default,
            required=True,
            key=setting.name,
            label_visibility="collapsed",
            **BOUND,
            **more,
        )
        return chosen or setting.default

    def switch(self, name: str, **more: Any) -> bool:
        """A switch of the lab's own."""
        setting = self.lab.setting(self.asked, name)
        return st.toggle(setting.label, value=setting.default, key=setting.name, **BOUND, **more)

    def complain(self, nothing: str, error: TrioSimError) -> None:
        """Why there is no picture, in the words of the sliders."""
        labels = {p.name: p.label for p, _ in self.lab.parameters(self.asked)}
        labels |= {name: setting.label for name, setting in self.lab.settings.items()}
        st.warning(plain(f"{nothing}: {sentence(error, labels)}"))

    def show(self, figure: Any, alt: str, **more: Any) -> None:
        """A figure of the lab's."""
        show(figure, alt, **more)
