"""What a class answered: one bar for each kind of answer."""

from __future__ import annotations

from collections.abc import Mapping

from triosim.figures.figure import Figure, bar_trace
from triosim.figures.palette import CLASS_COLOURS, PHASE_COLOURS, text_on
from triosim.figures.style import DEFAULT_STYLE, Style, finish, row_axis, rows_height, value_axis
from triosim.figures.text import safe

RIGHT_COLOUR = PHASE_COLOURS["optimizer"]
OTHER_COLOUR = CLASS_COLOURS["bubble"]
SLIP_COLOUR = PHASE_COLOURS["fetch"]


def class_counts(
    counts: Mapping[str, int], right: str, known: Mapping[str, str], *, style: Style = DEFAULT_STYLE
) -> Figure:
    """Bars in the order given; `right` is the right answer's label, `known` has the slips'."""
    labels = [safe(label) for label in counts]
    colours = [
        RIGHT_COLOUR if label == right else SLIP_COLOUR if label in known else OTHER_COLOUR
        for label in counts
    ]
    figure = Figure(
        bar_trace(
            x=list(counts.values()),
            y=labels,
            orientation="h",
            marker={"color": colours},
            text=[str(count) for count in counts.values()],
            textposition="inside",
            textangle=0,
            insidetextfont={"color": [text_on(colour) for colour in colours]},
            hovertemplate="%{y}: %{x}<extra></extra>",
        )
    )
    finish(figure, style, height=rows_height(len(labels), style, extra=3), revision="class-counts")
    figure.update_layout(
        showlegend=False,
        bargap=0.25,
        xaxis=value_axis(style, "answers", rangemode="tozero", dtick=_step(counts)),
        yaxis=row_axis(style, labels),
        dragmode=False,
    )
    figure.update_xaxes(fixedrange=True)
    return figure


def _step(counts: Mapping[str, int]) -> int:
    """Whole answers, about six marks on the axis."""
    return max(1, round(max(counts.values(), default=1) / 6))
