"""FSDP's pictures: gathered parameters over a step, splits of the GPUs, shards, gathers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from triosim.figures.figure import Figure, bar_trace, scatter_trace
from triosim.figures.palette import CLASS_COLOURS, PHASE_COLOURS, text_on
from triosim.figures.style import DEFAULT_STYLE, Style, finish, row_axis, rows_height, value_axis
from triosim.figures.text import short
from triosim.figures.train_colours import GROUP_COLOURS, HELD_COLOURS, STEP_COLOURS

if TYPE_CHECKING:
    from triosim.lab.fsdp_step import Gathered, Piece, Split

CHART_PX = 290
PADDING_COLOUR = CLASS_COLOURS["idle"]
CURVES = (
    (STEP_COLOURS["backward"], "solid"), (CLASS_COLOURS["exposed_communication"], "dash"),
    (STEP_COLOURS["optimizer"], "dot"),
)  # fmt: skip
STATE_COLOURS = {name: HELD_COLOURS[name] for name in ("parameters", "gradients", "optimizer")}
LEAST_SHARE = 0.1  # of the axis: a shorter bar has no number


def gathered_over_step(curves: Sequence[Gathered], *, style: Style = DEFAULT_STYLE) -> Figure:
    """Whole parameters that a GPU holds, against the time."""
    figure = Figure()
    for curve, (colour, dash) in zip(curves, CURVES, strict=False):
        figure.add_trace(
            scatter_trace(
                x=[*curve.time_ms, curve.step_ms],
                y=[*curve.gib, curve.gib[-1]],
                mode="lines",
                line={"shape": "hv", "color": colour, "width": 2.5, "dash": dash},
                name=f"{curve.name}: {short(curve.peak_gib, 3)} GiB",
                hovertemplate=f"{curve.name}<br>%{{x:.1f}} ms: %{{y:.2f}} GiB<extra></extra>",
            )
        )
    finish(figure, style, height=CHART_PX, revision="gathered")
    top = max(curve.peak_gib for curve in curves)
    figure.update_layout(
        xaxis=value_axis(style, "time (ms)", range=[0, max(c.step_ms for c in curves)]),
        yaxis=value_axis(style, "gathered (GiB)", range=[0, 1.1 * top or 1.0]),
        legend={"maxheight": 6 * style.font_size},
    )
    return figure


def state_by_split(found: Sequence[Split], chosen: int, *, style: Style = DEFAULT_STYLE) -> Figure:
    """What a GPU holds of the state, by how the same GPUs are split."""
    parts = {name: [split.state_gib[name] for split in found] for name in STATE_COLOURS}
    return _stacked(found, chosen, parts, STATE_COLOURS, "state on a GPU (GiB)", style)


def sent_by_split(found: Sequence[Split], chosen: int, *, style: Style = DEFAULT_STYLE) -> Figure:
    """What a GPU sends in a step, by how the same GPUs are split."""
    kinds = ("all-gather", "reduce-scatter", "all-reduce")
    parts = {kind: [split.sent_gb.get(kind, 0.0) for split in found] for kind in kinds}
    return _stacked(found, chosen, parts, STEP_COLOURS, "sent by a GPU (GB)", style)


def _stacked(
    found: Sequence[Split],
    chosen: int,
    parts: Mapping[str, Sequence[float]],
    colours: Mapping[str, str],
    title: str,
    style: Style,
) -> Figure:
    labels = [_label(split, chosen) for split in found]
    totals = [sum(values) for values in zip(*parts.values(), strict=True)]
    most = max(totals) or 1.0
    figure = Figure()
    for name, values in parts.items():
        colour = colours[name]
        figure.add_trace(
            bar_trace(
                orientation="h", y=labels, x=list(values), name=name, meta=name,
                marker={"color": colour, "line": {"width": 0}},
                text=[short(v, 3) if v >= LEAST_SHARE * most else "" for v in values],
                textposition="inside", insidetextanchor="middle", textangle=0,
                insidetextfont={"color": text_on(colour), "size": style.font_size},
                hovertemplate=f"%{{y}}<br>{name}: %{{x:.3f}}<extra></extra>",
            )
        )  # fmt: skip
    for label, total in zip(labels, totals, strict=True):
        _beside(figure, label, total, style)
    height = rows_height(len(labels), style, extra=6)
    finish(figure, style, height=height, revision=title)
    figure.update_layout(
        barmode="stack", bargap=0.25, dragmode=False,
        xaxis=value_axis(style, title, range=[0, 1.16 * most], fixedrange=True),
        yaxis=row_axis(style, labels),
    )  # fmt: skip
    return figure


def _label(split: Split, chosen: int) -> str:
    text = f"{split.shard} \u00d7 {split.replicate}"
    return f"<b>{text}</b>" if split.shard == chosen else text


def _beside(figure: Figure, label: str, value: float, style: Style) -> None:
    figure.add_annotation(
        x=value, y=label, text=f"<b>{short(value, 3)}</b>", showarrow=False, xanchor="left",
        xshift=5, font={"size": style.font_size, "color": style.text},
    )  # fmt: skip


def pieces_by_rank(
    pieces: Sequence[Piece],
    names: Sequence[str],
    ranks: int,
    *,
    all_ranks: int,
    style: Style = DEFAULT_STYLE,
) -> Figure:
    """Which parameters' elements each rank holds; padding is grey and hatched.

    `ranks` of `all_ranks` are drawn, the first ones.
    """
    labels = [f"GPU {rank}" for rank in range(ranks)]
    figure = Figure()
    for number, name in enumerate([*names, ""]):
        own = [piece for piece in pieces if piece.name == name and piece.rank < ranks]
        if not own:
            continue
        colour = GROUP_COLOURS[number % len(GROUP_COLOURS)] if name else PADDING_COLOUR
        figure.add_trace(
            bar_trace(
                orientation="h",
                y=[labels[piece.rank] for piece in own],
                x=[piece.elements for piece in own],
                name=name or "padding",
                meta=name or "padding",
                marker={
                    "color": colour,
                    "line": {"width": 1, "color": style.surface},
                    "pattern": {"shape": "" if name else "/"},
                },
                hovertemplate=f"%{{y}}<br>{name or 'padding'}: %{{x:,}} elements<extra></extra>",
            )
        )
    note = f"; the first {ranks} of {all_ranks} GPUs" if ranks < all_ranks else ""
    finish(figure, style, height=rows_height(ranks, style, extra=9), revision="pieces")
    figure.update_layout(
        barmode="stack", bargap=0.18, dragmode=False,
        xaxis=value_axis(style, f"elements{note}", fixedrange=True),
        yaxis=row_axis(style, labels),
        legend={"maxheight": 7 * style.font_size},
    )  # fmt: skip
    return figure


def gather_bars(
    times_ms: Mapping[str, float], block_ms: float, *, style: Style = DEFAULT_STYLE
) -> Figure:
    """One block's all-gather on each network, and the computing that it can hide behind."""
    rows = {**times_ms, "the block computes": block_ms}
    labels = list(rows)
    colours = [STEP_COLOURS["all-gather"]] * len(times_ms) + [PHASE_COLOURS["forward"]]
    figure = Figure(
        bar_trace(
            orientation="h", y=labels, x=list(rows.values()), marker={"color": colours},
            hovertemplate="%{y}: %{x:.3f} ms<extra></extra>",
        )
    )  # fmt: skip
    for label, value in rows.items():
        _beside(figure, label, value, style)
    figure.add_vline(x=block_ms, line={"color": style.text, "dash": "dot", "width": 1.5})
    finish(figure, style, height=rows_height(len(labels), style, extra=4), revision="gathers")
    figure.update_layout(
        showlegend=False, bargap=0.3, dragmode=False,
        xaxis=value_axis(style, "ms", range=[0, 1.16 * max(rows.values())], fixedrange=True),
        yaxis=row_axis(style, labels),
    )  # fmt: skip
    return figure
