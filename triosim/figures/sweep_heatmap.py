"""A metric over two fields of a sweep, as a heatmap whose cells can be clicked.

The first custom value of every cell is its index in the sweep, the second why it is left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from triosim.figures.figure import Figure, heatmap_trace, scatter_trace
from triosim.figures.palette import mixed, text_on
from triosim.figures.style import (
    DEFAULT_STYLE,
    MAX_HEIGHT,
    Style,
    finish,
    legend_entry,
    value_axis,
)
from triosim.figures.sweep_marks import (
    BEST,
    CHART_LINES,
    FITS,
    HOVER,
    NO_ANSWER_NAME,
    TOO_LARGE,
    TOO_LARGE_NAME,
    Say,
    empty,
    told,
    values_of,
)
from triosim.figures.text import safe, short
from triosim.sweep import METRICS, Point
from triosim.sweep.found import best_of

MOST_NAMES = {False: 20, True: 30}  # across, and down
MOST_TEXTS = 260  # cells with a number in them


def sweep_heatmap(
    points: Sequence[Point],
    fields: tuple[str, str],
    labels: tuple[str, str],
    metric: str,
    *,
    say: Say,
    style: Style = DEFAULT_STYLE,
) -> Figure:
    """A metric over two fields, the first downwards; the better, the darker.

    Cells are marked by an unseen point each, which tells where a click was.
    """
    figure = Figure()
    known = METRICS[metric]
    rows, columns = (list(dict.fromkeys(p.settings[f] for p in points)) for f in fields)
    values = values_of([point for point in points if point.feasible], metric)
    if not points:
        return empty(figure, style, points)
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    scale = _scale(style, reverse=known.less_is_better)
    grid: list[list[float | None]] = [[None] * len(columns) for _ in rows]
    at = {}
    for point in points:
        r, c = rows.index(point.settings[fields[0]]), columns.index(point.settings[fields[1]])
        at[point.index] = (c, r)
        grid[r][c] = point.metrics[metric] if point.feasible else None
    if values:
        figure.add_trace(
            heatmap_trace(
                x=list(range(len(columns))), y=list(range(len(rows))), z=grid, zmin=low,
                zmax=high if high > low else low + 1, colorscale=scale, xgap=1, ygap=1,
                hoverinfo="skip", showlegend=False,
                colorbar={
                    "title": {"text": known.unit, "font": {"size": style.small}},
                    "tickfont": {"size": style.small, "color": style.text}, "thickness": 12,
                    "outlinewidth": 0, "exponentformat": "none",
                } if len(values) > 1 else None,
                showscale=len(values) > 1,
            )
        )  # fmt: skip
    _cells(figure, points, at, metric, (low, high, scale), style)
    best = best_of(points, metric)
    if best is not None:
        x, y = at[best.index]
        figure.add_shape(
            type="rect", x0=x - 0.48, x1=x + 0.48, y0=y - 0.47, y1=y + 0.47,
            line={"color": BEST, "width": 3},
        )  # fmt: skip
        figure.add_trace(legend_entry("best", BEST))
    side = max(14, min(64, 330 // len(rows)))
    _targets(figure, points, at, metric, say, side, style)
    figure.update_layout(
        xaxis=value_axis(style, labels[1], **_named(columns, fields[1], say)),
        yaxis=value_axis(style, labels[0], **_named(rows, fields[0], say, down=True)),
        hovermode="closest",
        dragmode=False,
        clickmode="event+select",
    )
    height = min(MAX_HEIGHT, max(CHART_LINES * style.font_size, len(rows) * style.lane_px + 110))
    finish(figure, style, height=height, revision="sweep-heatmap")
    return figure


def _cells(
    figure: Figure,
    points: Sequence[Point],
    at: Mapping[int, tuple[int, int]],
    metric: str,
    colours: tuple[float, float, list[list[Any]]],
    style: Style,
) -> None:
    """A number in each cell that has room for it, a sign in those without."""
    low, high, scale = colours
    texts: list[tuple[int, int, str, str]] = []
    for point in points:
        value = point.metrics[metric]
        if point.feasible and value is not None:
            if len(points) <= MOST_TEXTS:
                share = (value - low) / (high - low) if high > low else 0.0
                ink = text_on(mixed(scale[0][1], scale[-1][1], share))
                texts.append((*at[point.index], short(value, 3), ink))
        else:
            large = point.problem is None
            texts.append((*at[point.index], *(("\u2715", TOO_LARGE) if large else
                                              ("\u2013", style.muted))))  # fmt: skip
    figure.add_trace(
        scatter_trace(
            x=[x for x, _, _, _ in texts], y=[y for _, y, _, _ in texts], mode="text",
            text=[text for _, _, text, _ in texts], hoverinfo="skip", showlegend=False,
            textfont={"size": style.small, "color": [ink for _, _, _, ink in texts]},
        )
    )  # fmt: skip
    for name, colour in ((TOO_LARGE_NAME, TOO_LARGE), (NO_ANSWER_NAME, style.muted)):
        if any((p.problem is None) == (colour == TOO_LARGE) and not p.feasible for p in points):
            entry = legend_entry(name, colour)
            entry["marker"]["symbol"] = "x" if colour == TOO_LARGE else "line-ew-open"
            figure.add_trace(entry)


def _targets(
    figure: Figure,
    points: Sequence[Point],
    at: Mapping[int, tuple[int, int]],
    metric: str,
    say: Say,
    side_px: int,
    style: Style,
) -> None:
    """Squares that only the mouse sees; of those that overlap, the nearest counts."""
    figure.add_trace(
        scatter_trace(
            x=[at[p.index][0] for p in points],
            y=[at[p.index][1] for p in points],
            mode="markers",
            marker={
                "symbol": "square",
                "size": side_px,
                "opacity": 0.01,
                "color": style.surface,
            },
            customdata=[told(p, metric, say) for p in points],
            hovertemplate=HOVER,
            showlegend=False,
            meta="cells",
        )
    )


def _scale(style: Style, *, reverse: bool) -> list[list[Any]]:
    """From the page's own colour to a deep one, the better the deeper."""
    pale = mixed(FITS, style.surface, 0.88)
    deep = mixed(FITS, "#FFFFFF", 0.25) if style.dark else FITS
    return [[0.0, deep], [1.0, pale]] if reverse else [[0.0, pale], [1.0, deep]]


def _named(values: list[Any], field: str, say: Say, *, down: bool = False) -> dict[str, Any]:
    """An axis of cells, with names that thin out."""
    step = math.ceil(len(values) / MOST_NAMES[down])
    ticks = list(range(0, len(values), step))
    ends = [-0.5, len(values) - 0.5]
    return {
        "tickvals": ticks,
        "ticktext": [safe(say(field, values[tick])) for tick in ticks],
        "range": ends[::-1] if down else ends,
        "showgrid": False,
        "fixedrange": True,
    }
