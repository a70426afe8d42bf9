"""The timeline at a glance: what each stream mostly does in each of many short stretches.

A picture of fixed cost, whatever the number of spans.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from triosim.engine.program import COMPUTE_PHASES, TRANSFER_PHASES
from triosim.figures.figure import Figure, heatmap_trace
from triosim.figures.lanes import Lanes, choose_lanes
from triosim.figures.palette import translucent
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
    say_nothing_to_show,
    value_axis,
)
from triosim.figures.text import words
from triosim.figures.train_colours import step_colour
from triosim.result import Result

PHASES = COMPUTE_PHASES + TRANSFER_PHASES
Window = tuple[float, float]
MAX_SEPARATORS = 64


def gantt_overview(
    result: Result,
    ranks: Iterable[int],
    *,
    window_ms: Window | None = None,
    style: Style = DEFAULT_STYLE,
) -> Figure:
    """The whole step of the chosen ranks; `window_ms` marks the part that is shown in detail.

    Dragging over it selects a range of time.
    """
    whole_ms = makespan_ms(result)
    figure = raster_figure(result, choose_lanes(result, ranks), (0.0, whole_ms), style)
    if window_ms is not None and whole_ms > 0:
        _mark(figure, clip_window(window_ms, whole_ms), whole_ms, style)
    figure.update_layout(dragmode="select", selectdirection="h", uirevision="gantt-overview")
    return figure


def makespan_ms(result: Result) -> float:
    """How long a timeline is: of steps that overlap, longer than the step."""
    return result.tasks.total_s * 1e3


def phases_in(result: Result) -> tuple[str, ...]:
    """The phases that a timeline may show: a trace's, and whatever else it has."""
    more = set(result.tasks.program.phase).difference(PHASES)
    return (*PHASES, *sorted(more))


def clip_window(window_ms: Window, total_ms: float) -> Window:
    """The part of the window inside the step; the whole step where that is empty."""
    low, high = max(0.0, min(window_ms)), min(total_ms, max(window_ms))
    return (low, high) if high > low else (0.0, total_ms)


def raster_figure(
    result: Result, lanes: Lanes, window_ms: Window, style: Style, note: str = ""
) -> Figure:
    """The heatmap of a window of time."""
    figure = Figure()
    if makespan_ms(result) > 0 and lanes.lanes:
        draw_cells(figure, result, lanes, window_ms)
    notes = [line for text in (note, lanes.note) for line in lines_of(text)]
    set_axes(figure, style, lanes, window_ms, notes)
    finish(
        figure,
        style,
        height=rows_height(len(lanes.lanes), style, extra=5.5 + len(notes)),
        revision="gantt-raster",
    )
    if makespan_ms(result) == 0:
        say_nothing_to_show(figure, style, "This step takes no time.")
    return figure


def set_axes(
    figure: Figure, style: Style, lanes: Lanes, window_ms: Window, notes: list[str]
) -> None:
    """Time along x in milliseconds, with remarks under its title; lanes along y."""
    title = "<br>".join(["time (ms)", *(f"<i>{note}</i>" for note in notes)])
    low, high = window_ms
    figure.update_layout(
        xaxis=value_axis(style, title, range=[low, high if high > low else low + 1.0]),
        yaxis=row_axis(style, lanes.labels),
        shapes=_separators(lanes, style),
    )


def _separators(lanes: Lanes, style: Style) -> list[dict[str, Any]]:
    """A thin line between one GPU's lanes and the next one's."""
    ranks = [lane.rank for lane in lanes.lanes]
    starts = [i for i in range(1, len(ranks)) if ranks[i] != ranks[i - 1]]
    if len(starts) > MAX_SEPARATORS or len(starts) == len(ranks) - 1:
        return []
    line = {"color": style.muted, "width": 0.6}
    at = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "yref": "y", "layer": "below"}
    return [{**at, "y0": i - 0.5, "y1": i - 0.5, "line": line} for i in starts]


def draw_cells(figure: Figure, result: Result, lanes: Lanes, window_ms: Window) -> None:
    """A heatmap of what each lane mostly does, with an entry in the legend for each phase seen."""
    phases = phases_in(result)
    bins = bins_for(len(lanes.lanes))
    low_s, high_s = window_ms[0] / 1e3, window_ms[1] / 1e3
    # Ranks of a class share their streams, so each stream is rasterised once.
    streams = sorted({lane.stream for lane in lanes.lanes})
    row = {stream: i for i, stream in enumerate(streams)}
    times = phase_times(result.tasks, streams, phases, bins, (low_s, high_s))
    codes = dominant(times)[[row[lane.stream] for lane in lanes.lanes]]
    width = (window_ms[1] - window_ms[0]) / bins
    figure.add_trace(
        heatmap_trace(
            # One byte a cell: 0 is idle and drawn as nothing.
            z=(codes + 1).astype(np.int8),
            zmin=-0.5,
            zmax=len(phases) + 0.5,
            x0=window_ms[0] + width / 2,
            dx=width,
            y=lanes.labels,
            hovertext=np.array(["idle", *phases])[codes + 1],
            hovertemplate="<b>%{y}</b><br>%{hovertext} at %{x:.4~f} ms<extra></extra>",
            colorscale=_colour_steps(phases),
            showscale=False,
            ygap=2 if len(lanes.lanes) <= 100 else 0,
        )
    )
    seen = set(np.unique(codes).tolist())
    for code, phase in enumerate(phases):
        if code in seen:
            figure.add_trace(legend_entry(words(phase), step_colour(phase)))


def _colour_steps(phases: Sequence[str]) -> list[tuple[float, str]]:
    """A colour scale of steps: nothing for 0, then one colour for each phase."""
    colours = [CLEAR, *map(step_colour, phases)]
    count = len(colours)
    return [((i + edge) / count, colour) for i, colour in enumerate(colours) for edge in (0, 1)]


def _mark(figure: Figure, window_ms: Window, total_ms: float, style: Style) -> None:
    """Dim what lies outside the window and frame the rest."""
    for low, high in ((0.0, window_ms[0]), (window_ms[1], total_ms)):
        if high > low:
            figure.add_vrect(
                x0=low, x1=high, fillcolor=translucent(style.surface, 0.65), line={"width": 0}
            )
    figure.add_vrect(
        x0=window_ms[0],
        x1=window_ms[1],
        line={"color": style.text, "width": 1.5},
        fillcolor=CLEAR,
    )
