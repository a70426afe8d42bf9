"""The step of data-parallel training against the size of a bucket."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from triosim.figures.figure import Figure, scatter_trace
from triosim.figures.palette import CLASS_COLOURS, PHASE_COLOURS
from triosim.figures.style import DEFAULT_STYLE, Style, finish, value_axis
from triosim.figures.text import short

if TYPE_CHECKING:
    from triosim.lab.bucket_sweep import SweepPoint

CHART_PX = 280


def bucket_sweep(
    points: Sequence[SweepPoint], chosen_mb: float, *, style: Style = DEFAULT_STYLE
) -> Figure:
    """Exposed communication by bucket size; the least has a star, the chosen size a line."""
    sizes = [point.bucket_mb for point in points]
    figure = Figure(
        scatter_trace(
            x=sizes,
            y=[point.exposed_ms for point in points],
            mode="lines+markers",
            line={"color": CLASS_COLOURS["exposed_communication"], "width": 2},
            marker={"size": 8, "color": CLASS_COLOURS["exposed_communication"]},
            name="exposed communication",
            customdata=[(point.buckets, short(point.step_ms)) for point in points],
            hovertemplate="%{x:g} MiB, %{customdata[0]} buckets<br>%{y:.3f} ms exposed"
            "<br>step %{customdata[1]} ms<extra></extra>",
        )
    )
    best = min(points, key=lambda point: point.exposed_ms)
    figure.add_trace(
        scatter_trace(
            x=[best.bucket_mb], y=[best.exposed_ms], mode="markers", name="least",
            marker={"size": 15, "symbol": "star", "color": PHASE_COLOURS["optimizer"]},
            hovertemplate=f"least at {best.bucket_mb:g} MiB<extra></extra>",
        )
    )  # fmt: skip
    figure.add_vline(x=chosen_mb, line={"color": style.muted, "dash": "dot", "width": 1.5})
    finish(figure, style, height=CHART_PX, revision="bucket-sweep")
    most = max(point.exposed_ms for point in points)
    edges = [math.log10(0.8 * sizes[0]), math.log10(1.25 * sizes[-1])]
    ticks = {"tickvals": sizes, "ticktext": [f"{size:g}" for size in sizes]}
    figure.update_layout(
        xaxis=value_axis(style, "bucket (MiB)", type="log", range=edges, **ticks),
        yaxis=value_axis(style, "exposed (ms)", range=[0, 1.15 * most or 1]),
        dragmode=False,
    )
    figure.update_xaxes(fixedrange=True)
    figure.update_yaxes(fixedrange=True)
    return figure
