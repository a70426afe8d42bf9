"""What all pictures of a sweep have in common: colours, names, what a hover tells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from triosim.figures.figure import Figure
from triosim.figures.palette import CLASS_COLOURS, PHASE_COLOURS
from triosim.figures.style import Style, finish, lines_of, say_nothing_to_show
from triosim.figures.text import safe, short
from triosim.sweep import METRICS, Metric, Point

FITS = PHASE_COLOURS["backward"]
TOO_LARGE = CLASS_COLOURS["exposed_communication"]
NO_ANSWER = CLASS_COLOURS["bubble"]
BEST = CLASS_COLOURS["imbalance"]
FITS_NAME, TOO_LARGE_NAME, NO_ANSWER_NAME = "fits", "does not fit in memory", "no answer"
CHART_LINES = 27  # of text: the height of a chart
HOVER = "%{customdata[2]}<extra></extra>"
Say = Callable[[str, Any], str]


def axis_title(metric: Metric) -> str:
    """A metric and its unit."""
    return f"{metric.text} ({metric.unit})" if metric.unit else metric.text


def values_of(points: Sequence[Point], metric: str) -> list[float]:
    """The metric of those that have it."""
    return [value for point in points if (value := point.metrics[metric]) is not None]


def told(point: Point, metric: str, say: Say, *more: str) -> tuple[int, str, str]:
    """Index, reason, and what a hover says."""
    lines = [f"<b>{safe(', '.join(say(f, v) for f, v in point.settings.items()))}</b>"]
    for name in (metric, *more):
        value = point.metrics[name]
        if value is not None:
            known = METRICS[name]
            lines.append(f"{known.text}: {short(value)} {known.unit}".rstrip())
    lines += [safe(line) for line in lines_of(point.reason or "")]
    return point.index, point.reason or "", "<br>".join(lines)


def empty(figure: Figure, style: Style, points: Sequence[Point]) -> Figure:
    """A sentence in place of a picture."""
    sentence = "None of these steps has this metric." if points else "Nothing is simulated yet."
    finish(figure, style, height=round(12 * style.font_size), revision="sweep-empty")
    say_nothing_to_show(figure, style, sentence)
    return figure
