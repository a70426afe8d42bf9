"""A search: the fastest layouts side by side, with what their steps consist of."""

from __future__ import annotations

from collections.abc import Sequence

from triosim.figures.figure import Figure, bar_trace
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
from triosim.figures.text import share_text, time_text, words
from triosim.figures.train_colours import OTHER, PART_COLOURS, roomy_legend
from triosim.search import Ranked

MOST = 10
LABELLED_SHARE = 0.05
ORDER = (
    "forward", "recompute", "backward", "optimizer", "slowdown", "launch_wait",
    "exposed_communication", "bubble", "imbalance", "idle",
)  # fmt: skip


def parts_of(one: Ranked) -> dict[str, float]:
    """Milliseconds of a simulated step: computing by phase, then the other classes."""
    assert one.figures is not None
    parts: dict[str, float] = {}
    for (kind, part), ms in one.figures.parts_ms.items():
        name = part if kind == "compute" else kind
        parts[name] = parts.get(name, 0.0) + ms
    return parts


def fastest_layouts(ranked: Sequence[Ranked], *, style: Style = DEFAULT_STYLE) -> Figure:
    """The first ten that were simulated and fit, as stacked bars as long as their steps.

    The first custom value of a bar is its place.
    """
    drawn = [one for one in ranked if one.figures is not None and one.outcome in ("best", "slower")]
    drawn = drawn[:MOST]
    figure = Figure()
    labels = [f"{place}. {one.layout}" for place, one in enumerate(drawn, 1)]
    rows = [parts_of(one) for one in drawn]
    names = [*ORDER, *sorted({name for row in rows for name in row} - {*ORDER})]
    longest = max((one.step_ms or 0.0 for one in drawn), default=1.0)
    for name in names:
        values = [row.get(name, 0.0) for row in rows]
        if not any(values):
            continue
        colour = PART_COLOURS.get(name, OTHER)
        figure.add_trace(
            bar_trace(
                orientation="h", name=words(name), meta=name, y=labels, x=values,
                marker={"color": colour, "line": {"width": 0}},
                customdata=[
                    (place, time_text(ms), share_text(ms, one.step_ms or 0.0))
                    for place, (ms, one) in enumerate(zip(values, drawn, strict=True))
                ],
                hovertemplate="<b>%{y}</b><br>%{fullData.name}: %{customdata[1]}, "
                "%{customdata[2]} of the step<extra></extra>",
                text=[time_text(ms) if ms >= LABELLED_SHARE * longest else "" for ms in values],
                textposition="inside", insidetextanchor="middle", textangle=0,
                insidetextfont={"color": text_on(colour), "size": style.small},
            )
        )  # fmt: skip
    figure.update_layout(
        barmode="stack",
        bargap=0.25,
        xaxis=value_axis(style, "step time (ms)", range=[0, 1.01 * longest], fixedrange=True),
        yaxis=row_axis(style, labels),
        clickmode="event+select",
        dragmode=False,
    )
    finish(figure, style, height=rows_height(len(labels), style, extra=7.0), revision="search")
    if not drawn:
        say_nothing_to_show(figure, style, "No layout fits.")
    return roomy_legend(figure, style)
