"""Two collectives on one network: when each runs, alone and together, and what links carry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plotly.subplots import make_subplots

from triosim.figures.figure import Figure, bar_trace, scatter_trace
from triosim.figures.palette import PHASE_COLOURS, text_on, translucent
from triosim.figures.style import DEFAULT_STYLE, Style, finish, row_axis, value_axis
from triosim.figures.text import bytes_text, safe, time_text

COLOURS = (PHASE_COLOURS["backward"], PHASE_COLOURS["fetch"])
MAX_LINKS = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """One collective, 0 or 1, from `start_s` to `end_s`; `row` says under what circumstances."""

    which: int
    row: str
    start_s: float
    end_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """What both collectives put on a link over time: steps `(from_s, to_s, rate of each)`."""

    name: str
    bytes_per_s: float
    steps: Sequence[tuple[float, float, tuple[float, float]]]


def overlap_gantt(
    names: tuple[str, str], spans: Sequence[Span], *, style: Style = DEFAULT_STYLE
) -> Figure:
    """One bar for each collective alone and together."""
    rows = list(dict.fromkeys(span.row for span in spans))
    figure = Figure()
    for which, name in enumerate(names):
        own = [span for span in spans if span.which == which]
        figure.add_trace(
            bar_trace(
                base=[span.start_s * 1e3 for span in own],
                x=[(span.end_s - span.start_s) * 1e3 for span in own],
                y=[span.row for span in own],
                orientation="h",
                width=0.7,
                name=name,
                marker={"color": COLOURS[which]},
                text=[time_text((span.end_s - span.start_s) * 1e3) for span in own],
                textposition="inside",
                insidetextanchor="middle",
                constraintext="none",
                textangle=0,
                textfont={"color": text_on(COLOURS[which]), "size": style.small},
                customdata=[
                    (time_text(span.start_s * 1e3), time_text(span.end_s * 1e3)) for span in own
                ],
                hovertemplate=f"<b>{safe(name)}</b><br>from %{{customdata[0]}} to "
                "%{customdata[1]}<extra></extra>",
                meta=which,
            )
        )
    end_ms = max((span.end_s for span in spans), default=0.0) * 1e3
    figure.update_layout(
        barmode="overlay",
        xaxis=value_axis(style, "time (ms)", range=[0, end_ms * 1.02 or 1.0], fixedrange=True),
        yaxis=row_axis(style, rows),
    )
    height = round(style.lane_px * len(rows) + 6.5 * style.font_size)
    return finish(figure, style, height=height, revision="overlap")


def usage_figure(
    names: tuple[str, str], links: Sequence[Usage], *, style: Style = DEFAULT_STYLE
) -> Figure:
    """One panel for each link: the rates of both collectives on top of each other."""
    shown = links[:MAX_LINKS]
    titles = [f"{safe(link.name)}, {bytes_text(link.bytes_per_s)}/s" for link in shown]
    panels = make_subplots(
        rows=max(1, len(shown)), cols=1, shared_xaxes=True, subplot_titles=titles,
        vertical_spacing=0.28 / max(1, len(shown)),
    )  # fmt: skip
    figure = Figure(panels)
    for number, link in enumerate(shown, start=1):
        for which, name in enumerate(names):
            x, y = _stairs(link, which)
            figure.add_trace(
                scatter_trace(
                    x=x,
                    y=y,
                    mode="lines",
                    line={"width": 0.8, "shape": "hv", "color": COLOURS[which]},
                    fillcolor=translucent(COLOURS[which], 0.75),
                    stackgroup=f"link {number}",
                    name=name,
                    legendgroup=name,
                    showlegend=number == 1,
                    hovertemplate=f"{safe(name)}: %{{y:.4g}} GB/s at %{{x:.4g}} ms<extra></extra>",
                    meta=which,
                ),
                row=number,
                col=1,
            )
        figure.add_hline(
            y=link.bytes_per_s / 1e9, line={"color": style.muted, "width": 1, "dash": "dot"},
            row=number, col=1,
        )  # fmt: skip
        figure.update_yaxes(
            value_axis(style, "GB/s", rangemode="tozero", fixedrange=True, nticks=3),
            row=number, col=1,
        )  # fmt: skip
    end_ms = max((step[1] for link in shown for step in link.steps), default=0.0) * 1e3
    figure.update_xaxes(value_axis(style, "", range=[0, end_ms * 1.02 or 1.0], fixedrange=True))
    if shown:
        figure.update_xaxes(title=value_axis(style, "time (ms)")["title"], row=len(shown), col=1)
    figure.update_annotations(font={"size": style.small, "color": style.text}, x=0, xanchor="left")
    height = round((7.2 * max(1, len(shown)) + 6) * style.font_size)
    finish(figure, style, height=height, revision="usage")
    # The bars above have the same colours; titles stand where a legend would.
    return figure.update_layout(showlegend=False, margin_t=round(1.8 * style.font_size))


def _stairs(link: Usage, which: int) -> tuple[list[float], list[float]]:
    """Corners in ms and GB/s; the last one brings the line down."""
    x = [step[0] * 1e3 for step in link.steps]
    y = [step[2][which] / 1e9 for step in link.steps]
    if link.steps:
        x.append(link.steps[-1][1] * 1e3)
        y.append(0.0)
    return x, y
