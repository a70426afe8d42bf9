"""Predicted against published: every run as a point, and every source as a row."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from triosim.figures.figure import Figure, Trace, scatter_trace
from triosim.figures.palette import translucent
from triosim.figures.style import (
    DEFAULT_STYLE,
    Style,
    finish,
    row_axis,
    rows_height,
    say_nothing_to_show,
    value_axis,
)
from triosim.figures.text import digits, safe

BANDS = (0.25, 0.10)  # shares of the published value
# Of the two stacks and of the target, in no other figure's colours but grey: (light, dark).
STACK_COLOURS = {"calibrated": ("#0B5EA8", "#6DB6F2"), "generic": ("#8A6100", "#D9A93A")}
SYMBOLS = {"calibrated": "circle", "generic": "diamond"}
UNITS = {"time": "s", "memory": "GiB"}
TITLES = {"time": "step time (s)", "memory": "peak memory (GiB)"}
COLUMNS = {"time": "s", "memory": "gib"}
NOT_COUNTED = "not counted"
ONE = "predicted"
HOVER = (
    "<b>%{customdata[1]}</b><br>published %{customdata[2]}, predicted %{customdata[3]}"
    "<br>error %{customdata[4]} (%{fullData.name})<extra></extra>"
)


def stack_colour(stack: str, style: Style) -> str:
    """The colour of a stack's predictions on the page at hand."""
    return STACK_COLOURS[stack][style.dark]


def agreement_scatter(
    frame: pd.DataFrame,
    quantity: str,
    *,
    stacks: Sequence[str] = ("calibrated", "generic"),
    style: Style = DEFAULT_STYLE,
    height: int | None = None,
) -> Figure:
    """Predicted over published on logarithmic axes, with the line of equality and two bands.

    `frame` has the columns of `triosim.validation.compare`; `quantity` is "time" or "memory". Runs
    that do not count towards the mean are hollow. The first custom value of a point is its row.
    """
    figure = Figure()
    low, high = _limits(frame, quantity, stacks)
    if low < high:
        _bands(figure, low, high, style)
        for stack in reversed(stacks):
            for counted in (True, False):
                own = _drawn(frame[frame["status"].eq("shown") != counted], quantity, stack)
                if len(own):
                    name = stack if len(stacks) > 1 else ONE
                    label = name if counted else f"{name}, {NOT_COUNTED}"
                    figure.add_trace(_points(own, quantity, stack, label, counted, style))
        ticks = round_values(low, high)
        axis = {
            "type": "log",
            "range": [math.log10(low), math.log10(high)],
            "tickvals": ticks,
            "ticktext": [f"{value:,.6g}" for value in ticks],
        }
        figure.update_layout(
            xaxis=value_axis(style, f"published {TITLES[quantity]}", **axis),
            yaxis=value_axis(style, f"predicted {TITLES[quantity]}", **axis),
            hovermode="closest",
        )
    finish(figure, style, height=height or round(28 * style.font_size), revision=quantity)
    if not figure.traces:
        say_nothing_to_show(figure, style, "No run has been predicted yet.")
    return figure


def _drawn(frame: pd.DataFrame, quantity: str, stack: str) -> pd.DataFrame:
    unit = COLUMNS[quantity]
    return frame.dropna(subset=[f"published_{unit}", f"{stack}_{unit}"])


def _limits(frame: pd.DataFrame, quantity: str, stacks: Sequence[str]) -> tuple[float, float]:
    unit = COLUMNS[quantity]
    values = [
        float(value)
        for stack in stacks
        for name in (f"published_{unit}", f"{stack}_{unit}")
        for value in _drawn(frame, quantity, stack)[name]
    ]
    return (min(values) / 1.15, max(values) * 1.15) if values else (1.0, 1.0)


