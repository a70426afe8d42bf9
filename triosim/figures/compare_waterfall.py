"""Where the difference between two steps comes from, part by part; the bars end at its sum."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from triosim.errors import counted
from triosim.figures.figure import Figure, Trace, bar_trace
from triosim.figures.palette import text_on
from triosim.figures.style import (
    DEFAULT_STYLE,
    Style,
    finish,
    row_axis,
    rows_height,
    say_nothing_to_show,
    value_axis,
)
from triosim.figures.text import time_text
from triosim.figures.train_colours import OTHER, PART_COLOURS

if TYPE_CHECKING:
    from triosim.compare import Delta

MAX_ROWS = 10
SMALL = 0.005  # of the largest part: less is one row with the others
LABEL_CHARACTERS = 22
INSIDE = 0.3  # of the longest bar: so long a bar has room for its number
ROOM, EDGE = 0.3, 0.03  # of the axis: beside bars with a number there, and without
Row = tuple[str, float, str]


def compare_waterfall(
    deltas: Sequence[Delta], base_ms: float, *, style: Style = DEFAULT_STYLE
) -> Figure:
    """Each part begins where the one above ends; the last bar is the whole difference.

    `base_ms` is the baseline's step, whose share a hover tells.
    """
    rows = _rows(deltas)
    ends = list(accumulate(ms for _, ms, _ in rows))
    starts = [0.0, *ends[:-1], 0.0]  # the last is the step's
    if rows:
        rows.append(("step", ends[-1], style.muted))
    labels = ["<br>".join(textwrap.wrap(name, LABEL_CHARACTERS)) for name, _, _ in rows]
    figure = Figure(_bars(labels, starts, rows, base_ms, style) if rows else None)
    figure.update_layout(
        barmode="overlay",
        bargap=0.3,
        xaxis=value_axis(
            style, "milliseconds more than the baseline", range=_range(starts, rows),
            zeroline=True, zerolinecolor=style.muted,
        ),
        yaxis=row_axis(style, labels),
        shapes=_joints(ends, style),
    )  # fmt: skip
    finish(figure, style, height=rows_height(len(labels), style), revision="compare-waterfall")
    figure.update_layout(showlegend=False)
    if not rows:
        say_nothing_to_show(figure, style, "Both steps take the same time in every part.")
    return figure


def part_colour(delta: Delta) -> str:
    """The colour of a part where a step is broken down into such."""
    return PART_COLOURS.get(delta.part if delta.kind == "compute" else delta.kind, OTHER)


def signed_time(ms: float) -> str:
    """A difference in time: +8.1 ms."""
    return ("\u2212" if ms < 0 else "+") + time_text(abs(ms))


def _rows(deltas: Sequence[Delta]) -> list[Row]:
    """The parts to draw in their order; what is too small to see is one of them."""
    sizes = sorted((abs(delta.ms) for delta in deltas), reverse=True)
    least = SMALL * sizes[0] if sizes else 0.0
    if len(sizes) > MAX_ROWS:
        least = max(least, sizes[MAX_ROWS - 1])
    drawn = [d for d in deltas if abs(d.ms) >= least]
    rest = [d for d in deltas if abs(d.ms) < least]
    if len(rest) == 1:
        drawn, rest = list(deltas), []
    rows = [(delta.words, delta.ms, part_colour(delta)) for delta in drawn]
    if rest:
        rows.append((counted(len(rest), "smaller part"), sum(d.ms for d in rest), OTHER))
    return rows


def _bars(
    labels: list[str], starts: list[float], rows: Sequence[Row], base_ms: float, style: Style
) -> Trace:
    sizes, colours = [ms for _, ms, _ in rows], [colour for _, _, colour in rows]
    shares = [f"{ms / base_ms:+.1%}".replace("%", " %") if base_ms else "" for ms in sizes]
    return bar_trace(
        orientation="h",
        y=labels,
        base=starts,
        x=sizes,
        marker={"color": colours, "line": {"width": 0}},
        text=[signed_time(ms) for ms in sizes],
        textposition=["inside" if _has_room(ms, sizes) else "outside" for ms in sizes],
        textangle=0,
        insidetextanchor="middle",
        insidetextfont={"color": [text_on(colour) for colour in colours], "size": style.small},
        outsidetextfont={"color": style.text, "size": style.small},
        cliponaxis=False,
        customdata=shares,
        hovertemplate="<b>%{y}</b><br>%{text}, %{customdata} of the baseline's step<extra></extra>",
    )


def _joints(ends: Sequence[float], style: Style) -> list[dict[str, Any]]:
    """A thin line from the end of each bar to the beginning of the next."""
    at = {"type": "line", "xref": "x", "yref": "y", "layer": "below"}
    line = {"color": style.muted, "width": 1}
    return [
        {**at, "x0": end, "x1": end, "y0": row, "y1": row + 1, "line": line}
        for row, end in enumerate(ends)
    ]


def _range(starts: Sequence[float], rows: Sequence[Row]) -> list[float]:
    """From the lowest to the highest that the sum gets, with room for numbers beside bars."""
    sizes = [ms for _, ms, _ in rows]
    seen = [0.0, *starts, *(at + ms for at, ms in zip(starts, sizes, strict=False))]
    low, high = min(seen), max(seen)
    span = (high - low) or 1.0
    beside = [ms for ms in sizes if not _has_room(ms, sizes)]
    left, right = (span * (ROOM if has else EDGE) for has in _sides(beside))
    return [low - left, high + right]


def _sides(sizes: Sequence[float]) -> tuple[bool, bool]:
    return any(ms < 0 for ms in sizes), any(ms >= 0 for ms in sizes)


def _has_room(ms: float, sizes: Sequence[float]) -> bool:
    """Whether a bar is long enough for its own number."""
    return abs(ms) > INSIDE * max(map(abs, sizes))
