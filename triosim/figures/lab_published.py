"""Simulated runs beside what was published of them, one row each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from triosim.figures.answer_axis import PUBLISHED_COLOUR, SIMULATION_COLOUR
from triosim.figures.figure import Figure, scatter_trace
from triosim.figures.style import DEFAULT_STYLE, Style, finish, row_axis, value_axis
from triosim.figures.text import safe, short

ROOM = 1.7  # of the largest value, for what is written beside it, on a phone too


@dataclass(frozen=True, kw_only=True, slots=True)
class RunRow:
    """One run; None for what was not published. `low` to `high` is the band of the simulation."""

    label: str
    simulated: float
    published: float | None = None
    low: float | None = None
    high: float | None = None


def beside_published(rows: Sequence[RunRow], unit: str, *, style: Style = DEFAULT_STYLE) -> Figure:
    """Published and simulated values on one axis from 0; the error is written beside them."""
    figure = Figure()
    labels = [safe(row.label) for row in rows]
    known = [row for row in rows if row.published is not None]
    figure.add_trace(
        scatter_trace(
            x=[row.published for row in known], y=[safe(row.label) for row in known],
            mode="markers", name="Published",
            marker={
                "symbol": "diamond", "size": 20, "color": PUBLISHED_COLOUR,
                "line": {"width": 1, "color": style.surface},
            },
            hovertemplate=f"published: %{{x:.4g}} {safe(unit)}<extra></extra>", cliponaxis=False,
        )
    )  # fmt: skip
    band = {}
    if all(row.low is not None and row.high is not None for row in rows):
        band = {
            "type": "data", "symmetric": False, "thickness": 2, "width": 5,
            "array": [(row.high or 0) - row.simulated for row in rows],
            "arrayminus": [row.simulated - (row.low or 0) for row in rows],
        }  # fmt: skip
    figure.add_trace(
        scatter_trace(
            x=[row.simulated for row in rows], y=labels, mode="markers", name="Simulated",
            marker={
                "symbol": "circle", "size": 12, "color": SIMULATION_COLOUR,
                "line": {"width": 1, "color": style.surface},
            },
            error_x=band or None,
            hovertemplate=f"simulated: %{{x:.4g}} {safe(unit)}<extra></extra>", cliponaxis=False,
        )
    )  # fmt: skip
    most = max((v for r in rows for v in (r.simulated, r.published, r.high) if v), default=1.0)
    for row in rows:
        right = max(v for v in (row.simulated, row.published, row.high) if v is not None)
        figure.add_annotation(
            x=right, y=safe(row.label), text=_said(row), showarrow=False, xanchor="left",
            xshift=14, font={"size": style.font_size, "color": style.text},
        )  # fmt: skip
    height = round(len(rows) * 2.6 * style.font_size + 7.5 * style.font_size)
    finish(figure, style, height=height, revision="beside-published")
    figure.update_layout(
        xaxis=value_axis(style, safe(unit), range=[0, ROOM * most], fixedrange=True),
        yaxis=row_axis(style, labels),
        dragmode=False,
    )
    return figure


def _said(row: RunRow) -> str:
    text = f"<b>{short(row.simulated, 3)}</b>"
    if row.published is None:
        return text
    error = f"{100 * (row.simulated / row.published - 1):+.1f} %".replace("-", "\u2212")
    return f"{text} ({error})"
