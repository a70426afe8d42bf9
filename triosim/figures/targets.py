"""Where a raster can be clicked: in each short stretch of a lane, the interval that fills most.

A browser tells nothing of a click on a heatmap. Points that are not seen lie over it instead, too
few to slow it down; the one that was clicked is marked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from triosim.figures.figure import Figure, scatter_trace
from triosim.figures.raster import Floats, Integers
from triosim.figures.style import Style

TARGETS = 1000
LEAST_PARTS = 12  # of a lane
# A click is on the nearest point if points are smaller than their distance; the marked one is seen.
SIZE_PX, MARKED_PX = 2, 12


def draw_targets(
    figure: Figure,
    labels: Sequence[str],
    intervals: tuple[Integers, Floats, Floats],
    window_ms: tuple[float, float],
    describe: Callable[[int], Sequence[Any]],
    hover: str,
    style: Style,
) -> None:
    """Add the points over the lanes `labels`.

    `intervals` are the lane (a position in `labels`), start and end in milliseconds of each one;
    `describe` gives the custom data of one by its position.
    """
    row, start, end = intervals
    parts = max(LEAST_PARTS, TARGETS // max(1, len(labels)))
    lane, part, chosen = longest(row, start, end, len(labels), parts, window_ms)
    width = (window_ms[1] - window_ms[0]) / parts
    low = np.maximum(start[chosen], window_ms[0] + part * width)
    high = np.minimum(end[chosen], window_ms[0] + (part + 1) * width)
    figure.add_trace(
        scatter_trace(
            mode="markers",
            x=((low + high) / 2).round(6),
            y=[labels[i] for i in lane.tolist()],
            customdata=[tuple(describe(i)) for i in chosen.tolist()],
            hovertemplate=hover,
            marker={"size": SIZE_PX, "color": style.text, "symbol": "x-thin", "opacity": 0,
                    "line": {"width": 3, "color": style.text}},
            selected={"marker": {"opacity": 1, "size": MARKED_PX}},
            unselected={"marker": {"opacity": 0}},
            showlegend=False,
            name="what fills most",
        )
    )  # fmt: skip


def longest(
    row: Integers, start: Floats, end: Floats, rows: int, parts: int, window: tuple[float, float]
) -> tuple[Integers, Integers, Integers]:
    """Per row and part of the window that has one: row, part, and the interval with most time."""
    width = (window[1] - window[0]) / parts
    low = np.clip((start - window[0]) / width, 0, parts)
    high = np.clip((end - window[0]) / width, 0, parts)
    seen = np.flatnonzero(high > low)
    first = low[seen].astype(np.int64)
    count = np.ceil(high[seen]).astype(np.int64) - first
    # One entry for each part that an interval touches.
    which = np.repeat(seen, count)
    part = np.arange(len(which)) - np.repeat(np.cumsum(count) - count - first, count)
    shared = np.minimum(high[which], part + 1) - np.maximum(low[which], part)
    order = np.argsort(shared, kind="stable")  # the last one written to a cell has most
    best = np.full(rows * parts, -1, dtype=np.int64)
    best[row[which[order]] * parts + part[order]] = which[order]
    cell = np.flatnonzero(best >= 0)
    return cell // parts, cell % parts, best[cell]
