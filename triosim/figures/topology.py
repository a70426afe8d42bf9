"""GPUs, the links between them, and how busy each link is over the step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from triosim.figures.drawn_links import HUB, DrawnLink, links_between, remote_link, spokes
from triosim.figures.figure import Figure, Trace, scatter_trace
from triosim.figures.link_loads import link_loads
from triosim.figures.network import network_figure
from triosim.figures.palette import PHASE_COLOURS, mixed, text_on
from triosim.figures.places import ROW, TRACK_FROM, Places, Point, place
from triosim.figures.style import DEFAULT_STYLE, Style, finish, lines_of, value_axis
from triosim.figures.text import DASH, bytes_text, share_text, time_text
from triosim.result import Result

LEVELS = 5
# Where no width is given: how wide a page's chart is, to tell whether labels fit.
ASSUMED_WIDTH_PX = 1100
PHONE_WIDTH_PX = 330
# Around rows of GPUs, in distances between neighbours.
PAD = 0.6
MAX_LABELLED_ROWS = 5


def topology_figure(result: Result, *, style: Style = DEFAULT_STYLE) -> Figure:
    """The scenario's network; remote memory is a sentence, or a node where it is all there is.

    GPUs on a topology of their own are drawn with its switches and every link's load.
    """
    if result.scenario.on_topology:
        loads = link_loads(result)
        return network_figure(loads.topology, loads.carried_bytes, 1.0, style=style)
    places = place(result.scenario)
    hub = result.scenario.case == 0 and result.scenario.gpus > 1
    links = spokes(result, places) if hub else links_between(result, places)
    figure = Figure()
    _draw_mesh(figure, places, style)
    phase = {0: "fetch", 4: "send"}.get(result.scenario.case, "all-reduce")
    _draw_links(figure, links, style, phase)
    _draw_nodes(figure, places, result, style)
    if hub:
        _draw_hub(figure, style)
    if not _alike(links) and _room_for_labels(places, style):
        # NOTE: add_annotation checks all that are there again, so they are set at once.
        figure.update_layout(annotations=[_link_label(link, style) for link in links])
    caption = _caption(result, places, links, style)
    _set_axes(figure, places, links, caption, style)
    return finish(figure, style, height=_height(places, caption, style), revision="topology")


def _draw_links(figure: Figure, links: Sequence[DrawnLink], style: Style, phase: str) -> None:
    """One trace for each level of load, so that 126 links are still a few traces."""
    levels = sorted({_level(link.share) for link in links})
    for level in levels:
        own = [link for link in links if _level(link.share) == level]
        colour = _colour(level, style, phase)
        trace = _lines([link.points for link in own], colour, 1.5 + level)
        trace.update(name=_level_name(level), showlegend=len(levels) > 1, meta="line")
        figure.add_trace(trace)
        figure.add_trace(_arrows(own, colour, style, level))


def _level(share: float) -> int:
    """0 where nothing is carried, then equal steps up to a link that is always busy."""
    return 0 if share <= 0 else min(LEVELS, 1 + int(share * LEVELS))


def _level_name(level: int) -> str:
    if level == 0:
        return "unused"
    return f"{(level - 1) * 100 // LEVELS}{DASH}{level * 100 // LEVELS} % of the step busy"


def _colour(level: int, style: Style, phase: str) -> str:
    """From pale to the full colour of what moves."""
    full = mixed(PHASE_COLOURS[phase], style.text, 0.35 if style.dark else 0.1)
    return mixed(style.surface, full, 0.45 + 0.55 * level / LEVELS)


def _lines(curves: Sequence[Sequence[Point]], colour: str, width: float) -> Trace:
    broken = [point for points in curves for point in (*points, (None, None))]
    return scatter_trace(
        x=[x for x, _ in broken],
        y=[y for _, y in broken],
        mode="lines",
        line={"color": colour, "width": width},
        hoverinfo="skip",
    )


def _arrows(links: Sequence[DrawnLink], colour: str, style: Style, level: int) -> Trace:
    """An arrow head in the middle of each link; it also carries the hover."""
    pairs = [
        (link.points[len(link.points) // 2 - 1], link.points[len(link.points) // 2])
        for link in links
    ]
    size = round(1.1 * style.font_size) + level
    return scatter_trace(
        x=[point[0] for pair in pairs for point in pair],
        y=[point[1] for pair in pairs for point in pair],
        mode="markers",
        # Of each two points the first only gives the direction.
        marker={
            "symbol": "arrow",
            "angleref": "previous",
            "size": [s for _ in pairs for s in (0, size)],
            "color": colour,
            "line": {"width": 0},
        },
        hovertext=[text for link in links for text in ("", link.hover)],
        hovertemplate="%{hovertext}<extra></extra>",
        showlegend=False,
        meta="link",
    )


def _draw_mesh(figure: Figure, places: Places, style: Style) -> None:
    if places.mesh:
        trace = _lines(places.mesh, style.grid, 1) | {"showlegend": False, "meta": "mesh"}
        trace["line"]["dash"] = "dot"
        figure.add_trace(trace)


def _draw_nodes(figure: Figure, places: Places, result: Result, style: Style) -> None:
    fill = mixed(style.surface, PHASE_COLOURS["forward"], 0.3)
    crowded = len(places.at) > 32
    letters = max(len(str(rank)) for rank in places.at)
    least = (1.9 if crowded else 2.5) * style.font_size
    disc = min(max(least, (0.6 * letters + 0.9) * style.small), _room_px(places))
    size = min(style.small if crowded else style.font_size, 0.58 * disc)
    figure.add_trace(
        scatter_trace(
            x=[x for x, _ in places.at.values()],
            y=[y for _, y in places.at.values()],
            mode="markers+text",
            marker=_disc(disc, fill, style),
            text=[str(rank) for rank in places.at],
            textfont={"size": size, "color": text_on(fill)},
            hovertext=[_node_text(result, rank) for rank in places.at],
            hovertemplate="%{hovertext}<extra></extra>",
            showlegend=False,
            meta="gpu",
            cliponaxis=False,
        )
    )


def _room_px(places: Places) -> float:
    """How wide a GPU in a row may be: on a phone, or where no phone could show so many, a page."""
    if places.circle:
        return math.inf
    columns = len({x for x, _ in places.at.values()})
    width = PHONE_WIDTH_PX if columns <= ROW else ASSUMED_WIDTH_PX
    return 0.8 * width / (columns - 1 + 2 * PAD)


def _disc(size: float, fill: str, style: Style) -> dict[str, Any]:
    return {
        "size": size,
        "color": fill,
        "opacity": 1,
        "line": {"color": PHASE_COLOURS["backward"], "width": 1.5},
    }


def _node_text(result: Result, rank: int) -> str:
    compute = result.breakdowns[result.class_of(rank)].classes_s["compute"]
    share = share_text(compute, result.tasks.total_s)
    return f"<b>GPU {rank}</b><br>computes {time_text(compute * 1e3)}, {share} of the step"


def _draw_hub(figure: Figure, style: Style) -> None:
    fill = mixed(style.surface, PHASE_COLOURS["fetch"], 0.4)
    figure.add_annotation(
        x=0,
        y=0,
        text="remote<br>memory",
        showarrow=False,
        bgcolor=fill,
        bordercolor=PHASE_COLOURS["fetch"],
        borderwidth=1.5,
        borderpad=5,
        font={"size": style.font_size, "color": text_on(fill)},
    )


def _alike(links: Sequence[DrawnLink]) -> bool:
    return len({(link.carried, link.busy) for link in links}) == 1


def _room_for_labels(places: Places, style: Style) -> bool:
    """Whether every link can carry its load in writing."""
    if places.circle:
        return False
    columns, rows = (len({point[k] for point in places.at.values()}) for k in (0, 1))
    letters = 5 if rows == 1 else 11
    return ASSUMED_WIDTH_PX / columns >= letters * style.small and rows <= MAX_LABELLED_ROWS


def _link_label(link: DrawnLink, style: Style) -> dict[str, Any]:
    """Its load to the left of the direction of travel, where the link bows to."""
    (x0, y0), (x1, y1) = link.points[0], link.points[-1]
    left = (y0 - y1, x1 - x0)
    if abs(left[1]) > abs(left[0]):
        up = left[1] > 0
        side = {"yanchor": "bottom" if up else "top", "yshift": 7 if up else -7}
    else:
        right = left[0] > 0
        side = {"xanchor": "left" if right else "right", "xshift": 8 if right else -8}
    return {
        "x": link.middle[0],
        "y": link.middle[1],
        "text": f"{link.carried}<br>{link.busy}",
        "showarrow": False,
        "font": {"size": style.small, "color": style.text},
        **side,
    }


def _caption(result: Result, places: Places, links: Sequence[DrawnLink], style: Style) -> list[str]:
    """What the drawing cannot say: equal loads, remote memory, GPUs that are left out."""
    lines = []
    if _alike(links):
        each = "each GPU fetches" if links[0].pair[0] < 0 else "each link carries"
        lines.append(f"{each} {links[0].carried}; its link is busy {links[0].busy} of the step")
    elif links and not _room_for_labels(places, style):
        lines.append("point at an arrow to see what its link carries")
    if result.scenario.case != 0 or result.scenario.gpus == 1:
        lines.append(_remote_text(result))
    if len(places.at) < result.scenario.gpus:
        lines.append(f"{len(places.at)} of {result.scenario.gpus:,} GPUs drawn")
    return [part for line in lines for part in lines_of(line)]


def _remote_text(result: Result) -> str:
    per_class = [remote_link(result, c) for c in range(len(result.classes))]
    carried = [float(result.tasks.carried_bytes[i]) for i in per_class]
    low, high = bytes_text(min(carried)), bytes_text(max(carried))
    if max(carried) == 0:
        return f"{HUB}: nothing is fetched"
    speed = bytes_text(result.tasks.program.links[per_class[0]].bytes_per_s)
    size = high if low == high else f"{low} to {high}"
    return f"{HUB}: each GPU fetches {size} over its own link of {speed}/s"


def _set_axes(
    figure: Figure,
    places: Places,
    links: Sequence[DrawnLink],
    caption: Sequence[str],
    style: Style,
) -> None:
    points = [*places.at.values(), *(point for link in links for point in link.points)]
    pad = 0.2 if places.circle else PAD
    x, y = [p[0] for p in points], [p[1] for p in points]
    bare = {"showticklabels": False, "showgrid": False, "fixedrange": True, "ticks": ""}
    figure.update_layout(
        xaxis=value_axis(style, "<br>".join(caption), range=[min(x) - pad, max(x) + pad], **bare),
        yaxis=value_axis(style, "", range=[min(y) - pad, max(y) + pad], **bare),
        dragmode=False,
        hovermode="closest",
    )
    if places.circle:
        figure.update_yaxes(scaleanchor="x", scaleratio=1)


def _height(places: Places, caption: Sequence[str], style: Style) -> int:
    scale = style.font_size / 13
    rows = len({y for _, y in places.at.values()})
    if len(places.at) == 1:
        body = 120.0
    elif places.circle:
        body = 360.0 if len(places.at) < TRACK_FROM else 400.0
    elif places.two_way and rows > 1:
        body = 160.0 * rows
    else:
        body = 120.0 + 100.0 * rows
    return round(min(900, body * scale + (2 + 1.4 * len(caption)) * style.font_size))
