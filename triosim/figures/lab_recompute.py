"""Recomputation's pictures: bytes of one layer, of every layer, and what memory buys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from triosim.figures.figure import Figure, bar_trace, scatter_trace
from triosim.figures.palette import CATEGORY_COLOURS, CLASS_COLOURS, PHASE_COLOURS
from triosim.figures.style import DEFAULT_STYLE, Style, finish, row_axis, rows_height, value_axis
from triosim.figures.text import digits, short
from triosim.figures.train_colours import STEP_COLOURS

if TYPE_CHECKING:
    from triosim.lab.recompute_step import Item, Point

CHART_PX = 320
LAYERS_PX = 230
KEPT_COLOUR = CATEGORY_COLOURS["activations"]
AGAIN_COLOUR = STEP_COLOURS["recompute"]
SQUARED_COLOUR = CLASS_COLOURS["exposed_communication"]
MODE_COLOURS = (
    PHASE_COLOURS["backward"], PHASE_COLOURS["fetch"], PHASE_COLOURS["optimizer"],
    PHASE_COLOURS["all-reduce"], PHASE_COLOURS["send"],
)  # fmt: skip
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross")


def bytes_by_mode(
    kept_gb: Mapping[str, float], chosen: str, *, style: Style = DEFAULT_STYLE
) -> Figure:
    """What one layer keeps under each mode, with its share of what the first one keeps."""
    labels = [f"<b>{name}</b>" if name == chosen else name for name in kept_gb]
    whole = next(iter(kept_gb.values())) or 1.0
    figure = _bars(labels, list(kept_gb.values()), [KEPT_COLOUR] * len(labels), style)
    for label, value in zip(labels, kept_gb.values(), strict=True):
        text = f"<b>{short(value, 4)}</b>"
        if value != whole:
            text += f" ({100 * value / whole:.1f} %)"
        _beside(figure, label, value, text, style)
    return _finish_bars(figure, labels, "kept of one layer (GB)", 1.45 * whole, style)


def bytes_by_item(items: Sequence[Item], *, style: Style = DEFAULT_STYLE) -> Figure:
    """What a layer keeps where nothing runs again; what grows with s squared has its colour."""
    figure = Figure()
    labels = [item.name for item in items]
    groups = (("grows with s\u00b2", True, SQUARED_COLOUR), ("grows with s", False, KEPT_COLOUR))
    for name, squared, colour in groups:
        own = [item for item in items if item.squared == squared]
        if own:
            figure.add_trace(
                bar_trace(
                    orientation="h", y=[item.name for item in own], x=[item.gb for item in own],
                    name=name, meta=name, marker={"color": colour},
                    hovertemplate="%{y}: %{x:.4g} GB<extra></extra>",
                )
            )  # fmt: skip
    for item in items:
        _beside(figure, item.name, item.gb, short(item.gb, 3), style)
    most = max((item.gb for item in items), default=1.0)
    _finish_bars(figure, labels, "kept of one layer (GB)", 1.2 * most, style)
    return figure.update_layout(showlegend=True)


def layers(kept_gib: Sequence[float], *, style: Style = DEFAULT_STYLE) -> Figure:
    """What every layer keeps; those that keep least while others keep more run again."""
    least, most = min(kept_gib), max(kept_gib)
    again = [kept < most for kept in kept_gib] if most > least else [False] * len(kept_gib)
    figure = Figure()
    for name, flag, colour in (("kept", False, KEPT_COLOUR), ("runs again", True, AGAIN_COLOUR)):
        own = [layer for layer, is_again in enumerate(again) if is_again == flag]
        if own:
            figure.add_trace(
                bar_trace(
                    x=own, y=[kept_gib[layer] for layer in own], name=name, meta=name,
                    marker={"color": colour},
                    hovertemplate="layer %{x}: %{y:.3f} GiB<extra></extra>",
                )
            )  # fmt: skip
    finish(figure, style, height=LAYERS_PX, revision="layers")
    figure.update_layout(
        showlegend=any(again), bargap=0.15, dragmode=False,
        xaxis=value_axis(style, "layer", showgrid=False, fixedrange=True),
        yaxis=value_axis(style, "GiB", rangemode="tozero", fixedrange=True),
    )  # fmt: skip
    return figure


def speed_for_memory(
    found: Sequence[Point],
    chosen: str,
    capacity_gib: float,
    buys: str,
    *,
    style: Style = DEFAULT_STYLE,
) -> Figure:
    """Throughput against memory: a line for each mode, over what is bought ("batch", "shards").

    Right of the capacity marks are hollow: that does not fit.
    """
    figure = Figure()
    modes = list(dict.fromkeys(point.mode for point in found))
    for mode, colour, symbol in zip(modes, MODE_COLOURS, SYMBOLS, strict=False):
        own = [point for point in found if point.mode == mode]
        figure.add_trace(
            scatter_trace(
                x=[p.peak_gib for p in own],
                y=[p.tokens_per_s for p in own],
                mode="lines+markers+text",
                name=mode,
                meta=mode,
                line={"color": colour, "width": 3 if mode == chosen else 1.5},
                marker={
                    "size": 13 if mode == chosen else 10,
                    "symbol": [symbol if p.fits else f"{symbol}-open" for p in own],
                    "color": colour,
                    "line": {"width": 2, "color": colour},
                },
                text=[f"{getattr(p, buys)}" for p in own],
                textposition="top center",
                textfont={"size": style.small, "color": style.text},
                hovertemplate=f"<b>{mode}</b><br>{_BOUGHT[buys]} %{{text}}<br>%{{x:.1f}} GiB<br>"
                "%{y:,.0f} tokens/s of a GPU<extra></extra>",
            )
        )
    figure.add_vline(x=capacity_gib, line={"color": style.text, "width": 1.5, "dash": "dash"})
    figure.add_annotation(
        x=capacity_gib, y=0, yref="paper", yanchor="bottom", xanchor="left", xshift=4,
        text=f"capacity {digits(capacity_gib)} GiB", showarrow=False,
        font={"size": style.font_size, "color": style.muted},
    )  # fmt: skip
    finish(figure, style, height=CHART_PX, revision=f"memory-buys-{buys}")
    low, high = (edge(p.tokens_per_s for p in found) for edge in (min, max))
    right = max(capacity_gib, max(p.peak_gib for p in found))
    figure.update_layout(
        xaxis=value_axis(style, "peak of a GPU (GiB)", range=[0, 1.06 * right]),
        yaxis=value_axis(
            style, "tokens/s of a GPU", range=[low - 0.25 * (high - low or low), 1.08 * high]
        ),
        dragmode=False,
    )
    figure.update_xaxes(fixedrange=True)
    figure.update_yaxes(fixedrange=True)
    return figure


_BOUGHT = {"batch": "micro-batch", "shards": "shards"}


def _bars(
    labels: Sequence[str], values: Sequence[float], colours: Sequence[str], style: Style
) -> Figure:
    return Figure(
        bar_trace(
            orientation="h", y=list(labels), x=list(values), marker={"color": list(colours)},
            hovertemplate="%{y}: %{x:.4g} GB<extra></extra>",
        )
    )  # fmt: skip


def _beside(figure: Figure, label: str, value: float, text: str, style: Style) -> None:
    figure.add_annotation(
        x=value, y=label, text=text, showarrow=False, xanchor="left", xshift=5,
        font={"size": style.font_size, "color": style.text},
    )  # fmt: skip


def _finish_bars(
    figure: Figure, labels: list[str], title: str, most: float, style: Style
) -> Figure:
    height = rows_height(len(labels), style, extra=5)
    finish(figure, style, height=height, revision=f"{title} {len(labels)}")
    return figure.update_layout(
        showlegend=False, bargap=0.25, dragmode=False,
        xaxis=value_axis(style, title, range=[0, most or 1.0], fixedrange=True),
        yaxis=row_axis(style, labels),
    )  # fmt: skip
