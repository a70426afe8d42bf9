"""What the labs on tensor and context parallelism share: layers on the engine, kept, and drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from dashboard.computed import once
from dashboard.lab.desk import Desk
from triosim.errors import TrioSimError
from triosim.figures.lab_layers import layer_lanes
from triosim.figures.text import bytes_text, memory_text, time_text
from triosim.lab.first_token import FirstToken, first_tokens
from triosim.lab.layer_run import LAYER, LayerRun, layer_runs
from triosim.train import TrainScenario

GPUS_PER_HOST = 8
# Name on the page: name in the catalogue.
MODELS: Mapping[str, str] = {
    "Llama 3 8B": "llama3-8b",
    "Llama 3 70B": "llama3-70b",
    "Llama 3.1 405B": "llama3.1-405b",
}


View = Callable[[Desk, str], None]
"""Draws one picture of a model."""


def draw_views(views: Mapping[str, View], desk: Desk) -> None:
    """The model, and the picture whose tab is chosen."""
    view = desk.tabs("view")
    model = desk.choice("model")
    try:
        views[view](desk, model)
    except TrioSimError as error:
        desk.complain("Nothing to draw", error)


def scenario(model: str, gpus: int, **settings: Any) -> TrainScenario:
    """A compiled layer in bf16 on the seminar's machine.

    Raises `ConfigError` for settings that are not possible.
    """
    return TrainScenario(
        model=MODELS[model], layers=1, gpu="h100-96gb", machine="seminar-h100", compile=True,
        gpus=gpus, dp_shard=1, **settings,
    )  # fmt: skip


def runs_of(scenarios: Sequence[TrainScenario], part: str = LAYER) -> list[LayerRun]:
    """From before or from a worker.

    Raises `TrioSimError`.
    """
    found: list[LayerRun] = once("Simulating the layer", layer_runs, tuple(scenarios), part)
    return found


def first_tokens_of(scenarios: Sequence[TrainScenario]) -> list[FirstToken]:
    """The same for prompts."""
    found: list[FirstToken] = once("Simulating the prompt", first_tokens, tuple(scenarios))
    return found


def show_lanes(desk: Desk, runs: Mapping[str, LayerRun], alt: str) -> None:
    """The passes of each plan on one time axis, and a table."""
    desk.show(layer_lanes(runs, style=desk.style), alt, key="layer_lanes")
    st.caption(
        "Above: kernels of a rank. Below: what it sends and receives. Forward, then backward."
    )
    st.dataframe(table_of(runs), hide_index=True)


def table_of(runs: Mapping[str, LayerRun]) -> pd.DataFrame:
    """A line for each plan; with a backward pass."""
    return pd.DataFrame(
        {
            "": list(runs),
            "forward": [time_text(1e3 * run.seconds[0]) for run in runs.values()],
            "backward": [time_text(1e3 * run.seconds[1]) for run in runs.values()],
            "exposed": [time_text(run.exposed_ms) for run in runs.values()],
            "a rank sends, forward": [bytes_text(run.sent_bytes[0]) for run in runs.values()],
            "kept for backward": [memory_text(run.kept_bytes) for run in runs.values()],
        }
    )  # fmt: skip
