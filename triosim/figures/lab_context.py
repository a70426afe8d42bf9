"""Long sequences over ranks: what each way sends at each degree, and who computes how much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log10

from triosim.figures.figure import Figure, bar_trace, heatmap_trace, scatter_trace
from triosim.figures.palette import CLASS_COLOURS
from triosim.figures.style import CLEAR, DEFAULT_STYLE, Style, finish, value_axis
from triosim.figures.text import safe, short
from triosim.figures.train_colours import GROUP_COLOURS

CHART_PX = 330
WAY_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x")
CONTIGUOUS, ZIGZAG = CLASS_COLOURS["exposed_communication"], CLASS_COLOURS["forward"]


def ways_by_degree(
    degrees: Sequence[int],
    ways: Mapping[str, Sequence[float | None]],
    title: str,
    *,
    chosen: int | None = None,
    crossover: float | None = None,
    style: Style = DEFAULT_STYLE,
) -> Figure:
    """A line for each way; None where a degree is not possible.

    The `chosen` degree has a dotted line, the `crossover` of a formula a dashed one with its value.
    """
    figure = Figure()
    for number, (name, values) in enumerate(ways.items()):
        colour = WAY_COLOURS[number % len(WAY_COLOURS)]
        figure.add_trace(
            scatter_trace(
                x=list(degrees), y=list(values), name=safe(name), mode="lines+markers",
                line={"color": colour, "width": 2},
                marker={"size": 9, "symbol": SYMBOLS[number % len(SYMBOLS)], "color": colour},
                hovertemplate=f"{safe(name)}, c = %{{x}}<br>%{{y:.4g}} {safe(title)}"
                "<extra></extra>",
            )
        )  # fmt: skip
    known = [value for values in ways.values() for value in values if value is not None]
    most = max(known, default=1.0)
    if chosen is not None:
        figure.add_vline(x=chosen, line={"color": style.muted, "dash": "dot", "width": 1.5})
    if crossover is not None and degrees[0] < crossover < degrees[-1]:
        figure.add_vline(x=crossover, line={"color": style.text, "dash": "dash", "width": 1.5})
        figure.add_annotation(
            x=log10(crossover), y=1, yref="paper", text=f"c = {short(crossover)}",
            showarrow=False, xanchor="left", xshift=5, yanchor="top",
            font={"size": style.font_size, "color": style.text},
        )  # fmt: skip
    finish(figure, style, height=CHART_PX, revision="ways-by-degree")
    figure.update_layout(
        xaxis=value_axis(
            style, "context-parallel degree c", type="log", tickvals=list(degrees),
            ticktext=[str(degree) for degree in degrees], fixedrange=True,
            range=[log10(degrees[0] * 0.85), log10(degrees[-1] * 1.18)],
        ),
        yaxis=value_axis(style, title, range=[0, 1.15 * most], fixedrange=True),
        legend={"maxheight": 4.8 * style.font_size},
        dragmode=False,
    )  # fmt: skip
    return figure


def work_bars(
    contiguous: Sequence[float], zigzag: Sequence[float], *, style: Style = DEFAULT_STYLE
) -> Figure:
    """Each rank's causal work over the mean, both ways to cut the sequence."""
    ranks = list(range(len(contiguous)))
    figure = Figure()
    for name, values, colour in (
        ("contiguous", contiguous, CONTIGUOUS),
        ("zig-zag", zigzag, ZIGZAG),
    ):
        figure.add_trace(
            bar_trace(
                x=ranks, y=list(values), name=name, marker={"color": colour},
                hovertemplate=f"rank %{{x}}, {name}: %{{y:.4g}} times the mean<extra></extra>",
            )
        )  # fmt: skip
    slowest = max(contiguous)
    figure.add_annotation(
        x=ranks[-1], y=slowest, text=f"<b>{short(slowest)}\u00d7</b>", showarrow=False, yshift=11,
        font={"size": style.font_size, "color": style.text},
    )  # fmt: skip
    finish(figure, style, height=CHART_PX, revision="causal-work")
    figure.update_layout(
        barmode="group",
        xaxis=value_axis(
            style, "rank", dtick=1 if len(ranks) <= 16 else 4, showgrid=False, fixedrange=True
        ),
        yaxis=value_axis(style, "work over the mean", range=[0, 2.25], fixedrange=True),
        bargap=0.25,
        dragmode=False,
    )
    return figure


def causal_map(owners: Sequence[int], title: str, *, style: Style = DEFAULT_STYLE) -> Figure:
    """Queries down, keys to the right: the colour of a block is the rank that computes it."""
    count, colours = len(owners), len(GROUP_COLOURS)
    values = [
        [owner % colours if key <= query else None for key in range(count)]
        for query, owner in enumerate(owners)
    ]
    scale = [
        [(i + end) / colours, colour] for i, colour in enumerate(GROUP_COLOURS) for end in (0, 1)
    ]
    figure = Figure(
        heatmap_trace(
            z=values, zmin=-0.5, zmax=colours - 0.5, colorscale=scale, showscale=False, xgap=1,
            ygap=1, customdata=[[owner] * count for owner in owners],
            hovertemplate="queries of chunk %{y}, keys of chunk %{x}<br>rank %{customdata}"
            "<extra></extra>",
        )
    )  # fmt: skip
    finish(figure, style, height=CHART_PX, revision="causal-map")
    text = {"size": style.font_size, "color": style.text}
    still = {"fixedrange": True, "showgrid": False, "zeroline": False, "automargin": True}
    figure.update_layout(
        showlegend=False,
        plot_bgcolor=CLEAR,
        title={"text": title, "font": text, "x": 0.02, "y": 0.98},
        margin={"l": 8, "r": 8, "t": 34, "b": 8},
        xaxis={**still, "title": {"text": "keys", "font": text}, "showticklabels": False},
        yaxis={
            **still, "title": {"text": "queries: rank", "font": text}, "autorange": "reversed",
            "tickvals": list(range(count)) if count <= 16 else [], "tickfont": text,
            "ticktext": [str(owner) for owner in owners],
        },
        dragmode=False,
    )  # fmt: skip
    return figure
