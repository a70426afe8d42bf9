"""Bubble rates against published ones, and what compile gains on few and on many GPUs."""

from __future__ import annotations

import pandas as pd

from triosim.figures.figure import Figure, Trace, scatter_trace
from triosim.figures.palette import mixed
from triosim.figures.style import (
    DEFAULT_STYLE,
    Style,
    finish,
    row_axis,
    rows_height,
    value_axis,
)
from triosim.figures.train_colours import roomy_legend
from triosim.figures.validation import stack_colour

# Four schedules: told apart by their marks, so that the colour stays the calibrated one's.
MARKS = {"1f1b": "circle", "interleaved": "square", "zb-h1": "diamond", "zb-h2": "triangle-up"}


def bubble_scatter(
    rates: pd.DataFrame, *, style: Style = DEFAULT_STYLE, height: int | None = None
) -> Figure:
    """Predicted over published bubble rates in percent, one mark for each schedule.

    `rates` has the columns of `triosim.validation.bubble_rates`.
    """
    most = 105 * float(rates[["published", "predicted"]].max().max())
    figure = Figure(
        scatter_trace(
            x=[0, most], y=[0, most], mode="lines", line={"width": 1.5, "color": style.muted},
            hoverinfo="skip", showlegend=False, meta="equal", name="equal",
        )
    )  # fmt: skip
    for schedule, own in rates.groupby("schedule", sort=False):
        figure.add_trace(
            scatter_trace(
                x=(own["published"] * 100).to_numpy(),
                y=(own["predicted"] * 100).to_numpy(),
                mode="markers",
                name=str(schedule),
                meta=str(schedule),
                marker={
                    "symbol": MARKS.get(str(schedule), "circle"),
                    "size": 9,
                    "color": stack_colour("calibrated", style),
                    "line": {"width": 0.6, "color": style.surface},
                },
                customdata=[
                    (f"{size}, {stages} stages, {batches} micro-batches",)
                    for size, stages, batches in zip(
                        own["size"], own["stages"], own["microbatches"], strict=True
                    )
                ],
                hovertemplate="<b>%{fullData.name}</b><br>%{customdata[0]}<br>published %{x:.2f} %,"
                " predicted %{y:.2f} %<extra></extra>",
            )
        )
    figure.update_layout(
        xaxis=value_axis(style, "published bubble (% of the step)", range=[0, most]),
        yaxis=value_axis(style, "predicted bubble (% of the step)", range=[0, most]),
        hovermode="closest",
    )
    return finish(figure, style, height=height or round(28 * style.font_size), revision="bubbles")


def gains_figure(rows: pd.DataFrame, *, style: Style = DEFAULT_STYLE) -> Figure:
    """The gain on few and on many GPUs, joined by a line: as long as the gain grows.

    `rows` has columns label, published (bool), gpus, gain (a share) and saved_s; two rows for each
    label.
    """
    labels = list(dict.fromkeys(rows["label"]))
    figure = Figure()
    for label in labels:
        own = rows[rows["label"] == label]
        figure.add_trace(
            scatter_trace(
                x=(own["gain"] * 100).tolist(), y=[label] * len(own), mode="lines",
                line={"width": 3, "color": style.grid}, hoverinfo="skip", showlegend=False,
                meta="growth", name=label,
            )
        )  # fmt: skip
    counts = sorted(set(rows["gpus"]))
    for published in (True, False):
        for gpus in counts:
            own = rows[(rows["gpus"] == gpus) & (rows["published"] == published)]
            if len(own):
                figure.add_trace(_ends(own, gpus, published, gpus == counts[0], style))
    figure.update_layout(
        xaxis=value_axis(style, "gain from compile (%)", rangemode="tozero"),
        yaxis=row_axis(style, labels),
        hovermode="closest",
    )
    finish(figure, style, height=rows_height(len(labels), style, extra=7), revision="gains")
    return roomy_legend(figure, style)


def _ends(rows: pd.DataFrame, gpus: int, published: bool, few: bool, style: Style) -> Trace:
    colour = style.muted if published else stack_colour("calibrated", style)
    fill = mixed(colour, style.surface, 0.6) if few else colour
    said = "published" if published else "simulated"
    return scatter_trace(
        x=(rows["gain"] * 100).tolist(),
        y=rows["label"].tolist(),
        mode="markers",
        name=f"{gpus} GPUs, {said}",
        meta=f"{gpus} {said}",
        marker={
            "size": 12,
            "color": fill,
            "line": {"width": 2, "color": colour},
        },
        customdata=[(f"{saved:.3f} s",) for saved in rows["saved_s"]],
        hovertemplate="<b>%{y}</b><br>%{fullData.name}: %{x:.1f} % more, %{customdata[0]} saved"
        "<extra></extra>",
    )
