"""The sidebar of the simulation page: widgets in, settings out.

Each widget is bound to the parameter of its name in the address. A slider beside an exact number is
only a handle: the number is what counts, so every legal value has a place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.links import named, read_speeds, write_speeds
from dashboard.plain import plain
from dashboard.settings import CASE_NOTES, SETTINGS, Setting, case_title
from dashboard.traces_store import folder_of, uploads
from triosim import load_trace
from triosim.errors import ConfigError, TraceFormatError
from triosim.network.optical import mesh_factorisations
from triosim.trace.scale import known_gpu

GPU_MARKS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024, 4096, 16384)
BANDWIDTH_MARKS = (
    *(1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 25.0, 32.0, 40.0, 50.0, 65.0, 80.0, 100.0, 130.0, 150.0),
    *(200.0, 260.0, 300.0, 400.0, 450.0, 520.0, 600.0, 696.0, 800.0, 900.0, 1200.0, 1800.0),
    *(2400.0, 3600.0, 5000.0, 8000.0),
)
CONVENTIONS = {"algbw": "all-reduced bytes per second", "link": "the speed of a link"}


@dataclass
class Controls:
    """The settings that the widgets show, and the places beside them for a sentence each."""

    values: dict[str, Any] = field(default_factory=dict)
    slots: dict[str, DeltaGenerator] = field(default_factory=dict)

    def complain(self, error: ConfigError) -> None:
        """Put the sentence beside the control that caused it."""
        slot = self.slots.get("trace" if error.field == "trace_dir" else error.field)
        if slot is not None:
            slot.error(plain(named(error)))

    def put(self, name: str, widget: Callable[[Setting], Any]) -> Any:
        """Draw a setting's widget if the setting matters now."""
        setting = SETTINGS[name]
        value = widget(setting) if setting.matters(self._known()) else setting.default
        self.values[name] = value
        self.slots[name] = st.empty()
        return value

    def _known(self) -> Mapping[str, Any]:
        return {"case": SETTINGS["case"].default, "interconnect": "electrical", **self.values}


def sidebar(traces: Sequence[str]) -> Controls:
    """Draw every control that matters and return what they say."""
    controls = Controls()
    with st.sidebar:
        controls.put("trace", lambda s: _select(s, traces))
        controls.put("case", _case)
        taken_on = _gpu_of_trace(controls.values["trace"])
        controls.put("gpu", lambda s: _gpu(s, f"{taken_on or 'as traced'} (the trace's own)"))
        controls.put("gpus", lambda s: _number_with_slider(s, GPU_MARKS, step=1))
        _network(controls)
        controls.put(
            "bandwidth_gb_per_s", lambda s: _number_with_slider(s, BANDWIDTH_MARKS, step=50.0)
        )
        _batches(controls)
        controls.put("capacity_log2", _capacity)
        with st.expander("More settings"):
            _more(controls)
    return controls


def _batches(controls: Controls) -> None:
    """Empty fields show what they stand for."""
    own = _batch_of_trace(controls.values["trace"])
    batch = st.session_state.get("batch_size_sim") or st.session_state.get("batch_size") or own
    help_batch = "What each GPU runs in cases 0 to 2, and all GPUs share in cases 3 and 4."
    controls.put("batch_size_sim", lambda s: _optional(s, own, help_batch))
    controls.put("micro_batch_size", lambda s: _optional(s, batch, "Empty: the whole batch."))


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
    controls.put("interconnect", lambda s: _radio(s, s.choices))
    controls.put(
        "ptp_bandwidth_gb_per_s", lambda s: _number_with_slider(s, BANDWIDTH_MARKS, step=5.0)
    )
    controls.put("latency_us", lambda s: _number(s, step=1.0))
    controls.put("mesh_rows", lambda s: _mesh_rows(s, controls.values["gpus"]))
    controls.put("mesh_cols", lambda s: _mesh_cols(s, controls.values["gpus"]))


def _more(controls: Controls) -> None:
    """What is changed less often."""
    controls.put("resident", _toggle)
    controls.put("ptp_convention", lambda s: _radio(s, s.choices, captions=CONVENTIONS))
    controls.put("optical_gb_per_s", lambda s: _number_with_slider(s, BANDWIDTH_MARKS, step=5.0))
    controls.put("hop_latency_ns", lambda s: _number(s, step=10.0))
    controls.put("circuit_setup_ms", lambda s: _number(s, step=0.1))
    controls.put("bucket_mb", lambda s: _number(s, step=5.0))
    controls.put("accumulate", lambda s: _number(s, step=1))
    controls.put("schedule", lambda s: _radio(s, s.choices))
    controls.put("stage_cut", lambda s: _radio(s, s.choices))
    controls.put("rank_speed", lambda s: _stragglers(s, controls.values["gpus"]))
    own = _batch_of_trace(controls.values["trace"])
    controls.put("batch_size", lambda s: _optional(s, own, "Empty: what the trace says."))
    taken_on = _gpu_of_trace(controls.values["trace"])
    controls.put("trace_gpu", lambda s: _gpu(s, f"{taken_on or 'unknown'} (the trace says)"))
    controls.put("fold", _toggle)


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


def _gpu(setting: Setting, absent: str) -> str | None:
    """One of the catalogue's GPUs, or what stands for none."""
    return st.selectbox(
        setting.label,
        (None, *setting.choices),
        key=setting.name,
        format_func=lambda name: name or absent,
        bind="query-params",
    )


def _radio(
    setting: Setting, options: Sequence[str], captions: Mapping[str, str] | None = None
) -> str:
    return st.radio(
        setting.label,
        options,
        index=list(options).index(setting.default),
        captions=None if captions is None else [captions[option] for option in options],
        horizontal=captions is None,
        key=setting.name,
        bind="query-params",
    )


