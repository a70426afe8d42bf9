"""What moved, and how much of that the GPUs had to wait for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from triosim.analysis.communication import Communication
from triosim.figures.figure import Figure, Trace, bar_trace
from triosim.figures.palette import CLASS_COLOURS, PHASE_COLOURS
from triosim.figures.style import (
    DEFAULT_STYLE,
    Style,
    finish,
    row_axis,
    say_nothing_to_show,
    value_axis,
)
from triosim.figures.text import MIDDLE_DOT, bytes_text, safe, share_text, time_text
from triosim.figures.train_colours import OTHER, STEP_COLOURS

# A row holds two lines of text above its bar; heights in lines of text and shares of a row.
ROW_LINES = 5.2
BAR_FROM, BAR_HEIGHT = 0.08, 0.34
# The colour of a kind of transfer that covers two phases.
KIND_COLOURS = {**STEP_COLOURS, "send/recv": PHASE_COLOURS["send"]}
_HOVER = (
    "<b>%{y}</b><br>%{fullData.name}: %{customdata[0]}"
    "<br>busy %{customdata[1]}, exposed %{customdata[2]} (%{customdata[3]})"
    "<br>%{customdata[4]} in %{customdata[5]}, all GPUs<extra></extra>"
)


class Moving(Protocol):
    """A step of which is known what moved: a result, or one that was saved."""

    @property
    def communication(self) -> Sequence[Communication]: ...


def communication_bars(result: Moving, *, style: Style = DEFAULT_STYLE) -> Figure:
    """For each kind of transfer its busy time, split into what a GPU waits for and the rest."""
    rows = result.communication
    figure = Figure()
    if rows:
        exposed = [min(row.exposed_s, row.busy_s) for row in rows]
        colour = CLASS_COLOURS["exposed_communication"]
        figure.add_trace(_trace("exposed: a GPU waits for it", rows, exposed, colour))
        for kind in dict.fromkeys(row.kind for row in rows):
            own = [row for row in rows if row.kind == kind]
            rest = [max(0.0, row.busy_s - row.exposed_s) for row in own]
            colour = KIND_COLOURS.get(kind, OTHER)
            figure.add_trace(_trace(f"{safe(kind)} beside other work", own, rest, colour))
    longest = max((row.busy_s * 1e3 for row in rows), default=0.0) or 1.0
    figure.update_layout(
        barmode="stack",
        xaxis=value_axis(style, "time per GPU, mean (ms)", range=[0, longest * 1.02]),
        yaxis={**row_axis(style, [_name(row) for row in rows]), "showticklabels": False},
        annotations=[_label(i, row, style) for i, row in enumerate(rows)],
    )
    height = round((ROW_LINES * max(2, len(rows)) + 6) * style.font_size)
    finish(figure, style, height=height, revision="communication")
    if not rows:
        say_nothing_to_show(figure, style, "No communication: nothing moves in this step.")
    return figure


def _name(row: Communication) -> str:
    return safe(row.kind if row.kind == row.purpose else f"{row.kind}: {row.purpose}")


def _trace(
    name: str, rows: Sequence[Communication], seconds: Sequence[float], colour: str
) -> Trace:
    return bar_trace(
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
                "1 transfer" if row.transfers == 1 else f"{row.transfers:,} transfers",
            )
            for s, row in zip(seconds, rows, strict=True)
        ],
        hovertemplate=_HOVER,
        marker={"color": colour, "line": {"width": 0}},
        offset=BAR_FROM,
        width=BAR_HEIGHT,
    )


def _label(position: int, row: Communication, style: Style) -> dict[str, Any]:
    """What a bar is and amounts to, above it: beside it a narrow page has no room."""
    return {
        "text": f"<b>{_name(row)}</b><br>{_summary(row)}",
        "align": "left",
        "x": 0,
        "xref": "paper",
        "xanchor": "left",
        "y": position + BAR_FROM,
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"size": style.font_size, "color": style.text},
    }


def _summary(row: Communication) -> str:
    exposed = f"exposed {time_text(row.exposed_s * 1e3)}"
    share = f" ({share_text(row.exposed_s, row.busy_s)})" if row.exposed_s else ""
    return (
        f"busy {time_text(row.busy_s * 1e3)}, {exposed}{share} {MIDDLE_DOT} {bytes_text(row.bytes)}"
    )
