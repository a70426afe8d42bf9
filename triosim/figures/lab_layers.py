"""Passes of a layer under several plans, below each other: what is computed and what is moved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from triosim.figures.figure import Figure, Trace, bar_trace
from triosim.figures.palette import CLASS_COLOURS
from triosim.figures.style import DEFAULT_STYLE, Style, finish, row_axis, value_axis
from triosim.figures.text import safe, short, time_text
from triosim.figures.train_colours import roomy_legend, step_colour
from triosim.lab.layer_run import LayerRun

COMPUTE = "compute"
LANE_PX = 30
# Computing and moving of one plan are close to each other, plans further apart.
MOVES = 0.42


def layer_lanes(runs: Mapping[str, LayerRun], *, style: Style = DEFAULT_STYLE) -> Figure:
    """For each plan two lanes on one time axis: kernels above, transfers below."""
    figure = Figure()
    labels = [safe(name) for name in runs]
    bars: dict[str, list[tuple[float, float, float, str, str]]] = {}
    for number, (label, run) in enumerate(zip(labels, runs.values(), strict=True)):
        for stream, name, phase, start_ms, end_ms in run.rows:
            lane = number + (0.0 if stream == COMPUTE else MOVES)
            bars.setdefault(phase, []).append((lane, start_ms, end_ms, name, label))
    for phase, own in bars.items():
        figure.add_trace(_bars(phase, own))
    longest = max((run.total_ms for run in runs.values()), default=0.0)
    for number, run in enumerate(runs.values()):
        figure.add_annotation(
            x=run.total_ms, y=number + MOVES / 2, text=f"<b>{time_text(run.total_ms)}</b>",
            xanchor="left", xshift=6, showarrow=False,
            font={"size": style.font_size, "color": style.text},
        )  # fmt: skip
    height = round(len(labels) * 2.1 * LANE_PX + 7.4 * style.font_size)
    finish(figure, style, height=height, revision="layer-lanes")
    axis = row_axis(style, labels)
    axis |= {
        "type": "linear",
        "tickvals": [number + MOVES / 2 for number in range(len(labels))],
        "ticktext": labels,
        "range": [len(labels) - 0.35, -0.45],
    }
    for name in ("categoryorder", "categoryarray", "dtick"):
        axis.pop(name)
    figure.update_layout(
        barmode="overlay",
        xaxis=value_axis(style, "ms", range=[0, 1.25 * longest or 1], showgrid=True),
        yaxis=axis,
        dragmode="zoom",
    )
    return roomy_legend(figure, style)


def _bars(phase: str, own: Sequence[tuple[float, float, float, str, str]]) -> Trace:
    return bar_trace(
        x=[end - start for _, start, end, _, _ in own],
        base=[start for _, start, _, _, _ in own],
        y=[lane for lane, *_ in own],
        width=0.36,
        orientation="h",
        name=phase,
        marker={"color": step_colour(phase), "line": {"width": 0}},
        customdata=[
            (safe(name), label, time_text(end - start)) for _, start, end, name, label in own
        ],
        hovertemplate="%{customdata[1]}<br><b>%{customdata[0]}</b>, %{customdata[2]}"
        "<extra></extra>",
    )


def stacked_times(
    labels: Sequence[str],
    busy_ms: Sequence[float],
    exposed_ms: Sequence[float],
    title: str,
    *,
    crossing: int | None = None,
    style: Style = DEFAULT_STYLE,
) -> Figure:
    """Computing and waiting for transfers side by side for several plans.

    From the bar `crossing` on a plan reaches beyond a host.
    """
    figure = Figure()
    places = list(range(len(labels)))
    for name, values, colour in (
        ("computing", busy_ms, CLASS_COLOURS["forward"]),
        ("waiting for transfers", exposed_ms, CLASS_COLOURS["exposed_communication"]),
    ):
        figure.add_trace(
            bar_trace(
                x=places, y=list(values), name=name, marker={"color": colour},
                customdata=list(labels),
                hovertemplate=f"%{{customdata}}<br>{name}: %{{y:.4g}} ms<extra></extra>",
            )
        )  # fmt: skip
    totals = [busy + waited for busy, waited in zip(busy_ms, exposed_ms, strict=True)]
    for place, total in enumerate(totals):
        figure.add_annotation(
            x=place, y=total, text=f"<b>{short(total, 3)}</b>", showarrow=False, yshift=11,
            font={"size": style.font_size, "color": style.text},
        )  # fmt: skip
    if crossing is not None and crossing < len(labels):
        figure.add_vline(x=crossing - 0.5, line={"color": style.muted, "dash": "dash"})
        figure.add_annotation(
            x=crossing - 0.5, y=1, yref="paper", text="more than one host", showarrow=False,
            xanchor="left", xshift=5, font={"size": style.font_size, "color": style.muted},
        )  # fmt: skip
    finish(figure, style, height=round(250 + 6 * style.font_size), revision="stacked-times")
    axis = value_axis(style, title, tickvals=places, ticktext=[safe(label) for label in labels])
    figure.update_layout(
        barmode="stack",
        xaxis={**axis, "showgrid": False, "fixedrange": True},
        yaxis=value_axis(style, "ms", range=[0, 1.18 * max(totals, default=1)], fixedrange=True),
        bargap=0.35,
        dragmode=False,
    )
    return figure
