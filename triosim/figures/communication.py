"""What moved, and how much of that the GPUs had to wait for."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from triosim.analysis.communication import Communication
from triosim.figures.palette import CLASS_COLOURS, PHASE_COLOURS
from triosim.figures.style import (
    DEFAULT_STYLE,
    Style,
    finish,
    row_axis,
    rows_height,
    say_nothing_to_show,
    value_axis,
)
from triosim.figures.text import MIDDLE_DOT, bytes_text, share_text, time_text
from triosim.result import Result

# Room to the right of the longest bar for its label, in bar lengths per pixel of text size.
LABEL_ROOM = 0.062
# The colour of a kind of transfer that covers two phases.
KIND_COLOURS = {**PHASE_COLOURS, "send/recv": PHASE_COLOURS["send"]}
_HOVER = (
    "<b>%{y}</b><br>%{fullData.name}: %{customdata[0]}"
    "<br>busy %{customdata[1]}, exposed %{customdata[2]} (%{customdata[3]})"
    "<br>%{customdata[4]} in %{customdata[5]} transfers, all GPUs<extra></extra>"
)


def communication_bars(result: Result, *, style: Style = DEFAULT_STYLE) -> go.Figure:
    """For each kind of transfer its busy time, split into what a GPU waits for and the rest."""
    rows = result.communication
    figure = go.Figure()
    if rows:
        exposed = [min(row.exposed_s, row.busy_s) for row in rows]
        colour = CLASS_COLOURS["exposed_communication"]
        figure.add_trace(_trace("exposed: a GPU waits for it", rows, exposed, colour))
        for kind in dict.fromkeys(row.kind for row in rows):
            own = [row for row in rows if row.kind == kind]
            rest = [max(0.0, row.busy_s - row.exposed_s) for row in own]
            figure.add_trace(_trace(f"{kind} beside other work", own, rest, KIND_COLOURS[kind]))
        figure.add_trace(_labels(rows, style))
    longest = max((row.busy_s * 1e3 for row in rows), default=0.0) or 1.0
    span = [0, longest * (1 + LABEL_ROOM * style.font_size)]
    figure.update_layout(
        barmode="stack",
        bargap=0.3,
        xaxis=value_axis(style, "time per GPU, mean (ms)", range=span),
        yaxis=row_axis(style, [_name(row) for row in rows]),
    )
    finish(figure, style, height=rows_height(max(2, len(rows)), style), revision="communication")
    if not rows:
        say_nothing_to_show(figure, style, "No communication: nothing moves in this step.")
    return figure


def _name(row: Communication) -> str:
    return row.kind if row.kind == row.purpose else f"{row.kind}: {row.purpose}"


def _trace(
    name: str, rows: Sequence[Communication], seconds: Sequence[float], colour: str
) -> go.Bar:
    return go.Bar(
        orientation="h",
        name=name,
        y=[_name(row) for row in rows],
        x=[s * 1e3 for s in seconds],
        customdata=[
            (
                time_text(s * 1e3),
                time_text(row.busy_s * 1e3),
                time_text(row.exposed_s * 1e3),
                share_text(row.exposed_s, row.busy_s),
                bytes_text(row.bytes),
                f"{row.transfers:,}",
            )
            for s, row in zip(seconds, rows, strict=True)
        ],
        hovertemplate=_HOVER,
        marker={"color": colour, "line": {"width": 0}},
    )


def _labels(rows: Sequence[Communication], style: Style) -> go.Scatter:
    """What each bar amounts to, at its right end."""
    return go.Scatter(
        x=[row.busy_s * 1e3 for row in rows],
        y=[_name(row) for row in rows],
        mode="text",
        text=[f"  {_summary(row)}" for row in rows],
        textposition="middle right",
        textfont={"size": style.font_size, "color": style.text},
        hoverinfo="skip",
        showlegend=False,
        cliponaxis=False,
    )


def _summary(row: Communication) -> str:
    exposed = f"exposed {time_text(row.exposed_s * 1e3)}"
    share = f" ({share_text(row.exposed_s, row.busy_s)})" if row.exposed_s else ""
    return (
        f"busy {time_text(row.busy_s * 1e3)}, {exposed}{share} {MIDDLE_DOT} {bytes_text(row.bytes)}"
    )
