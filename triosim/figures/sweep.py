"""Sweeps: a metric over one field, and memory against speed.

The first custom value of every point is its index in the sweep, the second why it is left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from triosim.figures.figure import Figure, Trace, scatter_trace
from triosim.figures.palette import mixed
from triosim.figures.style import DEFAULT_STYLE, Style, finish, value_axis
from triosim.figures.sweep_marks import (
    BEST,
    CHART_LINES,
    FITS,
    FITS_NAME,
    HOVER,
    NO_ANSWER,
    NO_ANSWER_NAME,
    TOO_LARGE,
    TOO_LARGE_NAME,
    Say,
    axis_title,
    empty,
    told,
    values_of,
)
from triosim.figures.text import safe, short
from triosim.sweep import METRICS, Point
from triosim.sweep.found import best_of, pareto_of

SPAN = 30.0  # from the least to the greatest value: beyond that, the axis is logarithmic
MOST_TICKS = 14


def sweep_line(
    points: Sequence[Point],
    field: str,
    label: str,
    metric: str,
    *,
    say: Say,
    style: Style = DEFAULT_STYLE,
) -> Figure:
    """A metric over the values of one field; `say` writes a field's value.

    Numbers are an axis, logarithmic where they span much; everything else is categories. Points
    without a value stand at the bottom.
    """
    figure = Figure()
    known = METRICS[metric]
    numeric = all(_is_number(point.settings[field]) for point in points)
    values = values_of(points, metric)
    if not values:
        return empty(figure, style, points)
    low, high = _range(values)
    for name, colour, symbol, members in _groups(points, metric):
        line = name == FITS_NAME
        members = sorted(members, key=lambda p: p.settings[field]) if numeric else members
        figure.add_trace(
            scatter_trace(
                x=[p.settings[field] if numeric else safe(say(field, p.settings[field]))
                   for p in members],
                y=[low if p.metrics[metric] is None else p.metrics[metric] for p in members],
                mode="lines+markers" if line else "markers",
                line={"color": colour, "width": 2},
                marker={"color": colour, "size": 10, "symbol": symbol, **_rim(symbol, colour)},
                name=name,
                customdata=[told(p, metric, say) for p in members],
                hovertemplate=HOVER,
                cliponaxis=False,
            )
        )  # fmt: skip
    best = best_of(points, metric)
    if best is not None:
        x = best.settings[field] if numeric else safe(say(field, best.settings[field]))
        figure.add_trace(_star([x], [best.metrics[metric]], [told(best, metric, say)], style))
    axis = _number_axis(points, field) if numeric else _category_axis(points, field, say)
    figure.update_layout(
        xaxis=value_axis(style, label, **axis),
        yaxis=value_axis(style, axis_title(known), range=[low, high], fixedrange=True),
        hovermode="closest",
        dragmode=False,
        clickmode="event+select",
    )
    return finish(figure, style, height=CHART_LINES * style.font_size, revision="sweep-line")


def sweep_pareto(
    points: Sequence[Point],
    gain: str,
    *,
    say: Say,
    capacity_gib: float | None = None,
    style: Style = DEFAULT_STYLE,
) -> Figure:
    """Memory of the fullest GPU against a metric of speed, with the points that none beats in both.

    `capacity_gib` is the memory of a GPU where it is the same in all points.
    """
    cost = "peak_memory_gib"
    figure = Figure()
    drawn = [p for p in points if None not in (p.metrics[cost], p.metrics[gain])]
    if not drawn:
        return empty(figure, style, points)
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
                scatter_trace(
                    x=[p.metrics[cost] for p in members],
                    y=[p.metrics[gain] for p in members],
                    mode=mode,
                    line={"color": colour, "width": 2, "shape": "hv"},
                    marker={"color": colour, "size": 10, "symbol": symbol, **_rim(symbol, colour)},
                    name=name,
                    customdata=[told(p, gain, say, cost) for p in members],
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


def _star(xs: list[Any], ys: list[Any], told: list[Any], style: Style) -> Trace:
    return scatter_trace(
        x=xs, y=ys, mode="markers", name="best", customdata=told, hovertemplate=HOVER,
        marker={"symbol": "circle-open", "size": 18, "color": BEST, "line": {"width": 3}},
        cliponaxis=False,
    )  # fmt: skip


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
