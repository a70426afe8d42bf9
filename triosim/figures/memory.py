"""Memory in use over the step, by what it holds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from triosim.analysis.memory import MemoryCurve
from triosim.figures.figure import Figure, Trace, scatter_trace
from triosim.figures.palette import translucent
from triosim.figures.style import DEFAULT_STYLE, Style, finish, value_axis
from triosim.figures.text import memory_text, share_text, time_text
from triosim.figures.train_colours import HELD_COLOURS
from triosim.result import Result

MAX_POINTS = 4000
# Where the capacity is further away than this many peaks, drawing it would squash the curve.
CAPACITY_IN_VIEW = 4.0
GIB, MIB = 2.0**30, 2.0**20
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def memory_figure(result: Result, rank: int, *, style: Style = DEFAULT_STYLE) -> Figure:
    """Stacked steps of one rank's memory, its peak, and the capacity."""
    curve = result.memory[result.class_of(rank)]
    unit, name = (GIB, "GiB") if curve.peak_bytes >= 0.1 * GIB else (MIB, "MiB")
    figure = Figure()
    whole_ms = result.tasks.total_s * 1e3
    for trace in _layers(curve, whole_ms, unit, name):
        figure.add_trace(trace)
    _mark_peak(figure, curve, unit, style)
    in_view = result.capacity_bytes <= CAPACITY_IN_VIEW * curve.peak_bytes
    top = result.capacity_bytes if in_view else curve.peak_bytes
    if in_view:
        _draw_capacity(figure, result.capacity_bytes / unit, style)
    figure.update_layout(
        xaxis=value_axis(
            style,
            "time (ms)",
            range=[0, whole_ms or 1.0],
            unifiedhovertitle={"text": "<b>at %{x:.4~f} ms</b>"},
        ),
        yaxis=value_axis(
            style, f"memory of GPU {rank} ({name})", range=[0, (top / unit or 1.0) * 1.16]
        ),
        hovermode="x unified",
    )
    _sum_up(figure, curve.peak_bytes, result.capacity_bytes, style)
    return finish(figure, style, height=round(26 * style.font_size), revision=f"memory-{rank}")


def keep(time_s: Floats, total: Integers, limit: int = MAX_POINTS) -> Integers:
    """Positions of the levels to draw: at each instant the highest and the last.

    Of more than `limit` of these the highest and the last of equal runs, so the curve never looks
    lower than it was.
    """
    last = np.flatnonzero(np.append(np.diff(time_s) > 0, True))
    # Times ascend, so sorting by level within each instant puts its highest where its last was.
    highest = np.lexsort((total, time_s))[last]
    kept = np.union1d(highest, last)
    if len(kept) <= limit:
        return kept
    edges = np.linspace(0, len(kept), limit // 2 + 1).astype(np.int64)
    runs = zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    tops = [low + int(total[kept[low:high]].argmax()) for low, high in runs]
    drawn: Integers = kept[np.union1d(tops, edges[1:] - 1)]
    return drawn


def _layers(curve: MemoryCurve, total_ms: float, unit: float, name: str) -> Iterator[Trace]:
    """One area for each category that is ever in use, each on top of the one before."""
    kept = keep(curve.time_s, curve.total_bytes)
    time = np.append(curve.time_s[kept] * 1e3, total_ms)
    below = np.zeros(len(time))
    fill = "tozeroy"
    for category, levels in curve.bytes_by_category.items():
        if not levels.any():
            continue
        own = levels[kept] / unit
        own = np.append(own, own[-1])
        below = below + own
        yield scatter_trace(
            x=time,
            y=below.astype(np.float32),
            customdata=own.astype(np.float32),
            name=category,
            meta=category,
            mode="lines",
            line={"shape": "hv", "width": 0.8, "color": HELD_COLOURS[category]},
            fill=fill,
            fillcolor=translucent(HELD_COLOURS[category], 0.75),
            hovertemplate=f"%{{customdata:.3~f}} {name}",
        )
        fill = "tonexty"


def _mark_peak(figure: Figure, curve: MemoryCurve, unit: float, style: Style) -> None:
    time_ms, peak = curve.peak_time_s * 1e3, curve.peak_bytes
    figure.add_trace(
        scatter_trace(
            x=[time_ms],
            y=[peak / unit],
            mode="markers",
            marker={"symbol": "diamond", "size": 10, "color": style.text},
            name=f"peak {memory_text(peak)} at {time_text(time_ms)}",
            meta="peak",
            hoverinfo="skip",
        )
    )


def _draw_capacity(figure: Figure, capacity: float, style: Style) -> None:
    figure.add_hline(y=capacity, line={"color": style.text, "width": 1.5, "dash": "dash"})


def _sum_up(figure: Figure, peak: int, capacity: int, style: Style) -> None:
    figure.add_annotation(
        text=(
            f"capacity {memory_text(capacity)}, peak {memory_text(peak)} "
            f"({share_text(peak, capacity)})"
        ),
        x=1,
        y=1,
        xref="paper",
        yref="paper",
        xanchor="right",
        yanchor="top",
        showarrow=False,
        font={"size": style.font_size, "color": style.muted},
    )
