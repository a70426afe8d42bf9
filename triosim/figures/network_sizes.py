"""Time and bandwidth of a collective against the size of the message, for every algorithm."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

from triosim.figures.figure import Figure, Trace, scatter_trace
from triosim.figures.palette import CLASS_COLOURS, PHASE_COLOURS, translucent
from triosim.figures.style import DEFAULT_STYLE, Style, finish, say_nothing_to_show, value_axis
from triosim.figures.text import bytes_text, digits, time_text

# Algorithms keep their colour and dash on every chart, however many are shown.
LOOKS: Mapping[str, tuple[str, str]] = {
    "ring": (PHASE_COLOURS["backward"], "solid"),
    "bidirectional-ring": (PHASE_COLOURS["forward"], "solid"),
    "tree": (PHASE_COLOURS["optimizer"], "solid"),
    "double-binary-tree": (PHASE_COLOURS["optimizer"], "dash"),
    "halving-doubling": (PHASE_COLOURS["fetch"], "solid"),
    "direct": (CLASS_COLOURS["bubble"], "solid"),
    "hierarchical": (PHASE_COLOURS["recv"], "solid"),
    "hierarchical-pipelined": (PHASE_COLOURS["recv"], "dash"),
    "torus": (PHASE_COLOURS["store"], "solid"),
    "in-network": (PHASE_COLOURS["send"], "solid"),
}
Curve = Sequence[tuple[float, float]]


def size_figure(
    curves: Mapping[str, Curve],
    *,
    quantity: str = "time",
    bus_factor: float = 1.0,
    best: Sequence[tuple[float, str]] = (),
    latency_until: float | None = None,
    here: float | None = None,
    calibrated: Curve = (),
    style: Style = DEFAULT_STYLE,
) -> Figure:
    """`curves` holds (bytes, seconds) of each algorithm; `quantity` is time, algbw or busbw.

    `best` are the algorithms that are fastest, each with the size in bytes from which it is; below
    `latency_until` bytes the fastest one spends most of its time on latency. `here` is the size
    that the page is about, `calibrated` a curve with measured protocol costs.
    """
    factor = bus_factor if quantity == "busbw" else 1.0
    figure = Figure()
    for name, curve in curves.items():
        colour, dash = LOOKS.get(name, (style.text, "solid"))
        figure.add_trace(
            _line(name, curve, quantity, factor, {"color": colour, "width": 1.8, "dash": dash})
        )
    fastest = _envelope(curves)
    if len(curves) > 1:
        halo = {"color": translucent("#D1BC00", 0.45), "width": 9}
        below = _line("fastest", fastest, quantity, factor, halo) | {"hoverinfo": "skip"}
        figure.traces.insert(0, below)
    if calibrated:
        look = {"color": style.text, "width": 2.2, "dash": "dot"}
        figure.add_trace(_line("calibrated", calibrated, quantity, factor, look))
    if not fastest or not any(seconds > 0 for _, seconds in fastest):
        finish(figure, style, height=round(30 * style.font_size), revision="sizes")
        say_nothing_to_show(figure, style, "Nothing moves: a group of one has nobody to talk to.")
        return figure
    low, high = fastest[0][0], fastest[-1][0]
    _regions(figure, low, high, latency_until, style)
    _marks(figure, best, fastest, quantity, factor, style)
    if here is not None and low <= here <= high:
        figure.add_vline(x=here, line={"color": style.muted, "width": 1.2, "dash": "dash"})
    _set_axes(figure, (low, high), quantity, style)
    finish(figure, style, height=round(33 * style.font_size), revision=f"sizes {quantity}")
    # Up to twelve entries, in three lines of a page.
    lines = {"maxheight": 3 * 1.75 * style.font_size, "font": {"size": style.small}}
    return figure.update_layout(legend=lines)


def _set_axes(figure: Figure, limits: tuple[float, float], quantity: str, style: Style) -> None:
    low, high = limits
    title = "time" if quantity == "time" else f"{quantity} (GB/s)"
    ticks = [10.0**k for k in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)]
    figure.update_layout(
        xaxis=value_axis(
            style, "message size", type="log", range=[math.log10(low), math.log10(high)],
            tickvals=ticks, ticktext=[bytes_text(size) for size in ticks],
        ),
        yaxis=value_axis(style, title, type="log", **_ticks(quantity)),
        hovermode="closest",
    )  # fmt: skip


def _ticks(quantity: str) -> dict[str, object]:
    """Powers of ten in the unit that suits each."""
    if quantity != "time":
        return {"dtick": 1, "tickformat": "~g"}
    ticks = [10.0**k for k in range(-6, 13)]
    return {"tickvals": ticks, "ticktext": [time_text(ms) for ms in ticks]}


def _envelope(curves: Mapping[str, Curve]) -> list[tuple[float, float]]:
    """The least time at each size; all curves have the same sizes."""
    return [
        (points[0][0], min(seconds for _, seconds in points))
        for points in zip(*curves.values(), strict=True)
    ]


def _value(size: float, seconds: float, quantity: str, factor: float) -> float | None:
    if seconds <= 0:
        return None
    return seconds * 1e3 if quantity == "time" else factor * size / seconds / 1e9


def _line(
    name: str, curve: Curve, quantity: str, factor: float, look: Mapping[str, object]
) -> Trace:
    values = [_value(size, seconds, quantity, factor) for size, seconds in curve]
    return scatter_trace(
        x=[size for size, _ in curve],
        y=values,
        mode="lines",
        name=name,
        line=dict(look),
        customdata=[
            (bytes_text(size), time_text(seconds * 1e3), _rate(value, quantity))
            for (size, seconds), value in zip(curve, values, strict=True)
        ],
        hovertemplate=f"<b>{name}</b><br>%{{customdata[0]}} in %{{customdata[1]}}%{{customdata[2]}}"
        "<extra></extra>",
        meta=name,
    )


def _rate(value: float | None, quantity: str) -> str:
    return "" if quantity == "time" or value is None else f"<br>{quantity} {digits(value)} GB/s"


def _regions(
    figure: Figure, low: float, high: float, latency_until: float | None, style: Style
) -> None:
    """Where latency takes most of the fastest time, and where bytes do."""
    if latency_until is None:
        return
    cut = min(max(latency_until, low), high)
    parts = (
        (low, cut, PHASE_COLOURS["fetch"], "\u03b1: latency"),
        (cut, high, PHASE_COLOURS["forward"], "\u03b2: bandwidth"),
    )
    for start, end, colour, text in parts:
        if math.log10(end / start) < 0.3:
            continue
        figure.add_vrect(
            x0=start, x1=end, fillcolor=translucent(colour, 0.1), line={"width": 0}, layer="below"
        )
        figure.add_annotation(
            text=text,
            x=math.log10(start),  # annotations want logarithms on such an axis, shapes do not
            y=1.0,
            yref="paper",
            xanchor="left",
            yanchor="top",
            showarrow=False,
            font={"size": style.font_size, "color": style.muted},
        )


def _marks(
    figure: Figure,
    best: Sequence[tuple[float, str]],
    fastest: Curve,
    quantity: str,
    factor: float,
    style: Style,
) -> None:
    """A point where one algorithm takes over from another, with the size."""
    low, high = fastest[0][0], fastest[-1][0]
    found = [(size, name) for size, name in best if low < size < high]
    if not found:
        return
    values = [_value(size, _at(fastest, size), quantity, factor) for size, _ in found]
    figure.add_trace(
        scatter_trace(
            x=[size for size, _ in found],
            y=values,
            mode="markers+text",
            marker={"size": 9, "color": style.surface, "line": {"color": style.text, "width": 2}},
            text=[bytes_text(size) for size, _ in found],
            textposition="bottom right" if quantity == "time" else "top left",
            textfont={"size": style.small, "color": style.text},
            hovertext=[f"from {bytes_text(size)} on {name} is faster" for size, name in found],
            hovertemplate="%{hovertext}<extra></extra>",
            showlegend=False,
            meta="crossover",
        )
    )


def _at(curve: Curve, size: float) -> float:
    """The value between two points of a curve of straight lines."""
    for (a, s), (b, t) in pairwise(curve):
        if a <= size <= b:
            return s + (t - s) * (size - a) / (b - a)
    return curve[-1][1]
