"""The timelines of several steps below each other, on one time axis."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from triosim.errors import counted
from triosim.figures.compare_colours import LETTERS, letter_colour
from triosim.figures.figure import Figure
from triosim.figures.gantt import Window, draw_cells, makespan_ms
from triosim.figures.gantt_bars import MAX_BARS, draw_bars
from triosim.figures.lanes import Lane, Lanes, choose_lanes
from triosim.figures.style import (
    DEFAULT_STYLE,
    MAX_HEIGHT,
    Style,
    finish,
    row_axis,
    say_nothing_to_show,
    value_axis,
)
from triosim.figures.text import MIDDLE_DOT, safe, time_text
from triosim.figures.train_colours import roomy_legend
from triosim.figures.train_timeline import stage_lanes
from triosim.result import Result
from triosim.train import TrainResult

MAX_KINDS = 8  # of GPUs, for each step
MAX_LANES = 44  # of all steps
TITLE_LINES = 1.9
NOTE_CHARACTERS = 30
LANE_SHARE = 0.72  # of what a lane of a single timeline is high


def compare_gantts(
    results: Sequence[Result],
    names: Sequence[str],
    *,
    letters: Sequence[str] = LETTERS,
    streams: bool = True,
    window_ms: Window | None = None,
    style: Style = DEFAULT_STYLE,
) -> Figure:
    """One GPU of each kind, step by step; without `streams` only what they compute.

    A zoom into one is a zoom into all. Where there are many intervals a step is drawn as what each
    short stretch mostly holds.
    """
    longest_ms = max(map(makespan_ms, results))
    low, high = window_ms or (0.0, longest_ms or 1.0)
    chosen = [_lanes(result, streams, MAX_LANES // len(results)) for result in results]
    notes = [f"{letters[i]}: {lanes.note}" for i, lanes in enumerate(chosen) if lanes.note]
    figure = Figure()
    left = MAX_BARS
    smallest_first = sorted(range(len(results)), key=lambda i: len(results[i].tasks.start_s))
    for done, index in enumerate(smallest_first):
        result, window = results[index], (low, min(high, makespan_ms(results[index])))
        limit = left // (len(results) - done)
        left -= _draw(figure, result, chosen[index], window, limit, _axis("y", index), style)
    _one_entry_each(figure)
    title = "<br>".join(["time (ms)", *(f"<i>{line}</i>" for n in notes for line in _lines(n))])
    layout, height = _stacked(results, names, letters, chosen, style)
    last = _axis("y", len(results) - 1)
    figure.update_layout(
        xaxis=value_axis(style, title, range=[low, high], anchor=last),
        barmode="overlay",
        bargap=0.12,
        dragmode="zoom",
        **layout,
    )
    finish(
        figure,
        style,
        height=height + 18 * sum(len(_lines(note)) for note in notes),
        revision="compare-gantts",
    )
    roomy_legend(figure, style)
    if longest_ms == 0:
        say_nothing_to_show(figure, style, "None of these steps takes any time.")
    return figure


def _lanes(result: Result, streams: bool, most: int) -> Lanes:
    """What up to `MAX_KINDS` kinds of GPU compute, and the other streams of those that fit."""
    kinds = len(result.classes)
    shown = list(range(kinds))
    if kinds > MAX_KINDS:
        shown = sorted({round(i * (kinds - 1) / (MAX_KINDS - 1)) for i in range(MAX_KINDS)})
    if isinstance(result, TrainResult):
        lanes = stage_lanes(result, streams=True).lanes
    else:
        lanes = choose_lanes(result, [group.rank for group in result.classes]).lanes
    own = {c: [lane for lane in lanes if lane.rank_class == c] for c in shown}
    kept: list[Lane] = []
    whole, room = 0, most - len(shown)
    for c in shown:
        more = len(own[c]) - 1
        full = streams and more <= room
        kept += [lane for lane in own[c] if full or lane.compute]
        room -= more if full else 0
        whole += full
    notes = [] if len(shown) == kinds else [f"{len(shown)} of {kinds:,} kinds of GPU are drawn"]
    if streams and whole < len(shown):
        notes.append(f"of {counted(len(shown) - whole, 'kind')} of GPU only what it computes")
    return Lanes(kept, ", ".join(notes))


def _draw(
    figure: Figure,
    result: Result,
    lanes: Lanes,
    window: Window,
    limit: int,
    axis: str,
    style: Style,
) -> int:
    """Add a step's bars, or its cells above `limit`; how many bars these are."""
    if not lanes.lanes or window[1] <= window[0]:
        return 0
    before = len(figure.traces)
    bars = draw_bars(figure, result, lanes, window, limit=limit, style=style)
    if not bars:
        draw_cells(figure, result, lanes, window)
    for trace in figure.traces[before:]:
        trace["yaxis"] = axis
    return sum(len(trace["x"]) for trace in figure.traces[before:]) if bars else 0


def _lines(note: str) -> list[str]:
    """Short lines: they are centred below the lanes, of which a phone shows little."""
    return textwrap.wrap(note, NOTE_CHARACTERS)


def _axis(letter: str, index: int) -> str:
    return f"{letter}{index + 1}" if index else letter


def _one_entry_each(figure: Figure) -> None:
    """What several steps have stands in the legend once, and is hidden in all at once."""
    seen = set()
    for trace in figure.traces:
        if name := trace.get("name"):
            trace |= {"legendgroup": name, "showlegend": name not in seen}
            seen.add(name)


def _stacked(
    results: Sequence[Result],
    names: Sequence[str],
    letters: Sequence[str],
    chosen: Sequence[Lanes],
    style: Style,
) -> tuple[dict[str, Any], int]:
    """Rows of lanes with the step's name above and its end marked; the figure's height."""
    head, lane = TITLE_LINES * style.font_size, LANE_SHARE * style.lane_px
    parts = [head + lane * max(1, len(lanes.lanes)) for lanes in chosen]
    whole, top = sum(parts), 1.0
    layout: dict[str, Any] = {"annotations": [], "shapes": []}
    for index, (result, lanes, part) in enumerate(zip(results, chosen, parts, strict=True)):
        bottom, high = max(0.0, top - part / whole), top - head / whole
        axis = _axis("y", index)
        layout[axis.replace("y", "yaxis")] = row_axis(style, lanes.labels) | {
            "domain": [bottom, max(bottom, high)],
            "anchor": "x",
            "tickfont": {"size": style.small, "color": style.text},
        }
        said = f"<b>{letters[index]}</b>", time_text(result.total_ms), safe(names[index])
        layout["annotations"].append(
            {
                "text": f" {MIDDLE_DOT} ".join(said),
                "x": 0, "y": high, "xref": "paper", "yref": "paper", "xanchor": "left",
                "yanchor": "bottom", "showarrow": False,
                "font": {"size": style.font_size, "color": style.text},
            }
        )  # fmt: skip
        end = makespan_ms(result)
        layout["shapes"].append(
            {
                "type": "line", "x0": end, "x1": end, "y0": 0, "y1": 1, "xref": "x",
                "yref": f"{axis} domain",
                "line": {"color": letter_colour(letters[index], style), "width": 2},
            }
        )  # fmt: skip
        top = bottom
    return layout, round(min(MAX_HEIGHT, whole + 8 * style.font_size))
