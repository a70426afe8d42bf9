"""Memory of a training step: over time for one stage, and at each stage's peak by what it holds."""

from __future__ import annotations

import numpy as np

from triosim.analysis.memory import MemoryCurve
from triosim.figures.figure import Figure, Trace, bar_trace, scatter_trace
from triosim.figures.memory import keep
from triosim.figures.palette import text_on, translucent
from triosim.figures.style import (
    DEFAULT_STYLE,
    Style,
    finish,
    row_axis,
    rows_height,
    value_axis,
)
from triosim.figures.text import digits, time_text
from triosim.figures.train_breakdown import class_labels
from triosim.figures.train_colours import HELD_COLOURS, roomy_legend
from triosim.train import TrainResult

GIB = 2.0**30
LABELLED_SHARE = 0.05
NEAR = 0.5  # of the capacity: a lower peak would be a thin strip below its line


def memory_over_step(result: TrainResult, c: int, *, style: Style = DEFAULT_STYLE) -> Figure:
    """Stacked levels of one rank of class `c`, its peak and the capacity."""
    curve = result.memory[c]
    kept = keep(curve.time_s, curve.total_bytes)
    total_ms = result.tasks.total_s * 1e3
    time = np.append(curve.time_s[kept] * 1e3, total_ms)
    figure, below = Figure(), np.zeros(len(time))
    for name, levels in curve.bytes_by_category.items():
        if not levels.any():
            continue
        own = levels[kept] / GIB
        own = np.append(own, own[-1])
        below = below + own
        figure.add_trace(_layer(name, time, below, own, first=not figure.traces))
    _mark(figure, curve, style)
    capacity, peak = result.capacity_bytes / GIB, curve.peak_bytes / GIB
    figure.add_hline(y=capacity, line={"color": style.text, "width": 1.5, "dash": "dash"})
    top = max(capacity, peak) if peak > NEAR * capacity else peak
    _say_capacity(figure, capacity, style, seen=top >= capacity)
    figure.update_layout(
        xaxis=value_axis(
            style, "time (ms)", range=[0, total_ms or 1.0],
            unifiedhovertitle={"text": "<b>at %{x:.4~f} ms</b>"},
        ),
        yaxis=value_axis(style, "memory (GiB)", range=[0, top * 1.12]),
        hovermode="x unified",
    )  # fmt: skip
    finish(figure, style, height=round(27 * style.font_size), revision="train-memory")
    return roomy_legend(figure, style)


def memory_by_stage(result: TrainResult, *, style: Style = DEFAULT_STYLE) -> Figure:
    """What a rank of each class holds at its peak, against the capacity."""
    labels = class_labels(result)
    held = [_at_peak(curve) for curve in result.memory]
    capacity = result.capacity_bytes / GIB
    top = max(capacity, max(sum(parts.values()) for parts in held))
    figure = Figure()
    for name in held[0]:
        values = [parts[name] for parts in held]
        if not any(values):
            continue
        colour = HELD_COLOURS[name]
        figure.add_trace(
            bar_trace(
                orientation="h",
                name=name,
                meta=name,
                y=labels,
                x=values,
                hovertemplate=f"<b>%{{y}}</b><br>{name}: %{{x:.2f}} GiB<extra></extra>",
                marker={"color": colour, "line": {"width": 0}},
                text=[f"{value:.1f}" if value >= LABELLED_SHARE * top else "" for value in values],
                textposition="inside",
                insidetextanchor="middle",
                textangle=0,
                insidetextfont={"color": text_on(colour), "size": style.small},
            )
        )
    figure.add_vline(x=capacity, line={"color": style.text, "width": 1.5, "dash": "dash"})
    figure.update_layout(
        barmode="stack",
        bargap=0.25,
        xaxis=value_axis(
            style, f"GiB at the peak; dashed: capacity, {digits(capacity)} GiB",
            range=[0, top * 1.04],
        ),
        yaxis=row_axis(style, labels),
    )  # fmt: skip
    height = rows_height(len(labels), style, extra=7.0)
    finish(figure, style, height=height, revision="train-memory-stages")
    return roomy_legend(figure, style)


def _at_peak(curve: MemoryCurve) -> dict[str, float]:
    """GiB of each category at the instant of the peak; they sum to it."""
    at = int(curve.total_bytes.argmax())
    return {name: float(levels[at]) / GIB for name, levels in curve.bytes_by_category.items()}


def _layer(
    name: str, time: np.ndarray, below: np.ndarray, own: np.ndarray, *, first: bool
) -> Trace:
    colour = HELD_COLOURS[name]
    return scatter_trace(
        x=time,
        y=below.astype(np.float32),
        customdata=own.astype(np.float32),
        name=name,
        meta=name,
        mode="lines",
        line={"shape": "hv", "width": 0.8, "color": colour},
        fill="tozeroy" if first else "tonexty",
        fillcolor=translucent(colour, 0.75),
        hovertemplate="%{customdata:.3~f} GiB",
    )


def _mark(figure: Figure, curve: MemoryCurve, style: Style) -> None:
    time_ms, peak = curve.peak_time_s * 1e3, curve.peak_bytes / GIB
    figure.add_trace(
        scatter_trace(
            x=[time_ms],
            y=[peak],
            mode="markers",
            marker={"symbol": "diamond", "size": 10, "color": style.text},
            name=f"peak {digits(peak)} GiB at {time_text(time_ms)}",
            meta="peak",
            hoverinfo="skip",
        )
    )


def _say_capacity(figure: Figure, capacity: float, style: Style, *, seen: bool) -> None:
    """At its line, or on top where that lies far above."""
    text = f"capacity {digits(capacity)} GiB"
    figure.add_annotation(
        text=text if seen else f"{text}, far above",
        x=1, y=capacity if seen else 1, xref="paper", yref="y" if seen else "paper",
        xanchor="right", yanchor="bottom" if seen else "top",
        showarrow=False, font={"size": style.font_size, "color": style.muted},
    )  # fmt: skip
