"""Compilation's pictures: the greedy loop on its graph, launches over time, graph breaks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from triosim.figures.figure import Figure, bar_trace, scatter_trace
from triosim.figures.palette import CLASS_COLOURS, PHASE_COLOURS, text_on, translucent
from triosim.figures.style import DEFAULT_STYLE, Style, finish, row_axis, rows_height, value_axis
from triosim.figures.text import MICRO, safe, short
from triosim.figures.train_colours import GROUP_COLOURS

if TYPE_CHECKING:
    from triosim.lab.fusion_steps import FusionStep, Greedy
    from triosim.lab.launch_steps import Broken, Lane

GRAPH_PX = 230
ARC = np.linspace(0, np.pi, 17)
FEW = 8  # nodes with room for large marks
MOST_EDGED = 60  # bars
TAKEN_COLOUR = PHASE_COLOURS["optimizer"]
REFUSED_COLOUR = CLASS_COLOURS["exposed_communication"]
CALL_COLOUR, ALONE_COLOUR = CLASS_COLOURS["bubble"], CLASS_COLOURS["idle"]
LAUNCH_COLOUR, KERNEL_COLOUR = CLASS_COLOURS["launch_wait"], PHASE_COLOURS["forward"]
GUARD_COLOUR = PHASE_COLOURS["fetch"]
WAIT_OPACITY = (0.22, 0.42)
LEAST_GAP_S = 1e-12


def fusion_graph(found: Greedy, step: FusionStep, *, style: Style = DEFAULT_STYLE) -> Figure:
    """Nodes in their order, who reads from whom above, the pair that is looked at below.

    Nodes of one kernel have one colour; squares are library calls, which take nothing in.
    """
    figure = Figure()
    for name, ends, colour, side in _arcs(found, step, style):
        x = [None if v is None else float(v) for v in _bows(ends)]
        y = [None if v is None else side * float(v) for v in _bows(ends, high=True)]
        figure.add_trace(
            scatter_trace(
                x=x, y=y, mode="lines", name=name, hoverinfo="skip",
                line={"color": colour, "width": 4 if side < 0 else 1.5},
            )
        )  # fmt: skip
    size = 30 if len(found.names) <= FEW else 16
    for name, own, colour in _nodes(found, step):
        figure.add_trace(
            scatter_trace(
                x=own,
                y=[0] * len(own),
                mode="markers+text",
                name=name,
                marker={
                    "size": size,
                    "symbol": "square" if name == "library call" else "circle",
                    "color": colour,
                    "line": {"width": 1.5, "color": style.text},
                },
                text=[str(number + 1) for number in own],
                textfont={"color": text_on(colour), "size": style.small},
                customdata=[safe(found.names[number]) for number in own],
                hovertemplate="%{customdata}<extra></extra>",
            )
        )
    count = len(found.names)
    names = (3 if count <= FEW else 9) * style.font_size
    finish(figure, style, height=GRAPH_PX + names, revision="fusion")
    figure.update_layout(
        xaxis=value_axis(
            style, "", range=[-0.6, count - 0.4], tickvals=list(range(count)),
            ticktext=[safe(name[:18]) for name in found.names], showgrid=False, fixedrange=True,
            tickangle=0 if count <= FEW else -90,
        ),
        yaxis={"visible": False, "fixedrange": True, "range": [-1.15, 1.15]},
        dragmode=False,
    )  # fmt: skip
    return figure


def _arcs(
    found: Greedy, step: FusionStep, style: Style
) -> Iterator[tuple[str, Sequence[tuple[int, int]], str, int]]:
    """Kinds of arcs: name, ends, colour, and 1 for above or -1 for below."""
    yield "reads from", found.edges, style.muted, 1
    pair = step.candidate
    if pair is not None:
        ends = [(found.names.index(pair.first[0]), found.names.index(pair.second[0]))]
        if pair.taken:
            yield "taken", ends, TAKEN_COLOUR, -1
        else:
            yield "refused", ends, REFUSED_COLOUR, -1


def _bows(ends: Sequence[tuple[int, int]], *, high: bool = False) -> list[float | None]:
    """Points of half ellipses between places on a line, with breaks; heights grow with length."""
    points: list[float | None] = []
    longest = max((abs(b - a) for a, b in ends), default=1) or 1
    for a, b in ends:
        height = 0.35 + 0.7 * abs(b - a) / longest
        middle, half = (a + b) / 2, (b - a) / 2
        points += list(height * np.sin(ARC) if high else middle - half * np.cos(ARC))
        points.append(None)
    return points


def _nodes(found: Greedy, step: FusionStep) -> Iterator[tuple[str, list[int], str]]:
    """Groups of nodes that are drawn alike: name, places, colour."""
    place = {name: number for number, name in enumerate(found.names)}
    alone = [place[g[0]] for g in step.groups if len(g) == 1]
    calls = [number for number in alone if found.closed[number]]
    single = [number for number in alone if not found.closed[number]]
    for name, own, colour in (
        ("library call", calls, CALL_COLOUR), ("a kernel of its own", single, ALONE_COLOUR),
    ):  # fmt: skip
        if own:
            yield name, own, colour
    joined = [group for group in step.groups if len(group) > 1]
    for number, group in enumerate(sorted(joined, key=lambda g: min(map(place.__getitem__, g)))):
        colour = GROUP_COLOURS[number % len(GROUP_COLOURS)]
        yield f"kernel {number + 1}", sorted(place[name] for name in group), colour


def launch_lanes(lanes: Sequence[Lane], *, style: Style = DEFAULT_STYLE) -> Figure:
    """CPU and GPU of each way to run the same work, over time in microseconds."""
    labels = [f"{lane.name}, {where}" for lane in lanes for where in ("CPU", "GPU")]
    bars: dict[str, list[tuple[str, float, float]]] = {
        name: [] for name in ("launch", "guards and breaks", "kernel", "waits for a launch")
    }
    for lane in lanes:
        _lay_out(lane, bars)
    colours = {
        "launch": LAUNCH_COLOUR,
        "guards and breaks": GUARD_COLOUR,
        "kernel": KERNEL_COLOUR,
        "waits for a launch": translucent(LAUNCH_COLOUR, WAIT_OPACITY[style.dark]),
    }
    # Around hundreds of kernels on a phone there would be nothing but edges.
    edge_px = 0.6 if max(map(len, bars.values())) <= MOST_EDGED else 0
    figure = Figure()
    for name, own in bars.items():
        if own:
            figure.add_trace(
                bar_trace(
                    orientation="h", name=name, meta=name,
                    y=[label for label, _, _ in own],
                    base=[1e6 * start for _, start, _ in own],
                    x=[1e6 * (end - start) for _, start, end in own],
                    marker={
                        "color": colours[name],
                        "line": {"width": edge_px, "color": style.surface},
                    },
                    hovertemplate=f"%{{y}}<br>{name}: %{{x:.2f}} {MICRO}s from %{{base:.1f}}"
                    "<extra></extra>",
                )
            )  # fmt: skip
    last_us = 1e6 * max(lane.timeline.step_s for lane in lanes)
    for lane in lanes:
        figure.add_annotation(
            x=1e6 * lane.timeline.step_s, y=f"{lane.name}, GPU", xanchor="left", xshift=5,
            text=f"<b>{short(1e6 * lane.timeline.step_s)}</b>", showarrow=False,
            font={"size": style.font_size, "color": style.text},
        )  # fmt: skip
    finish(figure, style, height=rows_height(len(labels), style, extra=6), revision="launches")
    figure.update_layout(
        barmode="overlay", bargap=0.15, dragmode="zoom",
        xaxis=value_axis(style, f"time ({MICRO}s)", range=[0, 1.12 * last_us]),
        yaxis=row_axis(style, labels),
    )  # fmt: skip
    return figure


def _lay_out(lane: Lane, bars: dict[str, list[tuple[str, float, float]]]) -> None:
    cpu, gpu = f"{lane.name}, CPU", f"{lane.name}, GPU"
    launched = free = 0.0
    for one in lane.timeline.launches:
        if one.cpu_start_s > launched + LEAST_GAP_S:
            bars["guards and breaks"].append((cpu, launched, one.cpu_start_s))
        if one.cpu_end_s > one.cpu_start_s:
            bars["launch"].append((cpu, one.cpu_start_s, one.cpu_end_s))
        if one.start_s > free + LEAST_GAP_S:
            bars["waits for a launch"].append((gpu, free, one.start_s))
        bars["kernel"].append((gpu, one.start_s, one.end_s))
        launched, free = one.cpu_end_s, one.end_s


def break_costs(found: Sequence[Broken], chosen: str, *, style: Style = DEFAULT_STYLE) -> Figure:
    """Steps with each graph break, launched one by one and replayed."""
    labels = [f"<b>{b.name}</b>" if b.name == chosen else b.name for b in found]
    figure = Figure()
    ways = (
        ("kernels launched", LAUNCH_COLOUR, [broken.step_ms for broken in found]),
        ("CUDA graphs replayed", KERNEL_COLOUR, [broken.replayed_ms for broken in found]),
    )
    for name, colour, values in ways:
        figure.add_trace(
            bar_trace(
                orientation="h", y=labels, x=values, name=name, meta=name,
                marker={"color": colour},
                text=[short(value) for value in values], textposition="outside",
                textfont={"size": style.font_size, "color": style.text}, cliponaxis=False,
                hovertemplate=f"%{{y}}<br>{name}: %{{x:.4f}} ms<extra></extra>",
            )
        )  # fmt: skip
    most = max(max(values) for _, _, values in ways)
    finish(figure, style, height=rows_height(2 * len(labels), style, extra=5), revision="breaks")
    figure.update_layout(
        barmode="group", bargap=0.25, dragmode=False,
        xaxis=value_axis(style, "step (ms)", range=[0, 1.16 * most], fixedrange=True),
        yaxis=row_axis(style, labels),
    )  # fmt: skip
    return figure
