"""Where each GPU's step goes: one stacked bar for each GPU."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import plotly.graph_objects as go

from triosim.analysis.breakdown import CLASSES, SLOWDOWN, Breakdown
from triosim.engine.program import COMPUTE_PHASES
from triosim.figures.figure import Figure
from triosim.figures.lanes import gpu_labels
from triosim.figures.palette import CLASS_COLOURS, text_on
from triosim.figures.style import (
    DEFAULT_STYLE,
    Style,
    finish,
    row_axis,
    rows_height,
    say_nothing_to_show,
    value_axis,
)
from triosim.figures.text import share_text, time_text, words
from triosim.result import Result

MAX_ROWS = 256
LABELLED_SHARE = 0.07
PARTS = (*COMPUTE_PHASES, SLOWDOWN, *(name for name in CLASSES if name != "compute"))


def breakdown_bars(
    result: Result, ranks: Iterable[int], *, style: Style = DEFAULT_STYLE
) -> go.Figure:
    """The classes of each chosen rank, compute split by phase; every bar is as long as the step."""
    chosen = list(dict.fromkeys(ranks))
    labels = gpu_labels(result, chosen)
    rows = [_parts_ms(result.breakdowns[result.class_of(rank)]) for rank in chosen[:MAX_ROWS]]
    return part_bars(labels, rows, result.total_ms, style=style)


def part_bars(
    labels: Sequence[str],
    rows: Sequence[Mapping[str, float]],
    total_ms: float,
    *,
    style: Style = DEFAULT_STYLE,
) -> go.Figure:
    """A bar for each row of milliseconds by part (see `PARTS`), as long as the step.

    Where there are more labels than rows, the axis says that the others are not drawn.
    """
    drawn = list(labels[: len(rows)])
    figure = Figure()
    for part in PARTS:
        values = [row.get(part, 0.0) for row in rows]
        if any(values):
            figure.add_trace(_trace(part, drawn, values, total_ms, style))
    hidden = len(labels) - len(drawn)
    note = f"<br><i>{len(drawn)} of {len(labels):,} chosen GPUs drawn</i>" if hidden else ""
    figure.update_layout(
        barmode="stack",
        bargap=0.25,
        xaxis=value_axis(style, f"time (ms){note}", range=[0, total_ms or 1.0]),
        yaxis=row_axis(style, drawn),
    )
    finish(figure, style, height=rows_height(len(drawn), style), revision="breakdown")
    if total_ms == 0:
        say_nothing_to_show(figure, style, "This step takes no time.")
    return figure


def _parts_ms(breakdown: Breakdown) -> Mapping[str, float]:
    """Milliseconds of each part; they sum to the step."""
    seconds = {**breakdown.classes_s, **breakdown.compute_s}
    return {part: seconds.get(part, 0.0) * 1e3 for part in PARTS}


def _trace(
    part: str, labels: list[str], values: list[float], total_ms: float, style: Style
) -> go.Bar:
    shares = [share_text(value, total_ms) for value in values]
    return go.Bar(
        orientation="h",
        name=words(part),
        meta=part,
        y=labels,
        x=values,
        customdata=[(time_text(v), share) for v, share in zip(values, shares, strict=True)],
        hovertemplate=(
            "<b>%{y}</b><br>%{fullData.name}: %{customdata[0]}, %{customdata[1]} of the step"
            "<extra></extra>"
        ),
        marker={"color": CLASS_COLOURS[part], "line": {"width": 0}},
        text=[time_text(v) if v >= LABELLED_SHARE * total_ms else "" for v in values],
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        insidetextfont={"color": text_on(CLASS_COLOURS[part]), "size": style.small},
    )
