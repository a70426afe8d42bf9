"""The sidebar of the simulation page: widgets in, settings out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from dashboard.described import description_field
from dashboard.echo import is_echo, set_widget
from dashboard.folded import folded
from dashboard.imperfections import IMPERFECTIONS, imperfections
from dashboard.plain import plain
from dashboard.settings import CASE_NOTES, DESCRIBED, SETTINGS, Setting, case_title, on_machine
from dashboard.topologies import NAMES, about
from dashboard.traces_store import folder_of, uploads
from dashboard.widgets import (
    Controls,
    named,
    number,
    number_with_slider,
    optional,
    radio,
    slider,
    toggle,
)
from triosim import load_trace
from triosim.errors import TraceFormatError
from triosim.network.collectives.planned import AUTO
from triosim.network.optical import mesh_factorisations
from triosim.trace.scale import known_gpu

GPU_MARKS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024, 4096, 16384)
BANDWIDTH_MARKS = (
    *(1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 25.0, 32.0, 40.0, 50.0, 65.0, 80.0, 100.0, 130.0, 150.0),
    *(200.0, 260.0, 300.0, 400.0, 450.0, 520.0, 600.0, 696.0, 800.0, 900.0, 1200.0, 1800.0),
    *(2400.0, 3600.0, 5000.0, 8000.0),
)
MORE = (
    "resident", "algorithm", "protocol", "ptp_convention", "optical_gb_per_s", "hop_latency_ns",
    "circuit_setup_ms", "circuit_teardown_ms", "wavelengths", "bucket_mb", "accumulate",
    "schedule", "stage_cut", "batch_size", "trace_gpu", "fold",
)  # fmt: skip
CONVENTIONS = {"algbw": "all-reduced bytes per second", "link": "the speed of a link"}


def sidebar(traces: Sequence[str]) -> Controls:
    """Draw every control that matters and return what they say."""
    controls = Controls()
    if "late_move" in st.session_state:
        target, moved = st.session_state.pop("late_move")
        st.session_state[target] = moved
    with st.sidebar:
        controls.put("trace", lambda s: _select(s, traces))
        controls.put("case", _case)
        taken_on = _gpu_of_trace(controls.values["trace"])
        said = f"The trace says: {taken_on or 'nothing'}."
        controls.put("gpu", lambda s: named(s, s.choices, "as traced", help=said))
        controls.put("gpus", lambda s: number_with_slider(s, GPU_MARKS, step=1))
        _network(controls)
        controls.put(
            "bandwidth_gb_per_s", lambda s: number_with_slider(s, BANDWIDTH_MARKS, step=50.0)
        )
        _batches(controls)
        controls.put("capacity_log2", _capacity)
        _folded(controls, "Imperfections", IMPERFECTIONS, imperfections)
        _folded(controls, "More settings", MORE, _more)
    controls.values = dict(controls.known)
    return controls


def _folded(
    controls: Controls, label: str, names: Sequence[str], draw: Callable[[Controls], None]
) -> None:
    """A group of those that are not drawn above it: the algorithm is, beside a network."""
    settings = [SETTINGS[name] for name in names if name not in controls.values]
    folded(label, settings, lambda: draw(controls))


def _batches(controls: Controls) -> None:
    """Empty fields show what they stand for."""
    own = _batch_of_trace(controls.values["trace"])
    help_batch = "What each GPU runs in cases 0 to 2, and all GPUs share in cases 3 and 4."
    chosen = controls.put("batch_size_sim", lambda s: optional(s, own, help_batch))
    batch = chosen or st.session_state.get("batch_size") or own
    controls.put("micro_batch_size", lambda s: optional(s, batch, "Empty: the whole batch."))


def _batch_of_trace(name: str) -> int | None:
    """None where the trace cannot be read, which the simulation will say."""
    try:
        return load_trace(folder_of(name)).batch_size
    except TraceFormatError:
        return None


def _gpu_of_trace(name: str) -> str | None:
    try:
        return known_gpu(load_trace(folder_of(name)))
    except TraceFormatError:
        return None


def _network(controls: Controls) -> None:
    """Between GPUs: an electrical network or circuits over a mesh."""
    controls.put("interconnect", lambda s: radio(s, s.choices))
    topology = controls.put("topology", _topology)
    controls.put("own_network", lambda s: description_field(s.name))
    if topology is not None:
        controls.put("algorithm", lambda s: _algorithm(s, topology))
    controls.put(
        "ptp_bandwidth_gb_per_s", lambda s: number_with_slider(s, BANDWIDTH_MARKS, step=5.0)
    )
    controls.put("latency_us", lambda s: number(s, step=1.0))
    controls.put("mesh_rows", lambda s: _mesh_rows(s, controls.values["gpus"]))
    controls.put(
        "mesh_cols", lambda s: _mesh_cols(s, controls.values["gpus"], controls.values["mesh_rows"])
    )


def _topology(setting: Setting) -> str | None:
    # What was typed before is one of the options, as a browser's list has it.
    now = st.session_state.get(setting.name) or st.query_params.get(setting.name)
    names = (*NAMES, DESCRIBED)
    typed = named(
        setting,
        [*names, now] if now and now not in names else names,
        "TrioSim's: a ring, or a chain",
        accept_new_options=True,
        help="Choose a name, or type one with sizes: torus:4x8, leaf-spine:16x2. "
        f"{DESCRIBED.capitalize()}: a network of your own, as the page Network has it.",
    )
    if typed is None:
        return None
    name = typed.strip().casefold()
    said = about(name)
    if said:
        own = " Its own links count, so there is no bandwidth to set."
        st.caption(
            plain(f"{said[0].upper()}{said[1:]}.") + (own if on_machine({"topology": name}) else "")
        )
    return name


def _algorithm(setting: Setting, topology: str | None) -> str | None:
    """What stands for nothing chosen needs no second entry."""
    implied = "ring" if topology is None else AUTO
    if st.session_state.get(setting.name) == implied:
        st.session_state[setting.name] = ""
    usual = "TrioSim's ring, else the cheapest"
    return named(setting, [name for name in setting.choices if name != implied], usual)


def _more(controls: Controls) -> None:
    """What is changed less often."""
    controls.put("resident", toggle)
    if controls.values["topology"] is None:
        controls.put("algorithm", lambda s: _algorithm(s, None))
    controls.put("protocol", toggle)
    controls.put("ptp_convention", lambda s: radio(s, s.choices, captions=CONVENTIONS))
    controls.put("optical_gb_per_s", lambda s: number_with_slider(s, BANDWIDTH_MARKS, step=5.0))
    controls.put("hop_latency_ns", lambda s: number(s, step=10.0))
    controls.put("circuit_setup_ms", lambda s: number(s, step=0.1))
    controls.put("circuit_teardown_ms", lambda s: number(s, step=0.1))
    controls.put("wavelengths", lambda s: number(s, step=1, placeholder="any number"))
    controls.put("bucket_mb", lambda s: number(s, step=5.0))
    controls.put("accumulate", lambda s: number(s, step=1))
    controls.put("schedule", lambda s: radio(s, s.choices))
    controls.put("stage_cut", lambda s: radio(s, s.choices))
    own = _batch_of_trace(controls.values["trace"])
    controls.put("batch_size", lambda s: optional(s, own, "Empty: what the trace says."))
    said = f"The trace says: {_gpu_of_trace(controls.values['trace']) or 'nothing'}."
    controls.put("trace_gpu", lambda s: named(s, s.choices, "as the trace says", help=said))
    controls.put("fold", toggle)


def _select(setting: Setting, options: Sequence[str]) -> str:
    chosen = st.selectbox(
        setting.label,
        options,
        index=list(options).index(setting.default) if setting.default in options else 0,
        key=setting.name,
        bind="query-params",
    )
    if chosen in uploads():
        st.caption(f"Yours: {plain(uploads()[chosen].label)}")
    return chosen


def _case(setting: Setting) -> int:
    case = slider(setting)
    st.caption(f"**{case_title(case).capitalize()}**: {CASE_NOTES[case]}.")
    return case


def _mesh_rows(setting: Setting, gpus: int) -> int:
    sizes = _mesh_sizes(gpus)
    rows = st.session_state.get(setting.name, setting.default)
    if rows not in sizes:
        st.session_state[setting.name] = max(size for size in sizes if size <= rows)
    if gpus == 1:
        return 1
    return st.select_slider(setting.label, sizes, key=setting.name, bind="query-params")


def _mesh_cols(setting: Setting, gpus: int, rows: int) -> int:
    cols = gpus // rows
    if gpus > 1:
        key = f"{setting.name}_slider"
        if st.session_state.get(key) != cols:
            set_widget(key, cols)
        st.select_slider(
            setting.label, _mesh_sizes(gpus), cols, key=key, on_change=_turn_mesh, args=(key, gpus)
        )
    return cols


def _mesh_sizes(gpus: int) -> list[int]:
    """The rows (and the columns) that a mesh of all GPUs can have."""
    return [rows for rows, _ in mesh_factorisations(gpus)]


def _turn_mesh(key: str, gpus: int) -> None:
    if not is_echo(key):
        st.session_state["mesh_rows"] = gpus // st.session_state[key]


def _capacity(setting: Setting) -> int:
    power = slider(setting)
    st.caption(f"2^{power} bytes = {_binary(power)}")
    return power


def _binary(power: int) -> str:
    units = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
    return f"{2 ** (power % 10):,} {units[power // 10]}"
