"""Bars as long as a step, each stacked from the parts that it is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from triosim.figures.figure import Figure, Trace, bar_trace
from triosim.figures.palette import text_on
from triosim.figures.style import Style, row_axis, value_axis
from triosim.figures.text import share_text, time_text, words


def stacked_bars(
    labels: Sequence[str],
    rows: Sequence[Mapping[str, float]],
    step_ms: float,
    parts: Iterable[str],
    *,
    colour_of: Callable[[str], str],
    labelled_share: float,
    title: str,
    style: Style,
) -> Figure:
    """A bar for each row of milliseconds by part, its parts in the order of `parts`.

    From `labelled_share` of the step on, a part says its time; `title` is that of the time axis.
    """
    figure, names = Figure(), list(labels)
    for part in parts:
        values = [row.get(part, 0.0) for row in rows]
        if any(values):
            least_ms = labelled_share * step_ms
            figure.add_trace(_bar(part, names, values, step_ms, least_ms, colour_of(part), style))
    figure.update_layout(
        barmode="stack",
        bargap=0.25,
        xaxis=value_axis(style, title, range=[0, step_ms or 1.0]),
        yaxis=row_axis(style, names),
    )
    return figure


def _bar(
    part: str,
    labels: list[str],
    values: list[float],
    step_ms: float,
    least_ms: float,
    colour: str,
    style: Style,
) -> Trace:
    return bar_trace(
        orientation="h",
        name=words(part),
        meta=part,
        y=labels,
        x=values,
        customdata=[(time_text(value), share_text(value, step_ms)) for value in values],
        hovertemplate=(
            "<b>%{y}</b><br>%{fullData.name}: %{customdata[0]}, %{customdata[1]} of the step"
            "<extra></extra>"
        ),
        marker={"color": colour, "line": {"width": 0}},
        text=[time_text(value) if value >= least_ms else "" for value in values],
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        insidetextfont={"color": text_on(colour), "size": style.small},
    )
