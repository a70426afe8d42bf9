"""The tabs of the page Train, but for the timeline."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard import views
from dashboard.export import file_button
from dashboard.plain import micro, plain
from dashboard.timeline import show, style
from dashboard.train_constants import constants_table
from dashboard.train_head import signed
from dashboard.train_run import changes_for
from dashboard.train_settings import control_of, label_of, shown_value
from triosim.analysis.breakdown import CLASSES
from triosim.export.table import to_csv
from triosim.figures.text import bytes_text, share_text, time_text, words
from triosim.figures.train_breakdown import class_labels, train_breakdown
from triosim.figures.train_memory import memory_by_stage, memory_over_step
from triosim.network.topology.machines import load_machine, machine_names
from triosim.train import TrainResult
from triosim.train.result import CONVENTIONS


def time_tab(result: TrainResult) -> None:
    """Classes of time, and what is sent for what."""
    st.caption("Mean over all GPUs; the six sum to the step.")
    widths = [1.5 if len(name) > 12 else 1.0 for name in CLASSES]
    with st.container(key="cards_of_time"):
        columns = st.columns(widths)
    for column, name in zip(columns, CLASSES, strict=True):
        value = result.breakdown[name]
        with column.container(gap=None):
            st.metric(words(name).capitalize(), time_text(value))
            meaning = views.CLASS_MEANING[name]
            st.caption(f"{share_text(value, result.step_ms)}: {meaning}")
    show(train_breakdown(result, style=style()), "Where the step of each stage goes")
    if not result.communication:
        st.info("Nothing is transferred in this step.")
        return
    gpus = result.scenario.gpus
    st.markdown("**Communication**")
    st.dataframe(
        pd.DataFrame(
            {
                "what": [row.kind for row in result.communication],
                "for": [row.purpose for row in result.communication],
                "sent by a GPU": [bytes_text(row.bytes / gpus) for row in result.communication],
                "busy (ms)": [round(row.busy_s * 1e3, 3) for row in result.communication],
                "exposed (ms)": [round(row.exposed_s * 1e3, 3) for row in result.communication],
            }
        ),
        hide_index=True,
    )
    st.caption(
        "Means over GPUs. Busy: such a transfer is moving. Exposed: and the GPU has nothing else "
        "to do."
    )
    file_button("Communication (CSV)", "communication.csv", lambda: _sent_csv(result))


def _sent_csv(result: TrainResult) -> bytes:
    """The same with plain numbers; bytes are those that a GPU sends."""
    rows = [
        {
            "what": row.kind,
            "for": row.purpose,
            "bytes": row.bytes / result.scenario.gpus,
            "busy_ms": row.busy_s * 1e3,
            "exposed_ms": row.exposed_s * 1e3,
        }
        for row in result.communication
    ]
    return to_csv(pd.DataFrame(rows)).encode()


def memory_tab(result: TrainResult) -> None:
    """At the peak, over time, and what would make it fit."""
    labels = class_labels(result)
    show(memory_by_stage(result, style=style()), "Memory at the peak of each stage")
    chosen = next(c for c, curve in enumerate(result.memory) if curve is result.fullest)
    if len(labels) > 1:
        key = "train_memory_of"
        if st.session_state.get(key) not in labels:
            st.session_state[key] = labels[chosen]
        chosen = labels.index(st.selectbox("Over the step, of", labels, key=key, width=260))
    show(memory_over_step(result, chosen, style=style()), f"Memory over the step, {labels[chosen]}")
    if not result.fits:
        _changes(result)


def _changes(result: TrainResult) -> None:
    changes = changes_for(result)
    if not changes:
        st.info("None of the changes tried makes it fit.")
        return
    st.markdown("**What would make it fit**, the least slow-down first")
    st.dataframe(
        pd.DataFrame(
            {
                "change": [_in_words(change.settings) for change in changes],
                "peak (GiB)": [round(change.peak_memory_gib, 1) for change in changes],
                "time per token": [signed(change.slowdown) for change in changes],
            }
        ),
        hide_index=True,
    )


def _in_words(settings: dict[str, object]) -> str:
    """Changes by the labels of their controls; what only follows from them is left out."""
    said = []
    for field, value in settings.items():
        if value is None or not control_of(field):
            continue
        said.append(f"{label_of(field)} {shown_value(value)}")
    return ", ".join(said)


def checks_tab(result: TrainResult) -> None:
    """Checks, what was assumed, and the constants of the stack with their sources."""
    views.checks(result)
    left, right = st.columns(2)
    left.markdown("**Assumed**\n\n" + _points(result.assumptions))
    conventions = [f"{name}: {text}" for name, text in CONVENTIONS.items()]
    right.markdown("**Conventions**\n\n" + _points(conventions))
    constants_table(result)
    if result.plan.machine in machine_names():
        machine = load_machine(result.plan.machine)
        sources = [f"{part}: {source}" for part, source in machine.sources.items()]
        st.markdown(f"**Sources of {plain(machine.name)}**\n\n" + _points(sources))


def _points(lines: object) -> str:
    return "\n".join(f"- {plain(micro(str(line)))}" for line in lines) or "- nothing"
