"""The sidebar of a search: what is trained on what, limits, and what is tried."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard import bound, complaints
from dashboard.numbers import say_refused
from dashboard.plain import plain
from dashboard.search_settings import (
    OPTIONS,
    SETTINGS,
    Question,
    control_of,
    default_batch,
    layouts,
    question_of,
)
from dashboard.sweep_links import keep_text, text_here
from triosim.errors import ConfigError, TrioSimError, counted
from triosim.hardware import load_gpu
from triosim.train import TrainScenario


@dataclass
class Controls:
    """What the controls say, and the places beside them for a sentence each."""

    values: dict[str, Any] = field(default_factory=dict)
    slots: dict[str, DeltaGenerator] = field(default_factory=dict)

    def choice(self, name: str, **more: Any) -> None:
        self.put(name, bound.choice(SETTINGS[name], **more))

    def number(self, name: str, **more: Any) -> None:
        self.put(name, bound.number(SETTINGS[name], **more))

    def put(self, name: str, value: Any) -> None:
        self.values[name] = value
        self.slots[name] = say_refused(name)

    def several(self, name: str, arrived: bool, **more: Any) -> None:
        """Some of a list; the address has them as text."""
        setting = SETTINGS[name]
        if arrived or name not in st.session_state:
            said = text_here(name) or setting.default
            parts = [part.strip() for part in said.split(",")]
            st.session_state[name] = [part for part in parts if part in OPTIONS[name]]
        chosen = st.multiselect(
            setting.label, OPTIONS[name], default=st.session_state[name], key=name, **more
        )
        text = ", ".join(chosen)
        keep_text(name, None if text == setting.default else text)
        self.values[name] = text
        self.slots[name] = st.empty()

    def complain(self, error: TrioSimError) -> str:
        """Put the sentence beside the control that caused it."""
        name, sentence = "", plain(str(error))
        if isinstance(error, ConfigError):
            # Whatever is wrong with the whole, the model is what it is about.
            name = control_of(error.field) or "find_model"
            label = error.field if name == "find_model" else SETTINGS[name].plain_label
            sentence = plain(error.named(label))
        complaints.beside(self.slots[name or "find_model"], sentence)
        return sentence


def choose(arrived: bool) -> Question | str:
    """Draw the controls and read them; or a sentence, which then stands at one of them as well."""
    controls = Controls()
    controls.choice("find_model")
    controls.choice("find_gpu")
    controls.number("find_gpus")
    controls.choice("find_machine", help="auto: the usual one of the GPU.")
    controls.choice("find_stack")
    sequence = _sequence(controls)
    controls.number("find_batch", placeholder=f"{default_batch(sequence):,}: 4 Mi tokens")
    _limits(controls)
    _tried(controls, arrived)
    try:
        question = question_of(controls.values)
    except TrioSimError as error:
        return controls.complain(error)
    count = layouts(question)
    st.caption(f"{counted(count, 'layout')} to look at, legal or not.")
    return question


def _sequence(controls: Controls) -> int:
    own = TrainScenario(model=controls.values["find_model"]).sequence
    controls.number("find_seq", placeholder=f"{own:,}")
    return controls.values["find_seq"] or own


def _limits(controls: Controls) -> None:
    with st.expander("Limits"):
        own = load_gpu(controls.values["find_gpu"]).memory_bytes / 2**30
        controls.number("find_memory", placeholder=f"{own:,.0f}: all of it")
        controls.number("find_tokens", placeholder="no limit on the run")
        controls.number("find_days", placeholder="any")
        controls.number("find_price", placeholder="none")
        controls.number("find_cost", placeholder="any", help="In the currency of the price.")
        controls.number(
            "find_energy", placeholder="any", help="Of the GPUs alone, at their rated power."
        )


def _tried(controls: Controls, arrived: bool) -> None:
    with st.expander("What is tried for each layout"):
        setting = SETTINGS["find_micro"]
        controls.put(setting.name, bound.text(setting, setting.default, 60) or setting.default)
        controls.several("find_recompute", arrived)
        controls.several("find_schedules", arrived)
        controls.several(
            "find_zero", arrived, help="What dp_shard divides: 1 optimizer state, 2 and gradients, "
            "3 and parameters."
        )  # fmt: skip
        controls.number("find_cp", placeholder="any")
        controls.choice("find_precision")
