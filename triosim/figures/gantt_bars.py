"""The timeline in detail: one bar for each operator and transfer, and why the GPU stands still.

Above `MAX_BARS` bars a browser gets slow, so a window that holds more is drawn as a raster.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from triosim.analysis.breakdown import CLASSES
from triosim.explain import Explanation, PathStep, Wait, explain
from triosim.figures.critical import draw_path
from triosim.figures.figure import Figure, Trace, bar_trace
from triosim.figures.gantt import (
    Window,
    clip_window,
    makespan_ms,
    phases_in,
    raster_figure,
    set_axes,
)
from triosim.figures.lanes import Lane, Lanes, choose_lanes
from triosim.figures.palette import CLASS_COLOURS, text_on, translucent
from triosim.figures.style import (
    DEFAULT_STYLE,
    Style,
    finish,
    lines_of,
    rows_height,
    say_nothing_to_show,
)
from triosim.figures.targets import draw_targets
from triosim.figures.text import bytes_text, safe, time_text, words
from triosim.figures.train_colours import roomy_legend, step_colour
from triosim.result import Result

MAX_BARS = 2000
# What is not clicked on stays readable.
NOT_CLICKED = {"marker": {"opacity": 0.65}}
TWO_LINES = 6  # entries of a legend that a chart has room for in two lines
# How much of its colour a gap shows on a light and on a dark page.
GAP_OPACITY = (0.22, 0.42)
# What the names written on bars are measured by: a chart's width and a letter's, in pixels.
ASSUMED_WIDTH_PX = 950
LETTER_PX = 0.58
# What a bar carries for hovers and clicks, in this order; `gap` is a position in what
# `explain(result).gaps(rank)` gives, -1 for a span; a gap's `task` is what it waits for.
CUSTOM_DATA = ("name", "duration", "start", "bytes", "waited_for", "task", "rank", "gap")
_HOVER = (
    "<b>%{customdata[0]}</b><br>%{y}<br>%{customdata[1]} from %{customdata[2]}"
    "%{customdata[3]}%{customdata[4]}<extra></extra>"
)


@dataclass(slots=True)
class _Bars:
    """The columns of one trace."""

    y: list[str] = field(default_factory=list)
    base: list[float] = field(default_factory=list)
    x: list[float] = field(default_factory=list)
    custom: list[tuple[Any, ...]] = field(default_factory=list)

    def add(self, lane: Lane, low_ms: float, high_ms: float, custom: tuple[Any, ...]) -> None:
        self.y.append(lane.label)
        self.base.append(round(low_ms, 6))
        self.x.append(round(high_ms - low_ms, 6))
        self.custom.append(custom)


def gantt_bars(
    result: Result,
    ranks: Iterable[int],
    window_ms: Window,
    *,
    path: Sequence[PathStep] = (),
    style: Style = DEFAULT_STYLE,
) -> Figure:
    """Every span and every gap of the chosen ranks in the window, cut off at its edges.

    `path` is drawn over them: the critical path of `explain`.
    """
    lanes = choose_lanes(result, ranks)
    window = clip_window(window_ms, makespan_ms(result))
    figure = Figure()
    if draw_bars(figure, result, lanes, window, style=style):
        _dress(figure, result, lanes, window, style)
    else:
        note = (
            f"more than {MAX_BARS:,} intervals in this window: each stretch shows what it mostly "
            "holds, and a click explains it; choose a shorter window or fewer GPUs to see single "
            "operators"
        )
        figure = raster_figure(result, lanes, window, style, note)
        _draw_targets(figure, result, lanes, window, style)
    draw_path(figure, result, path, lanes, window, style)
    return figure


def draw_bars(
    figure: Figure,
    result: Result,
    lanes: Lanes,
    window_ms: Window,
    *,
    limit: int = MAX_BARS,
    style: Style = DEFAULT_STYLE,
) -> bool:
    """Add the spans and gaps of the lanes, without axes; False, and nothing, above `limit`."""
    tasks = _tasks_by_lane(result, lanes, window_ms)
    count = sum(map(len, tasks))
    if count > limit:
        return False
    found = explain(result)
    gaps = [_gaps(found, lane, window_ms) for lane in lanes.lanes]
    if count + sum(map(len, gaps)) > limit:
        return False
    _draw_spans(figure, result, lanes, tasks, window_ms)
    _draw_gaps(figure, result, lanes, gaps, window_ms, style)
    return True


def _dress(figure: Figure, result: Result, lanes: Lanes, window: Window, style: Style) -> Figure:
    notes = lines_of(lanes.note)
    set_axes(figure, style, lanes, window, notes)
    many = len(figure.traces) > TWO_LINES
    height = rows_height(len(lanes.lanes), style, extra=5.5 + len(notes) + many)
    finish(figure, style, height=height, revision="gantt-bars")
    if many:
        roomy_legend(figure, style)
    figure.update_layout(barmode="overlay", bargap=0.12, dragmode="zoom")
    _write_names(figure, window, style)
    if makespan_ms(result) == 0:
        say_nothing_to_show(figure, style, "This step takes no time.")
    return figure


def _tasks_by_lane(result: Result, lanes: Lanes, window: Window) -> list[list[int]]:
    """For each lane the tasks that are under way at some time of the window."""
    timeline = result.tasks
    start, end = timeline.start_s * 1e3, timeline.end_s * 1e3
    inside = (start < window[1]) & (end > window[0])
    inside |= (start == end) & (start >= window[0]) & (start <= window[1])
    seen = np.flatnonzero(inside)
    stream = np.array(timeline.program.stream, dtype=np.int64)[seen]
    needed = {lane.stream for lane in lanes.lanes}
    by_stream = {s: seen[stream == s].tolist() for s in needed}
    return [by_stream[lane.stream] for lane in lanes.lanes]


def _gaps(found: Explanation, lane: Lane, window: Window) -> list[tuple[int, Wait]]:
    """The gaps of a lane in the window with their positions; waits inside of bars are no gaps."""
    if not lane.compute:
        return []
    low_s, high_s = window[0] / 1e3, window[1] / 1e3
    return [
        (number, wait)
        for number, wait in enumerate(found.gaps(lane.rank))
        if wait.inside < 0 and wait.start_s < high_s and wait.end_s > low_s
    ]


def _draw_spans(
    figure: Figure,
    result: Result,
    lanes: Lanes,
    tasks: Sequence[Sequence[int]],
    window: Window,
) -> None:
    program = result.tasks.program
    bars: dict[str, _Bars] = {}
    for lane, own in zip(lanes.lanes, tasks, strict=True):
        for task in own:
            start, end = _span_ms(result, task)
            bars.setdefault(program.phase[task], _Bars()).add(
                lane,
                max(start, window[0]),
                min(end, window[1]),
                _describe(result, lane, task, start, end),
            )
    for phase in phases_in(result):
        if phase in bars:
            figure.add_trace(_trace(words(phase), bars[phase], step_colour(phase), phase))


def _draw_targets(
    figure: Figure, result: Result, lanes: Lanes, window: Window, style: Style
) -> None:
    """What a click on the raster of a window explains."""
    found = explain(result)
    timeline = result.tasks
    tasks = _tasks_by_lane(result, lanes, window)
    gaps = [_gaps(found, lane, window) for lane in lanes.lanes]
    task = np.array([t for own in tasks for t in own], dtype=np.int64)
    waits = [wait for own in gaps for _, wait in own]
    rows = np.arange(len(lanes.lanes))
    row = np.concatenate([np.repeat(rows, [len(own) for own in many]) for many in (tasks, gaps)])
    start = np.concatenate([timeline.start_s[task], [wait.start_s for wait in waits]]) * 1e3
    end = np.concatenate([timeline.end_s[task], [wait.end_s for wait in waits]]) * 1e3
    numbers = [number for own in gaps for number, _ in own]

    def custom(which: int) -> tuple[Any, ...]:
        lane = lanes.lanes[row[which]]
        if which < len(task):
            return _describe(result, lane, int(task[which]), start[which], end[which])
        number = which - len(task)
        return _describe_gap(result, lane, numbers[number], waits[number])

    draw_targets(figure, lanes.labels, (row, start, end), window, custom, _HOVER, style)


def _span_ms(result: Result, task: int) -> tuple[float, float]:
    return float(result.tasks.start_s[task]) * 1e3, float(result.tasks.end_s[task]) * 1e3


def _describe(
    result: Result, lane: Lane, task: int, start_ms: float, end_ms: float
) -> tuple[Any, ...]:
    """The custom data of a span, ready to read: see `CUSTOM_DATA`."""
    program = result.tasks.program
    size = program.bytes[task]
    before = result.tasks.critical[task]
    return (
        safe(program.name[task]),
        time_text(end_ms - start_ms),
        time_text(start_ms),
        f"<br>{bytes_text(size)}" if size > 0 else "",
        f"<br>waited for {_whose(result, lane, before)}" if before >= 0 else "",
        task,
        lane.rank,
        -1,
    )


def _whose(result: Result, lane: Lane, task: int) -> str:
    """A task by name, with its GPU where that is another one."""
    name = safe(result.tasks.program.name[task])
    c = int(result.tasks.rank_class[task])
    return name if c == lane.rank_class else f"{name} on GPU {result.classes[c].rank}"


def _draw_gaps(
    figure: Figure,
    result: Result,
    lanes: Lanes,
    gaps: Sequence[Sequence[tuple[int, Wait]]],
    window: Window,
    style: Style,
) -> None:
    bars: dict[str, _Bars] = {}
    for lane, own in zip(lanes.lanes, gaps, strict=True):
        for number, gap in own:
            low, high = max(gap.start_s * 1e3, window[0]), min(gap.end_s * 1e3, window[1])
            custom = _describe_gap(result, lane, number, gap)
            bars.setdefault(gap.kind, _Bars()).add(lane, low, high, custom)
    for kind in CLASSES:
        if kind in bars:
            colour = translucent(CLASS_COLOURS[kind], GAP_OPACITY[style.dark])
            figure.add_trace(_trace(words(kind), bars[kind], colour, "gap"))


def _describe_gap(result: Result, lane: Lane, number: int, gap: Wait) -> tuple[Any, ...]:
    """The custom data of a gap, ready to read: see `CUSTOM_DATA`."""
    return (
        _reason(result, lane, gap),
        time_text(gap.seconds * 1e3),
        time_text(gap.start_s * 1e3),
        "",
        _held_up(result, gap),
        gap.cause,
        lane.rank,
        number,
    )


def _reason(result: Result, lane: Lane, gap: Wait) -> str:
    """Why the compute stream stands still, in a few words."""
    if gap.cause < 0:
        return "idle: nothing left to do" if gap.before < 0 else "idle: nothing to wait for"
    return f"{words(gap.kind)}: waits for {_whose(result, lane, gap.cause)}"


def _held_up(result: Result, gap: Wait) -> str:
    if gap.before < 0:
        return ""
    return f"<br>before {safe(result.tasks.program.name[gap.before])} can start"


def _trace(name: str, bars: _Bars, colour: str, meta: str) -> Trace:
    return bar_trace(
        orientation="h",
        name=name,
        meta=meta,
        y=bars.y,
        base=bars.base,
        x=bars.x,
        customdata=bars.custom,
        hovertemplate=_HOVER,
        marker={"color": colour, "line": {"width": 0}},
        unselected=NOT_CLICKED,
        textposition="none",
    )


def _write_names(figure: Figure, window: Window, style: Style) -> None:
    """Put names on the bars that are wide enough for them."""
    letter_ms = LETTER_PX * style.small * (window[1] - window[0]) / ASSUMED_WIDTH_PX
    for trace in figure.traces:
        if trace.get("meta") == "gap" or trace["type"] != "bar":
            continue
        # "autograd::engine::evaluate_function: MmBackward0" is best known by its end.
        names = [custom[0].rsplit(": ", 1)[-1] for custom in trace["customdata"]]
        fits = [x > letter_ms * (len(n) + 2) for n, x in zip(names, trace["x"], strict=True)]
        trace.update(
            text=[name if fit else "" for name, fit in zip(names, fits, strict=True)],
            textposition=["inside" if fit else "none" for fit in fits],
            insidetextanchor="middle",
            textangle=0,
            insidetextfont={"color": text_on(trace["marker"]["color"]), "size": style.small},
        )
