"""What the critical path is made of, and what the step would be with one thing cheaper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from triosim.explain import WhatIf
from triosim.figures.figure import Figure, Trace, bar_trace, scatter_trace
from triosim.figures.palette import CLASS_COLOURS, translucent
from triosim.figures.style import (
    DEFAULT_STYLE,
    Style,
    finish,
    legend_entry,
    row_axis,
    rows_height,
    say_nothing_to_show,
    value_axis,
)
from triosim.figures.text import share_text, time_text, words
from triosim.figures.train_colours import OTHER, STEP_COLOURS

MINUS = "\u2212"
MOST_ROWS = 16
LABEL_ROOM = 0.4  # of the bars' reach
NO_GAIN = 5e-4  # of the step: what changes less is left out
FREE, FASTER = "if it were free", "if it were twice as fast"
_OTHERS: Mapping[str, str] = {
    "send/recv": STEP_COLOURS["send"],
    "slow GPUs": CLASS_COLOURS["imbalance"],
    "circuit set-up": CLASS_COLOURS["exposed_communication"],
}


def kind_colour(kind: str) -> str:
    """The colour of a kind of time: of what a transfer does, whatever it carries."""
    phase = kind.partition(":")[0]
    return STEP_COLOURS.get(phase) or CLASS_COLOURS.get(phase) or _OTHERS.get(phase, OTHER)


def critical_bars(totals_ms: Mapping[str, float], *, style: Style = DEFAULT_STYLE) -> Figure:
    """`Explanation.critical_totals`: one bar for each kind; they sum to the step."""
    step_ms = sum(totals_ms.values())
    kinds = [kind for kind, ms in totals_ms.items() if ms > 0]
    shown = kinds[:MOST_ROWS]
    figure = Figure()
    texts = [f"{time_text(totals_ms[k])}, {share_text(totals_ms[k], step_ms)}" for k in shown]
    figure.add_trace(
        bar_trace(
            orientation="h",
            y=[words(kind) for kind in shown],
            x=[totals_ms[kind] for kind in shown],
            text=texts,
            textposition="outside",
            cliponaxis=False,
            textfont={"color": style.text, "size": style.small},
            hovertemplate="<b>%{y}</b><br>%{text} of the step<extra></extra>",
            marker={"color": [kind_colour(kind) for kind in shown], "line": {"width": 0}},
            showlegend=False,
        )
    )
    most = max((totals_ms[kind] for kind in shown), default=0.0) or 1.0
    figure.update_layout(
        bargap=0.3,
        xaxis=value_axis(style, "time on the critical path (ms)", range=[0, most * 1.5]),
        yaxis=row_axis(style, [words(kind) for kind in shown]),
    )
    finish(figure, style, height=rows_height(len(shown), style, extra=4), revision="critical")
    figure.update_layout(showlegend=False)
    if not shown:
        say_nothing_to_show(figure, style, "This step takes no time.")
    return figure


def what_if_tornado(rows: Sequence[WhatIf], *, style: Style = DEFAULT_STYLE) -> Figure:
    """How far the step moves from what it is, for each kind; the most gained on top."""
    base_ms = rows[0].base_ms if rows else 0.0
    moving = [row for row in rows if _moves(row)]
    shown = moving[:MOST_ROWS]
    labels = [words(row.kind) for row in shown]
    figure = Figure()
    for name, width, shade in ((FREE, 0.78, 0.45), (FASTER, 0.42, 1.0)):
        figure.add_trace(_reach(name, shown, width, shade))
        figure.add_trace(legend_entry(name, translucent(OTHER, shade)))
    figure.add_trace(_changes(shown, style))
    low = min((min(row.free_ms, row.twice_as_fast_ms) for row in shown), default=0.0)
    high = max((max(row.free_ms, row.twice_as_fast_ms, base_ms) for row in shown), default=1.0)
    room = (high - low) or 1.0
    left_out = len(rows) - len(moving)
    note = f"<br><i>{left_out} more would change nothing</i>" if left_out else ""
    figure.add_vline(x=base_ms, line={"color": style.text, "width": 1.5})
    figure.update_layout(
        barmode="overlay",
        xaxis=value_axis(
            style, f"step time (ms)<br>line: as it is, {time_text(base_ms)}{note}",
            range=[max(0.0, low - 0.04 * room), high + LABEL_ROOM * room],
        ),
        yaxis=row_axis(style, labels),
    )  # fmt: skip
    extra = 7.5 if left_out else 6.5
    finish(figure, style, height=rows_height(len(shown), style, extra=extra), revision="what-if")
    if not shown:
        say_nothing_to_show(figure, style, "Nothing would make this step shorter.")
    return figure


def _moves(row: WhatIf) -> bool:
    furthest = max(abs(row.free_ms - row.base_ms), abs(row.twice_as_fast_ms - row.base_ms))
    return furthest > NO_GAIN * row.base_ms


def _reach(name: str, rows: Sequence[WhatIf], width: float, shade: float) -> Trace:
    """Bars from the step as it is to what it would be."""
    free = name == FREE
    after_ms = [row.free_ms if free else row.twice_as_fast_ms for row in rows]
    changes = [_change(ms, row.base_ms) for ms, row in zip(after_ms, rows, strict=True)]
    return bar_trace(
        orientation="h",
        name=name,
        meta=name,
        y=[words(row.kind) for row in rows],
        base=[row.base_ms for row in rows],
        x=[ms - row.base_ms for ms, row in zip(after_ms, rows, strict=True)],
        width=width,
        customdata=[(time_text(ms), change) for ms, change in zip(after_ms, changes, strict=True)],
        hovertemplate=(
            "<b>%{y}</b><br>%{fullData.name}: %{customdata[0]} (%{customdata[1]})<extra></extra>"
        ),
        marker={
            "color": [translucent(kind_colour(row.kind), shade) for row in rows],
            "line": {"width": 0},
        },
        textposition="none",
        showlegend=False,
    )


def _changes(rows: Sequence[WhatIf], style: Style) -> Trace:
    """How much each kind is worth at most, beside the line of the step as it is."""
    return scatter_trace(
        x=[max(row.base_ms, row.free_ms, row.twice_as_fast_ms) for row in rows],
        y=[words(row.kind) for row in rows],
        mode="text",
        text=[f" {_change(row.free_ms, row.base_ms)}" for row in rows],
        textposition="middle right",
        textfont={"color": style.text, "size": style.small},
        hoverinfo="skip",
        showlegend=False,
        cliponaxis=False,
    )


def _change(ms: float, base_ms: float) -> str:
    """By how many per cent the step gets longer or shorter."""
    share = (ms / base_ms - 1) * 100 if base_ms else 0.0
    return f"{MINUS if share < 0 else '+'}{abs(share):.1f} %"
