"""Two small charts of the page Network: set-up of circuits, and goodput of a long run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from triosim.figures.figure import Figure, Trace, bar_trace, scatter_trace
from triosim.figures.palette import CLASS_COLOURS, PHASE_COLOURS, text_on
from triosim.figures.style import DEFAULT_STYLE, Style, finish, say_nothing_to_show, value_axis
from triosim.figures.text import digits, share_text, time_text, words

SHARE_COLOURS: Mapping[str, str] = {
    "useful_work": PHASE_COLOURS["optimizer"],
    "checkpoints": PHASE_COLOURS["store"],
    "work_done_again": CLASS_COLOURS["exposed_communication"],
    "restarts": CLASS_COLOURS["bubble"],
}


def setup_figure(
    optical: Sequence[tuple[float, float]],
    electrical_ms: float,
    *,
    here_ms: float,
    break_even_ms: float | None,
    style: Style = DEFAULT_STYLE,
) -> Figure:
    """The step with circuits against their set-up time, and the step over electrical links.

    `optical` holds (set-up in ms, step in ms), set-up rising from 0.
    """
    figure = Figure()
    xs = [setup for setup, _ in optical]
    for name, ys, colour in (
        ("optical", [step for _, step in optical], PHASE_COLOURS["send"]),
        ("electrical", [electrical_ms] * len(xs), PHASE_COLOURS["fetch"]),
    ):
        figure.add_trace(
            scatter_trace(
                x=xs, y=ys, mode="lines", name=name, line={"color": colour, "width": 2.5},
                hovertemplate=f"{name}: step of %{{y:.5g}} ms at a set-up of %{{x:.4g}} ms"
                "<extra></extra>",
                meta=name,
            )
        )  # fmt: skip
    if break_even_ms is not None:
        figure.add_trace(_break_even(break_even_ms, electrical_ms, xs[-1], style))
    figure.add_vline(x=here_ms, line={"color": style.muted, "width": 1.2, "dash": "dash"})
    figure.update_layout(
        xaxis=value_axis(style, "set-up of a circuit (ms)", range=[0, xs[-1]], fixedrange=True),
        yaxis=value_axis(style, "step (ms)", rangemode="tozero", fixedrange=True),
        hovermode="closest",
    )
    return finish(figure, style, height=round(22 * style.font_size), revision="setup")


def _break_even(at_ms: float, step_ms: float, end_ms: float, style: Style) -> Trace:
    """A point where the lines meet, labelled where neither of them runs."""
    return scatter_trace(
        x=[at_ms],
        y=[step_ms],
        mode="markers+text",
        marker={"size": 10, "color": style.surface, "line": {"color": style.text, "width": 2}},
        text=[f"break-even {time_text(at_ms)}"],
        textposition="top left" if at_ms > 0.7 * end_ms else "bottom right",
        textfont={"size": style.small, "color": style.text},
        hoverinfo="skip",
        showlegend=False,
        meta="break-even",
    )


def goodput_figure(
    curve: Sequence[tuple[float, float]],
    marks: Mapping[str, float],
    *,
    style: Style = DEFAULT_STYLE,
) -> Figure:
    """Goodput against the work between two checkpoints, (seconds, share); `marks` are intervals."""
    figure = Figure()
    if curve:
        figure.add_trace(
            scatter_trace(
                x=[seconds / 60 for seconds, _ in curve],
                y=[100 * share for _, share in curve],
                mode="lines",
                line={"color": PHASE_COLOURS["optimizer"], "width": 2.5},
                hovertemplate="a checkpoint every %{x:.3g} min: %{y:.1f} %<extra></extra>",
                showlegend=False,
                meta="goodput",
            )
        )
        low, high = (math.log10(curve[k][0] / 60) for k in (0, -1))
        for name, seconds in marks.items():
            colour, dash = (style.text, "solid") if name == "chosen" else (style.muted, "dash")
            figure.add_trace(
                scatter_trace(
                    x=[seconds / 60] * 2,
                    y=[0, 100],
                    mode="lines",
                    line={"color": colour, "width": 1.4, "dash": {"Young": "dot"}.get(name, dash)},
                    name=f"{name}: {digits(seconds / 60)} min",
                    hoverinfo="skip",
                    meta=name,
                )
            )
        figure.update_layout(
            xaxis=value_axis(
                style, "work between checkpoints (min)", type="log", range=[low, high], dtick=1,
                fixedrange=True, tickformat="~g",
            ),
            yaxis=value_axis(style, "goodput (%)", range=[0, 100], fixedrange=True),
            hovermode="closest",
        )  # fmt: skip
    finish(figure, style, height=round(23 * style.font_size), revision="goodput")
    if not curve:
        sentence = "No interval between 0 and infinity is best: one of the costs is 0."
        say_nothing_to_show(figure, style, sentence)
    return figure


def shares_figure(shares: Mapping[str, float], *, style: Style = DEFAULT_STYLE) -> Figure:
    """One bar of a run's time, cut into useful work and losses that sum to 1."""
    figure = Figure()
    for name, share in shares.items():
        colour = SHARE_COLOURS[name]
        figure.add_trace(
            bar_trace(
                x=[100 * share],
                y=[""],
                orientation="h",
                name=f"{words(name)} {share_text(share, 1.0)}",
                marker={"color": colour},
                text=[share_text(share, 1.0) if share >= 0.06 else ""],
                textposition="inside",
                insidetextanchor="middle",
                constraintext="none",
                textangle=0,
                textfont={"color": text_on(colour), "size": style.small},
                hovertemplate=f"{words(name)}: %{{x:.2f}} % of the time<extra></extra>",
                meta=name,
            )
        )
    figure.update_layout(
        barmode="stack",
        xaxis=value_axis(style, "share of the run's time (%)", range=[0, 100], fixedrange=True),
        yaxis={"visible": False, "fixedrange": True},
    )
    return finish(figure, style, height=round(11.5 * style.font_size), revision="shares")