def round_values(low: float, high: float) -> list[float]:
    """Round numbers from low to high for a logarithmic axis: as few steps a decade as suffice."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found: list[float] = []
    for steps in ((1,), (1, 3), (1, 2, 5), (1, 2, 3, 4, 5, 6, 8), range(10, 100, 5)):
        decade = [step / (10 if len(steps) > 9 else 1) for step in steps]
        found = [float(f"{step}e{power}") for power in powers for step in decade]
        found = [value for value in found if low <= value <= high]
        if len(found) >= 4:
            break
    return found


def _bands(figure: Figure, low: float, high: float, style: Style) -> None:
    for share in BANDS:
        figure.add_trace(
            scatter_trace(
                x=[low, high, high, low],
                y=[low * (1 + share), high * (1 + share), high * (1 - share), low * (1 - share)],
                mode="lines",
                line={"width": 0, "color": _band(share, style)},
                fill="toself",
                fillcolor=_band(share, style),
                name=f"within {share:.0%}".replace("%", " %"),
                meta="band",
                hoverinfo="skip",
            )
        )
    figure.add_trace(
        scatter_trace(
            x=[low, high],
            y=[low, high],
            mode="lines",
            line={"width": 1.5, "color": style.muted},
            name="equal",
            meta="equal",
            hoverinfo="skip",
            showlegend=False,
        )
    )


def _band(share: float, style: Style) -> str:
    return translucent(style.muted, 0.26 if share == min(BANDS) else 0.13)


def _points(
    own: pd.DataFrame, quantity: str, stack: str, name: str, counted: bool, style: Style
) -> Trace:
    unit, many = COLUMNS[quantity], len(own) > 300
    published, predicted = own[f"published_{unit}"], own[f"{stack}_{unit}"]
    errors = own[f"{stack}_{quantity}_error"]
    return scatter_trace(
        x=published.astype(float).to_numpy(),
        y=predicted.astype(float).to_numpy(),
        mode="markers",
        name=name,
        showlegend=counted,
        meta=stack if counted else f"{stack} {NOT_COUNTED}",
        marker={
            "symbol": SYMBOLS[stack] + ("" if counted else "-open"),
            "size": 6 if many else 9,
            "opacity": 0.55 if many else 0.9,
            "color": stack_colour(stack, style),
            "line": {"width": 0.6 if counted else 1.6,
                     "color": style.surface if counted else stack_colour(stack, style)},
        },
        customdata=[
            (
                int(number),
                safe(str(run)),
                f"{digits(theirs)} {UNITS[quantity]}",
                f"{digits(ours)} {UNITS[quantity]}",
                signed(error),
            )
            for number, run, theirs, ours, error in zip(
                own["row"], own["run"], published, predicted, errors, strict=True
            )
        ],
        hovertemplate=HOVER,
    )  # fmt: skip


def signed(share: float) -> str:
    """A relative error, as in +4.2 %."""
    return f"{share * 100:+.1f} %".replace("-", "\u2212")


def source_errors(rows: pd.DataFrame, *, style: Style = DEFAULT_STYLE) -> Figure:
    """Mean absolute errors of each source beside what was asked for.

    `rows` has columns label, stack, mean_error (a share) and target (in percent, or NaN).
    """
    labels = list(dict.fromkeys(rows["label"]))
    figure = Figure()
    for stack in ("calibrated", "generic"):
        own = rows[rows["stack"] == stack]
        colour = stack_colour(stack, style)
        figure.add_trace(
            scatter_trace(
                x=(own["mean_error"] * 100).to_numpy(),
                y=own["label"].tolist(),
                mode="markers",
                name=stack,
                meta=stack,
                marker={"symbol": SYMBOLS[stack], "size": 12, "color": colour},
                hovertemplate="<b>%{y}</b><br>mean error %{x:.1f} % (%{fullData.name})"
                "<extra></extra>",
            )
        )
        asked = own[own["target"].notna()]
        figure.add_trace(
            scatter_trace(
                x=asked["target"].to_numpy(),
                y=asked["label"].tolist(),
                mode="markers",
                name=f"asked of {stack}",
                meta=f"asked of {stack}",
                marker={"symbol": "line-ns", "size": 18, "color": colour,
                        "line": {"color": colour, "width": 2}},
                hovertemplate="<b>%{y}</b><br>asked for: %{x:g} % or less<extra></extra>",
            )
        )  # fmt: skip
    figure.update_layout(
        xaxis=value_axis(style, "mean absolute error (%)", rangemode="tozero"),
        yaxis=row_axis(style, labels),
        hovermode="closest",
    )
    return finish(figure, style, height=rows_height(len(labels), style), revision="sources")
