"""How long steps take where they differ: from the shortest to the longest, with P50 and P95."""

from __future__ import annotations

from triosim.figures.figure import Figure, scatter_trace
from triosim.figures.palette import CLASS_COLOURS, PHASE_COLOURS, translucent
from triosim.figures.style import DEFAULT_STYLE, Style, finish, say_nothing_to_show, value_axis
from triosim.figures.text import time_text
from triosim.result import Result

# Marks that stand so near to each other, in shares of the axis, are written on two lines.
NEAR = 0.24


def step_times_figure(result: Result, *, style: Style = DEFAULT_STYLE) -> Figure:
    """A line over all drawn steps, a box from P50 to P95, and the one step that is simulated."""
    times, here_ms = result.step_times, result.total_ms
    figure = Figure(
        layout={
            "xaxis": value_axis(style, "step time (ms)", fixedrange=True),
            "yaxis": {"visible": False, "range": [-1, 1], "fixedrange": True, "automargin": True},
            "hovermode": "closest",
        }
    )
    finish(figure, style, height=round(13.5 * style.font_size), revision="step times")
    if times is None:
        say_nothing_to_show(figure, style, "Every step takes the same time.")
        return figure
    colour = PHASE_COLOURS["backward"]
    low, high = min(times.least_ms, here_ms), max(times.most_ms, here_ms)
    pad = 0.04 * (high - low) or 0.5
    for name, ends, width, shade in (
        (f"all {times.steps:,} steps", (times.least_ms, times.most_ms), 3, style.muted),
        ("P50 to P95", (times.p50_ms, times.p95_ms), 16, translucent(colour, 0.55)),
    ):
        figure.add_trace(
            scatter_trace(
                x=list(ends),
                y=[0, 0],
                mode="lines",
                line={"color": shade, "width": width},
                name=name,
                hovertemplate=f"{name}: {time_text(ends[0])} to {time_text(ends[1])}"
                "<extra></extra>",
                meta=name,
            )
        )
    for name, value, symbol, shade in (
        ("mean", times.mean_ms, "diamond", colour),
        ("the step shown here", here_ms, "line-ns", CLASS_COLOURS["exposed_communication"]),
    ):
        figure.add_trace(
            scatter_trace(
                x=[value],
                y=[0],
                mode="markers",
                marker={
                    "symbol": symbol, "size": 11 if symbol == "diamond" else 20, "color": shade,
                    "line": {"color": shade, "width": 3 if symbol == "line-ns" else 0},
                },
                name=name,
                hovertemplate=f"{name}: {time_text(value)}<extra></extra>",
                meta=name,
            )
        )  # fmt: skip
    near = (times.p95_ms - times.p50_ms) < NEAR * (high - low + 2 * pad)
    figure.update_layout(
        annotations=[
            {
                "x": value,
                "y": 0,
                "yshift": (14 if up else -14),
                "yanchor": "bottom" if up else "top",
                "text": f"{name} {time_text(value)}",
                "showarrow": False,
                "font": {"size": style.font_size, "color": style.text},
            }
            for name, value, up in (
                ("P50", times.p50_ms, True),
                ("P95", times.p95_ms, not near),
            )
        ],
        xaxis={"range": [low - pad, high + pad]},
    )
    return figure
