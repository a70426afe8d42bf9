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
import plotly.graph_objects as go

from triosim.engine.program import COMPUTE_PHASES
from triosim.figures.lanes import Lane, Lanes, choose_lanes
from triosim.figures.palette import CLASS_COLOURS, text_on, translucent
from triosim.figures.raster import bins_for, dominant, phase_times
from triosim.figures.style import (
    CLEAR,
    DEFAULT_STYLE,
    Style,
    finish,
    legend_entry,
    lines_of,
    row_axis,
    rows_height,
    value_axis,
)
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
Window = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Bar:
    """One interval: times in milliseconds; `task` is -1 where it opens to nothing."""

    lane: str
    kind: str
    name: str
    start_ms: float
    end_ms: float
    more: str = ""
    task: int = -1
    gap: bool = False


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
    style: Style = DEFAULT_STYLE,
) -> go.Figure:
    """The whole step or a window of it; bars of passes carry their task as third custom value."""
    lanes = stage_lanes(result, streams=streams)
    bars = [*_tasks(result, lanes, window_ms), *_gaps(result, lanes, window_ms)]
    notes = lines_of(lanes.note)
    if len(bars) > MAX_BARS:
        figure = go.Figure()
        _raster(figure, result, lanes, window_ms)
        notes += lines_of(
            f"more than {MAX_BARS:,} intervals: each stretch shows what it mostly holds; choose a "
            "shorter window to see single passes"
        )
    else:
        figure = _bars(bars, window_ms, style)
    return _dress(figure, lanes.labels, window_ms, notes, style)


def pass_timeline(
    inside: pd.DataFrame, *, unit: str | None = None, style: Style = DEFAULT_STYLE
) -> go.Figure:
    """What `TrainResult.inside` says of one pass: its layers, or the kernels of one layer.

    Layers are drawn where `unit` is None; times count from the start of the pass.
    """
    shown = inside if unit is None else inside[inside["unit"] == unit]
    labels = list(dict.fromkeys(shown["stream"]))
    labels.sort(key=lambda name: ("compute", "launch").index(name) if name in _FIRST else 2)
    if unit is None:
        bars = [_layer(str(name), frame) for name, frame in shown.groupby("unit", sort=False)]
        labels = ["layers"]
    else:
        columns = ("stream", "phase", "name", "start_ms", "end_ms")
        bars = [Bar(*row) for row in zip(*(shown[name] for name in columns), strict=True)]
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


def _tasks(result: TrainResult, lanes: Lanes, window: Window) -> list[Bar]:
    program, timeline = result.tasks.program, result.tasks
    start, end = timeline.start_s * 1e3, timeline.end_s * 1e3
    seen = np.flatnonzero((start < window[1]) & (end > window[0]) & (end > start))
    label = {lane.stream: lane.label for lane in lanes.lanes}
    return [
        Bar(
            lane=label[program.stream[t]],
            kind=program.phase[t],
            name=program.name[t],
            start_ms=float(start[t]),
            end_ms=float(end[t]),
            more=f"<br>{bytes_text(program.bytes[t])}" if program.bytes[t] > 0 else "",
            task=t if t in result.writer.made else -1,
        )
        for t in seen.tolist()
        if program.stream[t] in label
    ]


def _gaps(result: TrainResult, lanes: Lanes, window: Window) -> list[Bar]:
    return [
        Bar(lane.label, gap.kind, f"{words(gap.kind)}", gap.start_s * 1e3, gap.end_s * 1e3,
            gap=True)
        for lane in lanes.lanes
        if lane.compute
        for gap in result.breakdowns[lane.rank_class].gaps
        if gap.start_s * 1e3 < window[1] and gap.end_s * 1e3 > window[0]
    ]  # fmt: skip


def _bars(bars: Sequence[Bar], window: Window, style: Style) -> go.Figure:
    figure = go.Figure()
    for gap in (False, True):
        kinds = dict.fromkeys(bar.kind for bar in bars if bar.gap == gap)
        for kind in kinds:
            own = [bar for bar in bars if bar.kind == kind and bar.gap == gap]
            figure.add_trace(_trace(kind, own, window, style, gap=gap))
    return figure


def _trace(kind: str, bars: Sequence[Bar], window: Window, style: Style, *, gap: bool) -> go.Bar:
    clipped = [(max(b.start_ms, window[0]), min(b.end_ms, window[1])) for b in bars]
    colour = step_colour(kind)
    fill = translucent(CLASS_COLOURS[kind], GAP_OPACITY[style.dark]) if gap else colour
    letters = WIDTH_PX / ((window[1] - window[0]) or 1.0) / (LETTER_PX * style.small)
    return go.Bar(
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
    return safe(bar.name), duration, start, bar.more, bar.task


def _raster(figure: go.Figure, result: TrainResult, lanes: Lanes, window: Window) -> None:
    phases = sorted(set(result.tasks.program.phase))
    bins = bins_for(len(lanes.lanes))
    streams = [lane.stream for lane in lanes.lanes]
    seconds = (window[0] / 1e3, window[1] / 1e3)
    codes = dominant(phase_times(result.tasks, streams, phases, bins, seconds))
    colours = [CLEAR, *map(step_colour, phases)]
    width = (window[1] - window[0]) / bins
    figure.add_trace(
        go.Heatmap(
            z=(codes + 1).astype(np.int8),
            zmin=-0.5,
            zmax=len(phases) + 0.5,
            x0=window[0] + width / 2,
            dx=width,
            y=lanes.labels,
            hovertemplate="<b>%{y}</b><br>%{hovertext} at %{x:.4~f} ms<extra></extra>",
            colorscale=[
                ((i + edge) / len(colours), colour)
                for i, colour in enumerate(colours)
                for edge in (0, 1)
            ],
            showscale=False,
            ygap=2 if len(lanes.lanes) <= 100 else 0,
        )
    )
    figure.data[0].hovertext = np.array(["idle", *phases])[codes + 1]
    for code in np.unique(codes[codes >= 0]).tolist():
        figure.add_trace(legend_entry(words(phases[code]), step_colour(phases[code])))


def _dress(
    figure: go.Figure, labels: list[str], window: Window, notes: list[str], style: Style
) -> go.Figure:
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
