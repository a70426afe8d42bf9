"""A training step's timeline at three depths: stages, the layers of a pass, the kernels of a layer.

Up to `MAX_BARS` intervals are bars; more become a raster of what each stretch mostly holds, whose
cost does not grow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from triosim.engine.program import COMPUTE_PHASES
from triosim.explain import Inside, PathStep, explain
from triosim.figures.critical import draw_path
from triosim.figures.figure import Figure, Trace, bar_trace
from triosim.figures.gantt import Window, draw_cells
from triosim.figures.gantt_bars import NOT_CLICKED
from triosim.figures.lanes import Lane, Lanes, choose_lanes
from triosim.figures.palette import CLASS_COLOURS, text_on, translucent
from triosim.figures.style import (
    DEFAULT_STYLE,
    Style,
    finish,
    lines_of,
    row_axis,
    rows_height,
    value_axis,
)
from triosim.figures.targets import draw_targets
from triosim.figures.text import MIDDLE_DOT, bytes_text, safe, time_text, words
from triosim.figures.train_colours import roomy_legend, step_colour
from triosim.train import TrainResult

MAX_BARS = 2000
GAP_OPACITY = (0.22, 0.42)
# Names written on bars: a chart's width and a letter's, in pixels.
WIDTH_PX, LETTER_PX = 950, 0.58
HOVER = (
    "<b>%{customdata[0]}</b><br>%{y}<br>%{customdata[1]} from %{customdata[2]}"
    "%{customdata[3]}<extra></extra>"
)
# What a bar carries for hovers and clicks, in this order: see `Bar`.
CUSTOM_DATA = ("name", "duration", "start", "more", "task", "span", "rank", "wait")


@dataclass(frozen=True, slots=True)
class Bar:
    """One interval: times in milliseconds; `task` is -1 where it opens to nothing.

    `span` is the task that it is (in a pass its row in the unit's table), `wait` the position of a
    gap in what explains the timeline; -1 for the other of the two.
    """

    lane: str
    kind: str
    name: str
    start_ms: float
    end_ms: float
    more: str = ""
    task: int = -1
    span: int = -1
    rank: int = -1
    wait: int = -1

    @property
    def gap(self) -> bool:
        return self.wait >= 0


def stage_lanes(result: TrainResult, *, streams: bool) -> Lanes:
    """The compute stream of each group of equal ranks, or all their streams."""
    lanes = choose_lanes(result, [group.rank for group in result.classes])
    kept = [lane for lane in lanes.lanes if streams or lane.compute]
    return Lanes([_named(result, lane) for lane in kept], lanes.note)


def _named(result: TrainResult, lane: Lane) -> Lane:
    group = result.classes[lane.rank_class]
    stream = result.tasks.program.streams[lane.stream].name
    where = f"stage {group.stage}" if result.plan.stages > 1 else ""
    peers = [c for c in result.classes if c.stage == group.stage]
    where += f" GPU {group.rank}" if len(peers) > 1 else ""
    label = f"{where} {MIDDLE_DOT} {stream}".removeprefix(f" {MIDDLE_DOT} ").strip()
    return Lane(lane.rank, lane.rank_class, lane.stream, label, lane.compute)


def step_timeline(
    result: TrainResult,
    window_ms: Window,
    *,
    streams: bool = True,
    path: Sequence[PathStep] = (),
    style: Style = DEFAULT_STYLE,
) -> Figure:
    """The whole step or a window of it; what a bar carries for clicks is `CUSTOM_DATA`.

    `path` is drawn over it: the critical path of `explain`.
    """
    lanes = stage_lanes(result, streams=streams)
    bars = [*_tasks(result, lanes, window_ms), *_gaps(result, lanes, window_ms)]
    notes = lines_of(lanes.note)
    if len(bars) > MAX_BARS:
        figure = Figure()
        draw_cells(figure, result, lanes, window_ms)
        number = {label: i for i, label in enumerate(lanes.labels)}
        row = np.array([number[bar.lane] for bar in bars])
        start, end = (
            np.array([getattr(bar, name) for bar in bars]) for name in ("start_ms", "end_ms")
        )
        draw_targets(
            figure, lanes.labels, (row, start, end), window_ms, lambda i: _custom(bars[i]),
            HOVER, style,
        )  # fmt: skip
        notes += lines_of(
            f"more than {MAX_BARS:,} intervals: each stretch shows what it mostly holds, and a "
            "click explains it; choose a shorter window to see single passes"
        )
    else:
        figure = _bars(bars, window_ms, style)
    _dress(figure, lanes.labels, window_ms, notes, style)
    draw_path(figure, result, path, lanes, window_ms, style)
    return figure


def pass_timeline(
    inside: pd.DataFrame,
    *,
    unit: str | None = None,
    gaps: Inside | None = None,
    style: Style = DEFAULT_STYLE,
) -> Figure:
    """What `TrainResult.inside` says of one pass: its layers, or the kernels of one layer.

    Layers are drawn where `unit` is None; times count from the start of the pass. `gaps` are those
    of the unit.
    """
    shown = inside if unit is None else inside[inside["unit"] == unit]
    labels = list(dict.fromkeys(shown["stream"]))
    labels.sort(key=lambda name: ("compute", "launch").index(name) if name in _FIRST else 2)
    if unit is None:
        bars = [_layer(str(name), frame) for name, frame in shown.groupby("unit", sort=False)]
        labels = ["layers"]
    else:
        columns = ("stream", "phase", "name", "start_ms", "end_ms")
        rows = zip(*(shown[name] for name in columns), strict=True)
        bars = [
            Bar(stream, phase, name, start_ms, end_ms, span=number)
            for number, (stream, phase, name, start_ms, end_ms) in enumerate(rows)
        ]
        bars += [] if gaps is None else _gaps_inside(gaps)
    low = min((bar.start_ms for bar in bars), default=0.0)
    high = max((bar.end_ms for bar in bars), default=1.0)
    notes: list[str] = []
    if len(bars) > MAX_BARS:
        bars = sorted(bars, key=lambda bar: bar.start_ms - bar.end_ms)[:MAX_BARS]
        notes = [f"the longest {MAX_BARS:,} kernels"]
    return _dress(_bars(bars, (low, high), style), labels, (low, high), notes, style)


_FIRST = ("compute", "launch")


def _layer(name: str, frame: pd.DataFrame) -> Bar:
    own = frame[frame["stream"] != "launch"]
    kinds = own.assign(ms=own["end_ms"] - own["start_ms"]).groupby("phase")["ms"].sum()
    kind = str(kinds.idxmax()) if len(kinds) else "launch"
    return Bar("layers", kind, name, own["start_ms"].min(), own["end_ms"].max())


def _gaps_inside(inside: Inside) -> list[Bar]:
    """The gaps between the kernels of one unit of a pass."""
    shift_s = inside.offset_s - inside.begin_s
    return [
        Bar(
            lane="compute",
            kind=wait.kind,
            name=f"{words(wait.kind)}: {inside.reason(wait)}",
            start_ms=(wait.start_s + shift_s) * 1e3,
            end_ms=(wait.end_s + shift_s) * 1e3,
            wait=number,
        )
        for number, wait in enumerate(inside.waits)
    ]


def _tasks(result: TrainResult, lanes: Lanes, window: Window) -> list[Bar]:
    program, timeline = result.tasks.program, result.tasks
    start, end = timeline.start_s * 1e3, timeline.end_s * 1e3
    seen = np.flatnonzero((start < window[1]) & (end > window[0]) & (end > start))
    by_stream = {lane.stream: lane for lane in lanes.lanes}
    return [
        Bar(
            lane=by_stream[program.stream[t]].label,
            kind=program.phase[t],
            name=program.name[t],
            start_ms=float(start[t]),
            end_ms=float(end[t]),
            more=f"<br>{bytes_text(program.bytes[t])}" if program.bytes[t] > 0 else "",
            task=t if t in result.writer.made else -1,
            span=t,
            rank=by_stream[program.stream[t]].rank,
        )
        for t in seen.tolist()
        if program.stream[t] in by_stream
    ]


def _gaps(result: TrainResult, lanes: Lanes, window: Window) -> list[Bar]:
    """The gaps of the compute streams; waits inside of a pass show where it is opened."""
    found = explain(result)
    return [
        Bar(
            lane=lane.label,
            kind=wait.kind,
            name=f"{words(wait.kind)}: {found.reason(wait)}",
            start_ms=wait.start_s * 1e3,
            end_ms=wait.end_s * 1e3,
            rank=lane.rank,
            wait=number,
        )
        for lane in lanes.lanes
        if lane.compute
        for number, wait in enumerate(found.gaps(lane.rank))
        if wait.inside < 0 and wait.start_s * 1e3 < window[1] and wait.end_s * 1e3 > window[0]
    ]


def _bars(bars: Sequence[Bar], window: Window, style: Style) -> Figure:
    figure = Figure()
    for gap in (False, True):
        kinds = dict.fromkeys(bar.kind for bar in bars if bar.gap == gap)
        for kind in kinds:
            own = [bar for bar in bars if bar.kind == kind and bar.gap == gap]
            figure.add_trace(_trace(kind, own, window, style, gap=gap))
    return figure


def _trace(kind: str, bars: Sequence[Bar], window: Window, style: Style, *, gap: bool) -> Trace:
    clipped = [(max(b.start_ms, window[0]), min(b.end_ms, window[1])) for b in bars]
    colour = step_colour(kind)
    fill = translucent(CLASS_COLOURS[kind], GAP_OPACITY[style.dark]) if gap else colour
    letters = WIDTH_PX / ((window[1] - window[0]) or 1.0) / (LETTER_PX * style.small)
    return bar_trace(
        orientation="h",
        name=words(kind),
        meta="gap" if gap else kind,
        y=[bar.lane for bar in bars],
        base=[round(low, 6) for low, _ in clipped],
        x=[round(high - low, 6) for low, high in clipped],
        customdata=[_custom(bar) for bar in bars],
        hovertemplate=HOVER,
        # Launches and transfers are often thinner than a pixel: an edge keeps them in sight.
        marker={
            "color": fill,
            "line": {
                "width": 0 if gap else 0.6,
                "color": style.surface if kind in COMPUTE_PHASES else colour,
            },
        },
        unselected=NOT_CLICKED,
        text=[
            safe(bar.name) if not gap and len(bar.name) < letters * (high - low) else ""
            for bar, (low, high) in zip(bars, clipped, strict=True)
        ],
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        constraintext="inside",
        insidetextfont={"color": style.text if gap else text_on(colour), "size": style.small},
    )


def _custom(bar: Bar) -> tuple[Any, ...]:
    duration, start = time_text(bar.end_ms - bar.start_ms), time_text(bar.start_ms)
    return safe(bar.name), duration, start, bar.more, bar.task, bar.span, bar.rank, bar.wait


def _dress(
    figure: Figure, labels: list[str], window: Window, notes: list[str], style: Style
) -> Figure:
    title = "<br>".join(["time (ms)", *(f"<i>{note}</i>" for note in notes)])
    low, high = window
    figure.update_layout(
        xaxis=value_axis(style, title, range=[low, high if high > low else low + 1.0]),
        yaxis=row_axis(style, labels),
        barmode="overlay",
        bargap=0.12,
        dragmode="zoom",
        uniformtext={"minsize": style.small - 1, "mode": "hide"},
    )
    height = rows_height(len(labels), style, extra=5.5 + len(notes))
    finish(figure, style, height=height, revision=f"train-{len(labels)}")
    return roomy_legend(figure, style)
