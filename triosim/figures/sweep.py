"""Sweeps: a metric over one field, over two fields, and memory against speed.

The first custom value of every point is its index in the sweep, the second why it is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import plotly.graph_objects as go

from triosim.figures.palette import CLASS_COLOURS, PHASE_COLOURS, mixed, text_on
from triosim.figures.style import (
    CLEAR,
    DEFAULT_STYLE,
    MAX_HEIGHT,
    Style,
    finish,
    legend_entry,
    lines_of,
    say_nothing_to_show,
    value_axis,
)
from triosim.figures.text import safe, short
from triosim.sweep import METRICS, Metric, Point
from triosim.sweep.found import best_of, pareto_of

FITS = PHASE_COLOURS["backward"]
TOO_LARGE = CLASS_COLOURS["exposed_communication"]
NO_ANSWER = CLASS_COLOURS["bubble"]
BEST = CLASS_COLOURS["imbalance"]
FITS_NAME, TOO_LARGE_NAME, NO_ANSWER_NAME = "fits", "does not fit in memory", "no answer"
SPAN = 30.0  # from the least to the greatest value: beyond that, the axis is logarithmic
MOST_TICKS = 14
MOST_TEXTS = 260  # cells with a number in them
CHART_LINES = 27  # of text: the height of a chart
HOVER = "%{customdata[2]}<extra></extra>"
Say = Callable[[str, Any], str]


def axis_title(metric: Metric) -> str:
    """A metric and its unit."""
    return f"{metric.text} ({metric.unit})" if metric.unit else metric.text


def sweep_line(
    points: Sequence[Point],
    field: str,
    label: str,
    metric: str,
    *,
    say: Say,
    style: Style = DEFAULT_STYLE,
) -> go.Figure:
    """A metric over the values of one field; `say` writes a field's value.

    Numbers are an axis, logarithmic where they span much; everything else is categories. Points
    without a value stand at the bottom.
    """
    figure = go.Figure()
    known = METRICS[metric]
    numeric = all(_is_number(point.settings[field]) for point in points)
    values = [p.metrics[metric] for p in points if p.metrics[metric] is not None]
    if not values:
        return _empty(figure, style, points)
    low, high = _range(values)
    for name, colour, symbol, members in _groups(points, metric):
        line = name == FITS_NAME
        members = sorted(members, key=lambda p: p.settings[field]) if numeric else members
        figure.add_trace(
            go.Scatter(
                x=[p.settings[field] if numeric else safe(say(field, p.settings[field]))
                   for p in members],
                y=[low if p.metrics[metric] is None else p.metrics[metric] for p in members],
                mode="lines+markers" if line else "markers",
                line={"color": colour, "width": 2},
                marker={"color": colour, "size": 10, "symbol": symbol, **_rim(symbol, colour)},
                name=name,
                customdata=[_told(p, metric, say) for p in members],
                hovertemplate=HOVER,
                cliponaxis=False,
            )
        )  # fmt: skip
    best = best_of(points, metric)
    if best is not None:
        x = best.settings[field] if numeric else safe(say(field, best.settings[field]))
        figure.add_trace(_star([x], [best.metrics[metric]], [_told(best, metric, say)], style))
    axis = _number_axis(points, field) if numeric else _category_axis(points, field, say)
    figure.update_layout(
        xaxis=value_axis(style, label, **axis),
        yaxis=value_axis(style, axis_title(known), range=[low, high], fixedrange=True),
        hovermode="closest",
        dragmode=False,
        clickmode="event+select",
    )
    return finish(figure, style, height=CHART_LINES * style.font_size, revision="sweep-line")


def sweep_heatmap(
    points: Sequence[Point],
    fields: tuple[str, str],
    labels: tuple[str, str],
    metric: str,
    *,
    say: Say,
    style: Style = DEFAULT_STYLE,
) -> go.Figure:
    """A metric over two fields, the first downwards; the better, the darker.

    Cells are marked by an unseen point each, which tells where a click was.
    """
    figure = go.Figure()
    known = METRICS[metric]
    rows, columns = (list(dict.fromkeys(p.settings[f] for p in points)) for f in fields)
    values = [p.metrics[metric] for p in points if p.feasible and p.metrics[metric] is not None]
    if not points:
        return _empty(figure, style, points)
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
            go.Heatmap(
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


def sweep_pareto(
    points: Sequence[Point],
    gain: str,
    *,
    say: Say,
    capacity_gib: float | None = None,
    style: Style = DEFAULT_STYLE,
) -> go.Figure:
    """Memory of the fullest GPU against a metric of speed, with the points that none beats in both.

    `capacity_gib` is the memory of a GPU where it is the same in all points.
    """
    cost = "peak_memory_gib"
    figure = go.Figure()
    drawn = [p for p in points if None not in (p.metrics[cost], p.metrics[gain])]
    if not drawn:
        return _empty(figure, style, points)
    front = pareto_of(points, cost, gain)
    better = {p.index for p in front}
    groups = (
        ("another is better in both", mixed(FITS, "#FFFFFF", 0.45), "circle", "markers",
         [p for p in drawn if p.feasible and p.index not in better]),
        (TOO_LARGE_NAME, TOO_LARGE, "x-thin", "markers", [p for p in drawn if not p.feasible]),
        ("no other is better in both", FITS, "circle", "lines+markers", front),
    )  # fmt: skip
    for name, colour, symbol, mode, members in groups:
        if members:
            figure.add_trace(
                go.Scatter(
                    x=[p.metrics[cost] for p in members],
                    y=[p.metrics[gain] for p in members],
                    mode=mode,
                    line={"color": colour, "width": 2, "shape": "hv"},
                    marker={"color": colour, "size": 10, "symbol": symbol, **_rim(symbol, colour)},
                    name=name,
                    customdata=[_told(p, gain, say, cost) for p in members],
                    hovertemplate=HOVER,
                )
            )
    if capacity_gib is not None:
        figure.add_vline(
            x=capacity_gib, line={"color": style.muted, "dash": "dot", "width": 1.5},
            annotation={
                "text": f"memory of a GPU, {capacity_gib:,.0f} GiB", "yanchor": "top",
                "font": {"size": style.small, "color": style.muted},
            },
        )  # fmt: skip
    figure.update_layout(
        xaxis=value_axis(style, axis_title(METRICS[cost]), rangemode="tozero", fixedrange=True),
        yaxis=value_axis(style, axis_title(METRICS[gain]), rangemode="tozero", fixedrange=True),
        hovermode="closest",
        dragmode=False,
        clickmode="event+select",
    )
    return finish(figure, style, height=CHART_LINES * style.font_size, revision="sweep-pareto")


def _groups(points: Sequence[Point], metric: str) -> list[tuple[str, str, str, list[Point]]]:
    """Name, colour, symbol and points of those that fit, do not fit and have no answer."""
    fits = [p for p in points if p.feasible and p.metrics[metric] is not None]
    large = [p for p in points if p.problem is None and not p.feasible]
    none = [p for p in points if p.problem is not None]
    found = [
        (FITS_NAME, FITS, "circle", fits),
        (TOO_LARGE_NAME, TOO_LARGE, "x-thin", large),
        (NO_ANSWER_NAME, NO_ANSWER, "cross-thin", none),
    ]
    return [group for group in found if group[3]]


def _rim(symbol: str, colour: str) -> dict[str, Any]:
    """Thin symbols are drawn by their rim alone."""
    return {"line": {"color": colour, "width": 3}} if symbol.endswith("thin") else {}


def _star(xs: list[Any], ys: list[Any], told: list[Any], style: Style) -> go.Scatter:
    return go.Scatter(
        x=xs, y=ys, mode="markers", name="best", customdata=told, hovertemplate=HOVER,
        marker={"symbol": "circle-open", "size": 18, "color": BEST, "line": {"width": 3}},
        cliponaxis=False,
    )  # fmt: skip


def _told(point: Point, metric: str, say: Say, *more: str) -> tuple[int, str, str]:
    """Index, reason, and what a hover says."""
    lines = [f"<b>{safe(', '.join(say(f, v) for f, v in point.settings.items()))}</b>"]
    for name in (metric, *more):
        value = point.metrics[name]
        if value is not None:
            known = METRICS[name]
            lines.append(f"{known.text}: {short(value)} {known.unit}".rstrip())
    lines += [safe(line) for line in lines_of(point.reason or "")]
    return point.index, point.reason or "", "<br>".join(lines)


def _cells(
    figure: go.Figure,
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
        go.Scatter(
            x=[x for x, _, _, _ in texts], y=[y for _, y, _, _ in texts], mode="text",
            text=[text for _, _, text, _ in texts], hoverinfo="skip", showlegend=False,
            textfont={"size": style.small, "color": [ink for _, _, _, ink in texts]},
        )
    )  # fmt: skip
    for name, colour in ((TOO_LARGE_NAME, TOO_LARGE), (NO_ANSWER_NAME, style.muted)):
        if any((p.problem is None) == (colour == TOO_LARGE) and not p.feasible for p in points):
            entry = legend_entry(name, colour)
            entry.marker.symbol = "x" if colour == TOO_LARGE else "line-ew-open"
            figure.add_trace(entry)


def _targets(
    figure: go.Figure,
    points: Sequence[Point],
    at: Mapping[int, tuple[int, int]],
    metric: str,
    say: Say,
    side_px: int,
    style: Style,
) -> None:
    """Squares that only the mouse sees; of those that overlap, the nearest counts."""
    figure.add_trace(
        go.Scatter(
            x=[at[p.index][0] for p in points],
            y=[at[p.index][1] for p in points],
            mode="markers",
            marker={
                "symbol": "square", "size": side_px, "opacity": 0.01, "color": style.surface,
            },  # fmt: skip
            customdata=[_told(p, metric, say) for p in points],
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
    step = math.ceil(len(values) / (30 if down else MOST_TICKS + 6))
    ticks = list(range(0, len(values), step))
    ends = [-0.5, len(values) - 0.5]
    return {
        "tickvals": ticks,
        "ticktext": [safe(say(field, values[tick])) for tick in ticks],
        "range": ends[::-1] if down else ends,
        "showgrid": False,
        "fixedrange": True,
    }


def _number_axis(points: Sequence[Point], field: str) -> dict[str, Any]:
    values = sorted({float(p.settings[field]) for p in points})
    log = _by_factors(values)
    axis: dict[str, Any] = {"type": "log" if log else "linear", "fixedrange": True}
    if len(values) <= MOST_TICKS:
        axis |= {"tickvals": values, "ticktext": [short(value, 6) for value in values]}
    if log:
        room = 0.04 * math.log10(values[-1] / values[0])
        axis["range"] = [math.log10(values[0]) - room, math.log10(values[-1]) + room]
    else:
        room = 0.04 * (values[-1] - values[0]) or 0.5
        axis["range"] = [values[0] - room, values[-1] + room]
    return axis


def _by_factors(values: Sequence[float]) -> bool:
    """Whether sorted values grow by factors rather than by steps."""
    if values[0] <= 0 or len(values) < 3:
        return False
    factors = [b / a for a, b in pairwise(values)]
    return values[-1] / values[0] >= SPAN or max(factors) <= 1.3 * min(factors)


def _category_axis(points: Sequence[Point], field: str, say: Say) -> dict[str, Any]:
    names = list(dict.fromkeys(safe(say(field, p.settings[field])) for p in points))
    return {
        "type": "category", "categoryorder": "array", "categoryarray": names,
        "range": [-0.5, len(names) - 0.5], "fixedrange": True,
    }  # fmt: skip


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _range(values: Sequence[float]) -> tuple[float, float]:
    """From 0, but where all values are close to each other."""
    low, high = min(values), max(values)
    start = 0.0 if low < 0.7 * high else low - 0.5 * (high - low)
    return start, high + 0.06 * (high - start or 1.0)


def _empty(figure: go.Figure, style: Style, points: Sequence[Point]) -> go.Figure:
    """A sentence in place of a picture."""
    sentence = "None of these steps has this metric." if points else "Nothing is simulated yet."
    finish(figure, style, height=round(12 * style.font_size), revision="sweep-empty")
    figure.update_layout(paper_bgcolor=CLEAR)
    say_nothing_to_show(figure, style, sentence)
    return figure