def _toggle(setting: Setting) -> bool:
    return st.toggle(setting.label, value=setting.default, key=setting.name, bind="query-params")


def _slider(setting: Setting) -> int:
    value: int = st.slider(
        setting.label,
        int(setting.low),
        int(setting.high),
        setting.default,
        key=setting.name,
        bind="query-params",
    )
    return value


def _case(setting: Setting) -> int:
    case = _slider(setting)
    st.caption(f"**{case_title(case).capitalize()}**: {CASE_NOTES[case]}.")
    return case


def _number(setting: Setting, *, step: float, collapsed: bool = False) -> Any:
    whole = setting.kind == "whole"
    kind = int if whole else float
    return st.number_input(
        f"{setting.plain_label}, exact" if collapsed else setting.label,
        kind(setting.low),
        kind(setting.high),
        setting.default,
        step=kind(step),
        format="%d" if whole else "%g",
        key=setting.name,
        label_visibility="collapsed" if collapsed else "visible",
        bind="query-params",
    )


def _optional(setting: Setting, absent: int | None, help_text: str) -> int | None:
    return st.number_input(
        setting.label,
        int(setting.low),
        int(setting.high),
        None,
        step=1,
        key=setting.name,
        placeholder="" if absent is None else str(absent),
        help=help_text,
        bind="query-params",
    )


def _number_with_slider(setting: Setting, marks: Sequence[float], *, step: float) -> Any:
    with st.container(key=f"pair_{setting.name}"):
        left, right = st.columns([0.66, 0.34], vertical_alignment="bottom", wrap=False)
    with right:
        value = _number(setting, step=step, collapsed=True)
    with left:
        _handle(setting.label, sorted({*marks, value}), value, setting.name)
    return value


def _handle(label: str, options: Sequence[float], value: float, target: str) -> None:
    """A slider that shows the value of another widget and sets it when moved."""
    key = f"{target}_slider"
    # Written only when it differs: writing in every run would pull a slider back under the hand.
    if st.session_state.get(key) != value:
        st.session_state[key] = value
    st.select_slider(
        label,
        options,
        key=key,
        format_func=lambda option: f"{option:.15g}",
        on_change=_follow,
        args=(target, key),
    )


def _follow(target: str, key: str) -> None:
    st.session_state[target] = st.session_state[key]


def _mesh_rows(setting: Setting, gpus: int) -> int:
    sizes = _mesh_sizes(gpus)
    rows = st.session_state.get(setting.name, setting.default)
    if rows not in sizes:
        st.session_state[setting.name] = max(size for size in sizes if size <= rows)
    if gpus == 1:
        return 1
    return st.select_slider(setting.label, sizes, key=setting.name, bind="query-params")


def _mesh_cols(setting: Setting, gpus: int) -> int:
    cols = gpus // st.session_state.get("mesh_rows", 1)
    if gpus > 1:
        key = f"{setting.name}_slider"
        if st.session_state.get(key) != cols:
            st.session_state[key] = cols
        st.select_slider(
            setting.label, _mesh_sizes(gpus), key=key, on_change=_turn_mesh, args=(key, gpus)
        )
    return cols


def _mesh_sizes(gpus: int) -> list[int]:
    """The rows (and the columns) that a mesh of all GPUs can have."""
    return [rows for rows, _ in mesh_factorisations(gpus)]


def _turn_mesh(key: str, gpus: int) -> None:
    st.session_state["mesh_rows"] = gpus // st.session_state[key]


def _capacity(setting: Setting) -> int:
    power = _slider(setting)
    st.caption(f"2^{power} bytes = {_binary(power)}")
    return power


def _binary(power: int) -> str:
    units = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
    return f"{2 ** (power % 10):,} {units[power // 10]}"


def _stragglers(setting: Setting, gpus: int) -> str | None:
    """Any GPUs as text; rank and speed of the first one as handles, which follow the text."""
    text = st.text_input(
        setting.label,
        None,
        key=setting.name,
        placeholder="none; 3=0.5 is half speed",
        bind="query-params",
        max_chars=2000,
    )
    try:
        speeds = read_speeds(text or "").items()
        first = next(((rank, speed) for rank, speed in speeds if rank in range(gpus)), None)
    except ConfigError:
        first = None
    _straggler_handles(first, gpus, setting.name)
    return text


def _straggler_handles(first: tuple[int, float] | None, gpus: int, target: str) -> None:
    keys = "slow_rank", "slow_speed"
    shown = (None, 1.0) if first is None else first
    for key, value in zip(keys, shown, strict=True):
        if st.session_state.get(key) != value:
            st.session_state[key] = value
    left, right = st.columns([0.4, 0.6])
    left.number_input(
        "Slow GPU",
        0,
        gpus - 1,
        None,
        step=1,
        key=keys[0],
        placeholder="none",
        on_change=_set_straggler,
        args=(target,),
    )
    right.select_slider(
        "Its speed",
        sorted({*(round(0.1 * i, 1) for i in range(1, 11)), shown[1]}),
        key=keys[1],
        on_change=_set_straggler,
        args=(target,),
    )


def _set_straggler(target: str) -> None:
    """Change the first slow GPU; the others stay. Full speed takes it out."""
    rank, speed = st.session_state["slow_rank"], st.session_state["slow_speed"]
    try:
        speeds = read_speeds(st.session_state.get(target) or "")
    except ConfigError:
        speeds = {}
    first = next(iter(speeds), None)
    speeds.pop(first, None)
    if rank is None and first is None and speed < 1:
        rank = 0
    if rank is not None and (speed < 1 or rank != first):
        speeds = {rank: 0.5 if speed == 1 else speed, **speeds}
    st.session_state[target] = write_speeds(speeds) or None
