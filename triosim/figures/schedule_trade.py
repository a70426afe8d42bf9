"""Pipeline schedules against each other: memory of each stage, speed for memory, the bubble."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from triosim.figures.figure import Figure, bar_trace, scatter_trace
from triosim.figures.palette import CATEGORY_COLOURS, CLASS_COLOURS, PHASE_COLOURS, text_on
from triosim.figures.style import DEFAULT_STYLE, Style, finish, row_axis, rows_height, value_axis
from triosim.figures.text import short

CHART_PX = 300
POWERS = tuple(2**i for i in range(8))
# As far apart as two names must be: a share of the memory axis, and of the time.
LABEL_SHARE = (0.12, 0.025)
OF_TOTAL_COLOUR = CLASS_COLOURS["bubble"]
OF_IDEAL_COLOUR = CLASS_COLOURS["exposed_communication"]


def memory_by_stage(held: Sequence[float], unit: str, *, style: Style = DEFAULT_STYLE) -> Figure:
    """The most activations that each stage holds."""
    labels = [f"stage {stage}" for stage in range(len(held))]
    colour = CATEGORY_COLOURS["activations"]
    figure = Figure(
        bar_trace(
            x=list(held),
            y=labels,
            orientation="h",
            marker={"color": colour},
            text=[short(value) for value in held],
            textposition="inside",
            insidetextanchor="end",
            textangle=0,
            insidetextfont={"color": text_on(colour), "size": style.font_size},
            hovertemplate="%{y}: %{x:.4g} " + unit + "<extra></extra>",
        )
    )
    finish(figure, style, height=rows_height(len(held), style, extra=3), revision="stage-memory")
    figure.update_layout(
        showlegend=False,
        bargap=0.2,
        xaxis=value_axis(style, f"activations held at most ({unit})", rangemode="tozero"),
        yaxis=row_axis(style, labels),
        dragmode=False,
    )
    figure.update_xaxes(fixedrange=True)
    return figure


def speed_for_memory(
    points: Mapping[str, tuple[float, float]],
    chosen: str,
    unit: str,
    *,
    style: Style = DEFAULT_STYLE,
) -> Figure:
    """Schedules by name: (memory of the fullest stage, share of the time that is computing)."""
    figure = Figure()
    groups = {"chosen": [chosen], "other schedules": [n for n in points if n != chosen]}
    for name, members in groups.items():
        colour = PHASE_COLOURS["backward"] if name == "chosen" else CLASS_COLOURS["bubble"]
        members = [member for member in members if member in points]
        figure.add_trace(
            scatter_trace(
                x=[points[member][0] for member in members],
                y=[points[member][1] * 100 for member in members],
                mode="markers",
                marker={"size": 15 if name == "chosen" else 11, "color": colour},
                name=name,
                text=members,
                hovertemplate=f"<b>%{{text}}</b><br>%{{x:.4g}} {unit}<br>%{{y:.1f}} % of the time "
                "computing<extra></extra>",
            )
        )
    most = max(memory for memory, _ in points.values())
    for names in _near(points):
        memory, speed = (max(points[name][i] for name in names) for i in range(2))
        text = ", ".join(f"<b>{name}</b>" if name == chosen else name for name in names)
        # On the side where a phone has room for it.
        left = memory > most / 2
        figure.add_annotation(
            x=min(points[name][0] for name in names) if left else memory, y=speed * 100, text=text,
            showarrow=False, xanchor="right" if left else "left", xshift=-11 if left else 11,
            font={"size": style.font_size, "color": style.text},
        )  # fmt: skip
    finish(figure, style, height=CHART_PX, revision="speed-for-memory")
    least = min(speed for _, speed in points.values()) * 100
    figure.update_layout(
        showlegend=False,
        xaxis=value_axis(style, f"memory of the fullest stage ({unit})", range=[0, 1.1 * most]),
        yaxis=value_axis(style, "computing (% of the time)", range=[max(0, least - 12), 104]),
        dragmode=False,
    )
    figure.update_xaxes(fixedrange=True)
    figure.update_yaxes(fixedrange=True)
    return figure


def _near(points: Mapping[str, tuple[float, float]]) -> list[list[str]]:
    """Schedules whose names would lie over each other: those have one line of names."""
    most = max(memory for memory, _ in points.values())
    found: list[list[str]] = []
    for name in sorted(points, key=points.__getitem__):
        memory, speed = points[name]
        for names in found:
            other_memory, other_speed = points[names[0]]
            if (
                abs(memory - other_memory) < LABEL_SHARE[0] * most
                and abs(speed - other_speed) < LABEL_SHARE[1]
            ):
                names.append(name)
                break
        else:
            found.append([name])
    return found


def bubble_for_microbatches(
    counts: Sequence[int],
    of_total: Sequence[float],
    of_ideal: Sequence[float],
    stages: int,
    most: float | None,
    *,
    style: Style = DEFAULT_STYLE,
) -> Figure:
    """The bubble, simulated (dots) and by formula (lines), counted both ways; shares of 1."""
    figure = Figure()
    p = stages - 1
    ways = (
        ("of the total, (p\u22121)/(m+p\u22121)", OF_TOTAL_COLOUR, of_total,
         [p / (m + p) for m in counts]),
        ("of the ideal, (p\u22121)/m", OF_IDEAL_COLOUR, of_ideal, [p / m for m in counts]),
    )  # fmt: skip
    for name, colour, simulated, formula in ways:
        figure.add_trace(
            scatter_trace(
                x=list(counts), y=[100 * v for v in formula], mode="lines", name=name,
                line={"color": colour, "width": 2}, hoverinfo="skip",
            )
        )  # fmt: skip
        figure.add_trace(
            scatter_trace(
                x=list(counts), y=[100 * v for v in simulated], mode="markers", showlegend=False,
                marker={"color": colour, "size": 8},
                hovertemplate="m = %{x}: %{y:.1f} % " + name.partition(",")[0] + "<extra></extra>",
            )
        )  # fmt: skip
    if most is not None:
        figure.add_hline(
            y=100 * most, line={"color": style.muted, "dash": "dot", "width": 1.5},
            annotation_position="top left",  # the curves fall to the right
            annotation={
                "text": f"at most {100 * most:g} %",
                "font": {"size": style.font_size, "color": style.muted},
            },
        )  # fmt: skip
    finish(figure, style, height=CHART_PX, revision="bubble")
    high = min(2, max(*of_ideal, 0.2))
    if most is not None:
        high = min(high, 5 * most)  # what is asked is told apart there, not at 200 %
    figure.update_layout(
        xaxis=value_axis(
            style,
            "micro-batches m",
            type="log",
            tickvals=POWERS,
            range=[math.log10(0.9 * min(counts)), math.log10(1.1 * max(counts))],
        ),
        yaxis=value_axis(style, "bubble (%)", range=[0, 105 * high]),
        dragmode=False,
    )
    figure.update_xaxes(fixedrange=True)
    figure.update_yaxes(fixedrange=True)
    return figure
