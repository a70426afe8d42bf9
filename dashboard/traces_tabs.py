"""The tabs of the page Traces: each draws one view of the trace when it is open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import streamlit as st

from dashboard.computed import result_of
from dashboard.export import file_button
from dashboard.plain import plain, short
from dashboard.timeline import show, style
from dashboard.traces_links import GROUPINGS, MAX_FIND, SHOWN_KINDS, TABS
from dashboard.traces_store import PREFIX, folder_of, uploads
from dashboard.traces_table import chosen as chosen_operators
from dashboard.traces_table import operators_of, tensors_of
from tracer.convert import Report
from triosim import Scenario, Trace
from triosim.errors import TrioSimError
from triosim.export.table import to_csv
from triosim.figures import memory_figure, roofline_scatter, time_treemap
from triosim.figures.roofline import computing
from triosim.figures.text import memory_text, operator_text, share_text
from triosim.hardware import gpu_names, load_gpu
from triosim.trace import PHASES
from triosim.trace.scale import known_gpu

CHART_PX = 340  # ends above the fold at 720
TABLE_PX = 300
NUMBER, TEXT = st.column_config.NumberColumn, st.column_config.TextColumn


def tabs(chosen: str, trace: Trace) -> None:
    """Views of the trace; only the open one is built."""
    views: tuple[Callable[[str, Trace], None], ...] = (
        _operators_tab, _time_tab, _roofline_tab, _memory_tab, _tensors_tab, _source_tab,
    )  # fmt: skip
    opened = st.tabs(list(TABS), key="view", on_change="rerun", bind="query-params")
    for tab, view in zip(opened, views, strict=True):
        if tab.open:
            with tab:
                view(chosen, trace)


def _filters() -> tuple[list[str], list[str], str]:
    """Phases, kinds and a text to look for."""
    left, middle, right = st.columns([0.3, 0.35, 0.35], vertical_alignment="center")
    phases = left.pills(
        "Phase",
        PHASES,
        selection_mode="multi",
        key="phase",
        bind="query-params",
        label_visibility="collapsed",
    )
    kinds = middle.multiselect(
        "Kind",
        SHOWN_KINDS,
        key="kind",
        bind="query-params",
        placeholder="All kinds",
        label_visibility="collapsed",
    )
    text = right.text_input(
        "Find in name or module",
        key="find",
        bind="query-params",
        placeholder="Find in name or module",
        max_chars=MAX_FIND,
        icon=":material/search:",
        label_visibility="collapsed",
    )
    return list(phases or ()), list(kinds), (text or "").strip()


def _operators_tab(chosen: str, trace: Trace) -> None:
    everything = operators_of(trace)
    rows = chosen_operators(everything, *_filters())
    total_ms = float(everything["time_ms"].sum())
    st.caption(
        f"{len(rows):,} of {len(everything):,} operators, "
        f"{share_text(float(rows['time_ms'].sum()), total_ms)} of the step. A click on a column's "
        "head sorts."
    )
    st.dataframe(
        _operators_shown(rows),
        hide_index=True,
        height=TABLE_PX,
        placeholder="",
        column_config=_operator_columns(),
    )
    file_button("Operators (CSV)", "operators.csv", lambda: to_csv(rows).encode())


def _operators_shown(rows: pd.DataFrame) -> pd.DataFrame:
    """In the units of a reader; columns that say nothing are left out."""
    shown = rows.drop(columns=["dtype"]).assign(
        name=rows["name"].map(operator_text),
        time_ms=rows["time_ms"] * 1e3,
        flops=rows["flops"] / 1e9,
        bytes=rows["bytes"] / 1e6,
        flops_per_s=rows["flops_per_s"] / 1e12,
        bytes_per_s=rows["bytes_per_s"] / 1e9,
    )
    numbers = ("flops", "bytes", "flops_per_s", "bytes_per_s")
    empty = [name for name in numbers if shown[name].isna().all()]
    empty += ["module"] if not shown["module"].any() else []
    return shown.drop(columns=empty)


def _operator_columns() -> dict[str, Any]:
    return {
        "number": NUMBER("#", width=44, help="Place in the step"),
        "name": TEXT("Operator", width=170),
        "phase": TEXT("Phase", width=82),
        "module": TEXT("Module", width=140),
        "kind": TEXT("Kind", width=92),
        "time_ms": NUMBER("\u00b5s", format="%.1f", width=66, help="Time in the step"),
        "share": NUMBER("Share", format="%.1f %%", width=66, help="Of the step"),
        "flops": NUMBER(
            "GFLOP", format="%.2f", width=70, help="A multiply and its add count as two"
        ),
        "bytes": NUMBER("MB", format="%.2f", width=66, help="Read and written at least once"),
        "flops_per_s": NUMBER("TFLOP/s", format="%.1f", width=74),
        "bytes_per_s": NUMBER("GB/s", format="%.0f", width=60),
        "provenance": TEXT("Time is", width=80),
    }


def _time_tab(chosen: str, trace: Trace) -> None:
    operators = operators_of(trace)
    left, right = st.columns([0.38, 0.62], vertical_alignment="center")
    by = left.segmented_control(
        "Group by",
        GROUPINGS,
        default="kind",
        required=True,
        format_func=lambda name: {"name": "operator name"}.get(name, name),
        key="by",
        bind="query-params",
        label_visibility="collapsed",
    )
    if by == "module" and not operators["module"].any():
        right.caption("This trace does not say which module ran an operator, so here are names.")
        by = "name"
    else:
        right.caption("Areas are time. A click opens a tile, and the bar above it leads back.")
    figure = time_treemap(operators, by, style=style(), height=CHART_PX)
    show(figure, f"Time of the step by {by}", key=f"treemap_{by}")


def _roofline_tab(chosen: str, trace: Trace) -> None:
    operators = operators_of(trace)
    drawn = computing(operators)
    if drawn.empty:
        st.info(
            "A roofline needs floating-point operations and bytes, and this trace has neither "
            "columns for them nor the shapes to count them from. A recording with its execution "
            "trace has the shapes."
        )
        return
    left, right = st.columns([0.25, 0.75], vertical_alignment="center")
    own = known_gpu(trace)
    with left:
        name = st.selectbox(
            "Roof of",
            gpu_names(),
            index=None,
            key="roof",
            bind="query-params",
            placeholder=f"Roof of {own}" if own else "Roof of ... (choose a GPU)",
            label_visibility="collapsed",
        )
    gpu = load_gpu(name or own) if name or own else None
    share = share_text(float(drawn["time_ms"].sum()), float(operators["time_ms"].sum()))
    right.caption(
        f"{len(drawn):,} operators that compute, {share} of the step, each as large as its time. "
        "Under the slope memory is the limit, under the flat roof arithmetic. What only moves data "
        "is not here: see GB/s in the table."
    )
    show(
        roofline_scatter(operators, gpu, style=style(), height=CHART_PX),
        "Operators by arithmetic intensity and achieved rate",
    )


def _memory_tab(chosen: str, trace: Trace) -> None:
    try:
        result = result_of(
            Scenario(trace_dir=str(folder_of(chosen)), case=0, gpus=1, resident=True)
        )
    except TrioSimError as error:
        st.error(f"No result: {plain(str(error))}")
        return
    peak = result.peak_memory_bytes
    name = known_gpu(trace)
    of_gpu = ""
    if name and name != "cpu":
        capacity = load_gpu(name).memory_bytes
        of_gpu = f", {share_text(peak, capacity)} of the {memory_text(capacity)} of {name}"
    st.caption(
        f"The step on one GPU with everything there before it begins: peak {memory_text(peak)}"
        f"{of_gpu}. Left out: fragmentation, workspaces and what the framework keeps for itself."
    )
    figure = memory_figure(result, 0, style=style())
    # The scenario's capacity is none of this GPU's.
    figure.settings["annotations"] = []
    figure.update_layout(height=CHART_PX)
    show(figure, "Memory in use over the step")


def _tensors_tab(chosen: str, trace: Trace) -> None:
    tensors = tensors_of(trace)
    if tensors.empty:
        st.info("This trace has no tensors: it was recorded without an execution trace.")
        return
    st.caption(
        f"{len(tensors):,} tensors in the order of first use; roles follow from what reads and "
        "writes them. Numbers of operators are those of the table of operators."
    )
    st.dataframe(
        tensors.assign(
            bytes=tensors["bytes"] / 2**20,
            first=tensors["first"].map(operator_text),
            last=tensors["last"].map(operator_text),
        ),
        hide_index=True,
        height=TABLE_PX,
        column_config={
            "tensor": NUMBER("Tensor", format="%d"),
            "shape": "Shape",
            "bytes": NUMBER("Size (MiB)", format="%.3f"),
            "element_bytes": NUMBER("Bytes each", format="%d"),
            "role": "Role",
            "first_use": NUMBER("First use", format="%d"),
            "first": "by",
            "last_use": NUMBER("Last use", format="%d"),
            "last": "by ",
        },
    )
    file_button("Tensors (CSV)", "tensors.csv", lambda: to_csv(tensors).encode())


def _source_tab(chosen: str, trace: Trace) -> None:
    upload = uploads().get(chosen)
    if upload is not None:
        st.caption(
            f"Links to this trace carry the digits {upload.name.removeprefix(PREFIX)} of a digest; "
            "the files themselves stay in this session."
        )
    if upload is not None and upload.reading.report is not None:
        _report(upload.reading.report)
    facts = {key: value for key, value in trace.meta.items() if value not in (None, "")}
    if facts:
        st.markdown("**What meta.json says**")
        st.dataframe(
            pd.DataFrame({"fact": list(facts), "value": [_fact(v) for v in facts.values()]}),
            hide_index=True,
            column_config={"fact": TEXT(width=150), "value": TEXT(width="large")},
        )
    elif upload is None or upload.reading.report is None:
        st.info("This trace has no meta.json, so it does not say how it was made.")


def _fact(value: object) -> str:
    text = "; ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
    return short(text, 400)


def _report(report: Report) -> None:
    """The conversion as its command prints it, and the communication of the step."""
    st.markdown("**Conversion**")
    st.code("\n".join(short(line, 400) for line in report.lines()), language=None, wrap_lines=True)
    if report.communications:
        st.markdown("**Communication in the recorded step** (not part of the trace)")
        st.dataframe(
            pd.DataFrame(
                {
                    "collective": [one.collective for one in report.communications],
                    "name": [one.name for one in report.communications],
                    "MB": [one.bytes / 1e6 for one in report.communications],
                    "group": [one.group for one in report.communications],
                    "start (ms)": [one.start_us / 1e3 for one in report.communications],
                    "time (ms)": [one.duration_us / 1e3 for one in report.communications],
                }
            ),
            hide_index=True,
        )
