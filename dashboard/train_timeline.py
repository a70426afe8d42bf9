"""The tab Timeline of the page Train: the step, the layers of a pass, the kernels of a layer."""

from __future__ import annotations

from functools import partial

import pandas as pd
import streamlit as st

from dashboard import explain
from dashboard.timeline import part_of, show, style
from dashboard.train_links import keep_view
from triosim.figures.text import MIDDLE_DOT
from triosim.figures.train_breakdown import class_labels
from triosim.figures.train_timeline import CUSTOM_DATA, pass_timeline, step_timeline
from triosim.train import TrainResult, TrainScenario

PATH = "train_path"  # in the address
ALL = "all layers"
MAX_LISTED = 2000
_CLICKED = ("span", "rank", "wait")  # what a click on a bar tells


@st.fragment
def timeline(result: TrainResult) -> None:
    """Three depths below each other; in a fragment, so that a click redraws only these."""
    left, right = st.columns([0.66, 0.34], vertical_alignment="bottom")
    with right:
        pipeline = result.plan.stages > 1
        streams = not pipeline or st.toggle(
            "Communication streams", key="streams", bind="query-params"
        )
        explain.path_toggle(PATH)
    with left:
        window = part_of(
            "Window (part of the step)", "train_window", result.tasks.total_s * 1e3
        )  # fmt: skip
    keep_view()
    path = explain.path_of(result, PATH)
    figure = step_timeline(result, window, streams=streams, path=path, style=style())
    show(
        figure,
        "What each stage of the training step does over time",
        key="train_step",
        on_select=partial(_open, result.scenario),
        selection_mode="points",
    )
    names = dict(zip((c.rank for c in result.classes), class_labels(result), strict=True))
    explain.explanation(result, names, path, show, style())
    _pass(result)


def _open(scenario: TrainScenario) -> None:
    """A click on a bar opens that pass, and explains whatever it is."""
    explain.clicked("train_step", scenario, explain.CHOSEN, CUSTOM_DATA, _CLICKED)
    for point in st.session_state["train_step"].selection.points:
        task = int(point["customdata"][4])
        if task >= 0:
            st.session_state["train_task"] = task
            _whole_pass()


def _whole_pass() -> None:
    """A pass that is opened shows all of its layers."""
    st.session_state["train_unit"] = None


def _pass(result: TrainResult) -> None:
    """One pass of the step, opened."""
    tasks = list(result.writer.made)[:MAX_LISTED]
    now = st.session_state.get("train_task")
    if now in result.writer.made and now not in tasks:
        tasks.append(now)
    elif now not in result.writer.made:
        st.session_state["train_task"] = _first_layer(result, tasks)
    left, right = st.columns(2, vertical_alignment="bottom")
    with left:
        task = st.selectbox(
            "Open a pass: click on its bar, or choose it here",
            tasks,
            key="train_task",
            format_func=lambda t: name_of(result, t),
            on_change=_whole_pass,
        )
    inside = result.inside(task)
    units = list(dict.fromkeys(inside["unit"]))
    with right:
        options = [ALL, *units] if len(units) > 1 else units
        if st.session_state.get("train_unit") not in options:
            st.session_state["train_unit"] = options[0]
        unit = st.selectbox("Layer", options, key="train_unit")
    chosen = None if unit == ALL else unit
    of = result.scenario, task, chosen
    found = explain.inside_of(result, task, unit)
    show(
        pass_timeline(inside, unit=chosen, gaps=found, style=style()),
        f"Inside {name_of(result, task)}",
        key="train_pass",
        on_select=partial(explain.clicked, "train_pass", of, explain.INNER, CUSTOM_DATA, _CLICKED),
        selection_mode="points",
    )
    if found is not None:
        explain.inner_explanation(found, of)
    st.caption(
        "The layers of this pass, one after the other: choose one for its kernels."
        if chosen is None
        else f"{_kernels(inside, unit)} on the GPU; times count from the start of the pass, as if "
        "nothing overlapped it. A launch before 0 was made while the GPU was still busy."
    )


def _first_layer(result: TrainResult, tasks: list[int]) -> int:
    named = [t for t in tasks if result.tasks.program.name[t].startswith("layer")]
    return (named or tasks)[0]


def name_of(result: TrainResult, task: int) -> str:
    """A pass by its stage and name."""
    name = result.tasks.program.name[task]
    stage = result.classes[int(result.tasks.rank_class[task])].stage
    return f"stage {stage} {MIDDLE_DOT} {name}" if result.plan.stages > 1 else name


def _kernels(inside: pd.DataFrame, unit: str) -> str:
    own = inside[(inside["unit"] == unit) & (inside["stream"] != "launch")]
    return f"{len(own):,} kernels and transfers"
