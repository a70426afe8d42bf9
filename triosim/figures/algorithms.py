"""What every algorithm of a collective would take: one bar each, the chosen one in colour."""

from __future__ import annotations

from collections.abc import Mapping

from triosim.figures.figure import Figure, bar_trace
from triosim.figures.palette import PHASE_COLOURS
from triosim.figures.style import DEFAULT_STYLE, Style, finish, row_axis, rows_height, value_axis
from triosim.figures.text import safe, time_text


def algorithm_bars(
    times_ms: Mapping[str, float], chosen: str, *, style: Style = DEFAULT_STYLE
) -> Figure:
    """Milliseconds by algorithm, the shortest on top."""
    names = sorted(times_ms, key=times_ms.__getitem__)
    labels = [safe(name) for name in names]
    values = [times_ms[name] for name in names]
    colours = [PHASE_COLOURS["all-reduce"] if name == chosen else style.muted for name in names]
    figure = Figure(
        bar_trace(
            orientation="h",
            y=labels,
            x=values,
            marker={"color": colours, "line": {"width": 0}},
            text=[time_text(value) for value in values],
            textposition="outside",
            cliponaxis=False,
            textfont={"color": style.text, "size": style.font_size},
            hovertemplate="<b>%{y}</b>: %{text}<extra></extra>",
        )
    )
    # Beside the longest bar its time has to find room.
    longest = max(values, default=0.0) or 1.0
    figure.update_layout(
        bargap=0.3,
        xaxis=value_axis(style, "time (ms)", range=[0, 1.2 * longest]),
        yaxis=row_axis(style, labels),
    )
    finish(figure, style, height=rows_height(len(names), style, extra=4.0), revision="algorithms")
    return figure.update_layout(showlegend=False)
