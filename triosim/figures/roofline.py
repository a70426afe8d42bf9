"""How fast operators compute against how much they compute per byte, under a GPU's roof."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from triosim.figures.figure import Figure, Trace, scatter_trace
from triosim.figures.palette import PHASE_COLOURS, translucent
from triosim.figures.style import (
    DEFAULT_STYLE,
    Style,
    finish,
    say_nothing_to_show,
    value_axis,
)
from triosim.figures.text import bytes_text, digits, operator_text, safe, share_text, time_text

if TYPE_CHECKING:
    from triosim.hardware import Gpu

MAX_POINTS = 2000  # those that take the most time
LEAST_SHARE = 1e-3  # of the step; the axes need not reach operators below
SMALLEST, LARGEST = 6.0, 26.0  # diameters in pixels
TERA = 1e12
_HOVER = (
    "<b>%{customdata[0]}</b><br>%{customdata[1]}"
    "<br>%{customdata[2]} at %{customdata[3]}"
    "<br>%{customdata[4]}, %{customdata[5]} of the step<extra></extra>"
)


def roofline_scatter(
    operators: pd.DataFrame,
    gpu: Gpu | None,
    *,
    style: Style = DEFAULT_STYLE,
    height: int | None = None,
) -> Figure:
    """One point for each operator that computes, as large as its time; the roof is the GPU's.

    `operators` has one row each with name, phase, module, kind, dtype, time_ms, flops and
    bytes. Those
    without floating-point operations, bytes or time have no place on the logarithmic axes.
    """
    drawn = computing(operators)
    figure = Figure()
    if not drawn.empty:
        x, y = drawn["flops"] / drawn["bytes"], drawn["flops"] / drawn["time_ms"] * 1e3 / TERA
        total_ms = float(operators["time_ms"].sum())
        seen = drawn["time_ms"] >= min(LEAST_SHARE * total_ms, drawn["time_ms"].max())
        ranges = _range(x[seen]), _range(y[seen])
        if gpu is not None:
            dtypes = _dtypes(drawn)
            ranges = ranges[0], _with_roof(ranges, gpu, dtypes)
            _draw_roof(figure, gpu, dtypes, ranges, style)
        for phase, own in drawn.groupby("phase", sort=False):
            figure.add_trace(_points(str(phase), own, x[own.index], y[own.index], total_ms, style))
        figure.update_layout(
            xaxis=_log_axis(style, "floating-point operations per byte", ranges[0]),
            yaxis=_log_axis(style, "TFLOP/s", ranges[1]),
            hovermode="closest",
        )
    finish(figure, style, height=height or round(34 * style.font_size), revision="roofline")
    if drawn.empty:
        say_nothing_to_show(figure, style, "This trace does not tell what its operators compute.")
    return figure


def computing(operators: pd.DataFrame) -> pd.DataFrame:
    """The operators that have a place: of many those that take the most time."""
    known = (operators["flops"] > 0) & (operators["bytes"] > 0) & (operators["time_ms"] > 0)
    return operators[known].nlargest(MAX_POINTS, "time_ms").sort_index()


def _dtypes(drawn: pd.DataFrame) -> list[str]:
    """What matrices are multiplied in; without any, what else is computed in."""
    matrices = drawn[drawn["kind"].isin(("gemm", "conv", "attention"))]
    return list((drawn if matrices.empty else matrices)["dtype"].unique())


def _range(values: pd.Series) -> tuple[float, float]:
    """Decimal logarithms with some room on both sides."""
    return math.log10(values.min()) - 0.35, math.log10(values.max()) + 0.35


def _with_roof(
    ranges: tuple[tuple[float, float], tuple[float, float]], gpu: Gpu, dtypes: Sequence[str]
) -> tuple[float, float]:
    """The range of y that shows the highest peak as well."""
    peak = max(gpu.peak(dtype) for dtype in dtypes) / TERA
    return ranges[1][0], max(ranges[1][1], math.log10(peak) + 0.7)


def _log_axis(style: Style, title: str, limits: tuple[float, float]) -> dict[str, object]:
    dtick = 1 if limits[1] - limits[0] > 2 else "D2"  # D2: also at 2 and 5
    return value_axis(style, title, type="log", range=list(limits), dtick=dtick)


def _draw_roof(
    figure: Figure,
    gpu: Gpu,
    dtypes: Sequence[str],
    ranges: tuple[tuple[float, float], tuple[float, float]],
    style: Style,
) -> None:
    """Memory's slope up to the peak of each type that the trace computes in."""
    slope = gpu.memory_bytes_per_s / TERA
    (left, right), (bottom, _) = ranges
    peaks = {gpu.computes_in(dtype): gpu.peak(dtype) / TERA for dtype in dtypes}
    for dtype, peak in sorted(peaks.items(), key=lambda item: -item[1]):
        ridge = peak / slope
        inside = left < math.log10(ridge) < right
        xs = [10**left, *([ridge] if inside else []), 10**right]
        figure.add_trace(
            scatter_trace(
                x=xs,
                y=[min(slope * x, peak) for x in xs],
                mode="lines",
                line={"color": style.muted, "width": 2},
                hoverinfo="skip",
                showlegend=False,
                meta="roof",
                name=f"{gpu.name} {dtype}",
            )
        )
        if math.log10(ridge) < right:
            text = f"{dtype}: {digits(peak)} TFLOP/s"
            _label(figure, style, text, right, math.log10(peak))
    # In the middle of the slope that is in view.
    low = max(left, bottom - math.log10(slope))
    high = min(right, math.log10(max(peaks.values()) / slope))
    if low < high:
        x = (low + high) / 2
        text = f"{bytes_text(gpu.memory_bytes_per_s)}/s"
        _label(figure, style, text, x, x + math.log10(slope))


def _label(figure: Figure, style: Style, text: str, x: float, y: float) -> None:
    """A label just above a place given by its decimal logarithms."""
    figure.add_annotation(
        text=text,
        x=x,
        y=y,
        xanchor="right",
        yanchor="bottom",
        yshift=3,
        showarrow=False,
        font={"size": style.small, "color": style.text},
    )


def _points(
    phase: str, rows: pd.DataFrame, x: pd.Series, y: pd.Series, total_ms: float, style: Style
) -> Trace:
    longest = float(rows["time_ms"].max())
    shares = rows["time_ms"] / max(longest, total_ms / 20 or 1.0)
    columns = ("name", "module", "dtype", "time_ms")
    facts = zip(*(rows[name].tolist() for name in columns), x.tolist(), y.tolist(), strict=True)
    return scatter_trace(
        x=x.to_numpy(),
        y=y.to_numpy(),
        mode="markers",
        name=phase,
        meta=phase,
        marker={
            "size": (SMALLEST + (LARGEST - SMALLEST) * shares**0.5).round(1).to_numpy(),
            "color": translucent(PHASE_COLOURS[phase], 0.85),
            "line": {"width": 1, "color": style.surface},
        },
        customdata=[
            (
                safe(operator_text(name)),
                safe(module) or phase,
                f"{digits(intensity)} FLOP per byte ({safe(dtype)})",
                f"{digits(rate)} TFLOP/s",
                time_text(time_ms),
                share_text(time_ms, total_ms),
            )
            for name, module, dtype, time_ms, intensity, rate in facts
        ],
        hovertemplate=_HOVER,
    )
