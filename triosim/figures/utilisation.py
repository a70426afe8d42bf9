"""What one link carries over the step, against what it could."""

from __future__ import annotations

import numpy as np

from triosim.figures.figure import Figure, scatter_trace
from triosim.figures.palette import PHASE_COLOURS, translucent
from triosim.figures.style import DEFAULT_STYLE, Style, finish, say_nothing_to_show, value_axis
from triosim.figures.text import bytes_text, share_text
from triosim.network.topology.base import Floats
from triosim.result import Result

GB = 1e9
# A page is not wider in pixels; of more changes each column has its mean, so that areas stay.
MAX_COLUMNS = 1200


def utilisation_figure(result: Result, link: int, *, style: Style = DEFAULT_STYLE) -> Figure:
    """The load of the program's link `link` over time; the area below it is what it carried."""
    own = result.tasks.program.links[link]
    total_s = result.tasks.total_s
    edges_s, bytes_per_s = columns(*result.tasks.usage(link), total_s)
    figure = Figure()
    if len(bytes_per_s):
        colour = PHASE_COLOURS["fetch" if own.source < 0 else "all-reduce"]
        speed = own.bytes_per_s
        figure.add_trace(
            scatter_trace(
                x=edges_s * 1e3,
                y=np.append(bytes_per_s, bytes_per_s[-1]) / GB,
                mode="lines",
                line={"color": colour, "width": 1.2, "shape": "hv"},
                fill="tozeroy",
                fillcolor=translucent(colour, 0.45),
                text=[f"{bytes_text(b)}/s, {share_text(b, speed)}" for b in bytes_per_s],
                hovertemplate="from %{x:.4f} ms on: %{text} of the link<extra></extra>",
                showlegend=False,
                meta="load",
            )
        )
        figure.add_hline(y=speed / GB, line={"color": style.muted, "width": 1.2, "dash": "dash"})
        figure.add_annotation(
            text=f"all it can carry: {bytes_text(speed)}/s",
            x=1, xref="paper", xanchor="right", y=speed / GB, yanchor="bottom", showarrow=False,
            font={"size": style.small, "color": style.muted},
        )  # fmt: skip
    figure.update_layout(
        xaxis=value_axis(style, "time (ms)", range=[0, total_s * 1e3 or 1.0], fixedrange=True),
        yaxis=value_axis(
            style, "load (GB/s)", range=[0, 1.22 * own.bytes_per_s / GB], fixedrange=True
        ),
        hovermode="x",
    )
    finish(figure, style, height=round(15 * style.font_size), revision="utilisation")
    if not len(bytes_per_s):
        say_nothing_to_show(figure, style, "This link carries nothing in this step.")
    return figure


def columns(time_s: Floats, bytes_per_s: Floats, total_s: float) -> tuple[Floats, Floats]:
    """Edges and what holds between them: the changes from 0 to the end, or means of many."""
    if not len(time_s):
        return np.zeros(0), np.zeros(0)
    edges = np.concatenate(([0.0], time_s, [total_s]))
    loads = np.concatenate(([0.0], bytes_per_s))
    lasting = np.diff(edges) > 0
    edges, loads = np.append(edges[:-1][lasting], edges[-1]), loads[lasting]
    if len(loads) <= MAX_COLUMNS:
        return edges, loads
    carried = np.concatenate(([0.0], np.cumsum(loads * np.diff(edges))))
    even = np.linspace(0.0, total_s, MAX_COLUMNS + 1)
    return even, np.diff(np.interp(even, edges, carried)) / np.diff(even)
