"""What a training step can be taken along as: files, a command, a link."""

from __future__ import annotations

import shlex
from dataclasses import fields

import streamlit as st

from triosim.export.chrome import chrome_trace
from triosim.train import TrainResult, TrainScenario


def export_tab(result: TrainResult) -> None:
    """Files, and the command that gives the same result."""
    name = f"{result.plan.model.name}-{result.scenario.gpus}-gpus"
    with st.container(horizontal=True, gap="small"):
        for label, ending, write in (
            ("Result (JSON)", "json", result.to_json),
            ("Scenario (JSON)", "scenario.json", result.scenario.to_json),
            ("Timeline (Perfetto)", "perfetto.json", lambda: chrome_trace(result)),
        ):
            st.download_button(
                label,
                lambda write=write: write().encode(),
                f"{name}.{ending}",
                on_click="ignore",
                icon=":material/download:",
            )
    st.caption("The same result on the command line, from the project's folder:")
    st.code(train_command(result.scenario), language=None, wrap_lines=True)
    st.caption("The address of this page is a link to exactly this step.")


def train_command(scenario: TrainScenario) -> str:
    """The command that reproduces a scenario made of names and numbers."""
    default, words = TrainScenario(), [f"python -m triosim train --model {scenario.model}"]
    for field in fields(TrainScenario):
        value = getattr(scenario, field.name)
        if field.name != "model" and value != getattr(default, field.name):
            said = str(value).lower() if isinstance(value, bool) else str(value)
            words.append(f"--{field.name.replace('_', '-')} {shlex.quote(said)}")
    return " ".join(words)
