"""A topology: GPUs, tiers of switches, links as wide as they are fast and as hot as loaded."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from triosim.figures.figure import Figure, scatter_trace
from triosim.figures.network_places import MAX_ROWS, Places, place_network
from triosim.figures.palette import CLASS_COLOURS, PHASE_COLOURS, mixed, text_on
from triosim.figures.places import Point
from triosim.figures.style import DEFAULT_STYLE, Style, finish, lines_of, value_axis
from triosim.figures.text import DASH, TIMES, bytes_text, digits, safe, share_text, time_text
from triosim.network.topology.base import Floats, Topology

LEVELS = 5
WIDTHS = (1.2, 6.5)
ASSUMED_WIDTH_PX = 860
PHONE_WIDTH_PX = 330
DEAD = -1
MANY = 40  # links; more of full width would cover each other
BOW = 0.16


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """Two joined nodes: both directions of all links between them.

    `bytes_per_s` is the faster direction, `load` the longest busy time of a link as a share of that
    of the busiest link of the network (None without a load).
    """

    ends: tuple[int, int]
    bytes_per_s: float
    load: float | None
    hover: str


def network_figure(
    topology: Topology,
    shares: Floats | None = None,
    size_bytes: float = 0.0,
    *,
    sides: Sequence[int] = (),
    style: Style = DEFAULT_STYLE,
) -> Figure:
    """The topology; with `shares` of an array of `size_bytes` on each link, their load as heat.

    `sides` are those of a grid, as in `place_network`.
    """
    places = place_network(topology, sides)
    pairs = pairs_of(topology, places, shares, size_bytes)
    figure = Figure()
    _draw_links(figure, pairs, places, style)
    _draw_nodes(figure, topology, places, style)
    _label_rows(figure, places, style)
    caption = [line for text in _caption(places) for line in lines_of(text)]
    _set_axes(figure, places, caption, style)
    return finish(figure, style, height=_height(places, caption, style), revision="network")


def busy_of(topology: Topology, shares: Floats) -> Floats:
    """The busy time of each link as a share of that of the busiest one."""
    capacity = topology.capacity_bytes_per_s
    busy = np.divide(shares, capacity, out=np.zeros(len(shares)), where=capacity > 0)
    return busy / busy.max(initial=0.0) if busy.max(initial=0.0) > 0 else busy


def pairs_of(
    topology: Topology, places: Places, shares: Floats | None, size_bytes: float
) -> list[Pair]:
    """The drawn pairs of nodes that are joined."""
    source, target = topology.ends()
    drawn = np.fromiter(places.at, dtype=np.int64)
    seen = np.flatnonzero(np.isin(source, drawn) & np.isin(target, drawn))
    busy = None if shares is None else busy_of(topology, shares)
    links: dict[tuple[int, int], list[int]] = {}
    for link in seen.tolist():
        a, b = int(source[link]), int(target[link])
        links.setdefault((min(a, b), max(a, b)), []).append(link)
    found = []
    for ends, own in links.items():
        way: dict[bool, float] = {}
        for link in own:
            onward = int(source[link]) == ends[0]
            way[onward] = way.get(onward, 0.0) + float(topology.capacity_bytes_per_s[link])
        found.append(
            Pair(
                ends=ends,
                bytes_per_s=max(way.values()),
                load=None if busy is None else float(busy[own].max()),
                hover=_hover(topology, own, shares, busy, size_bytes),
            )
        )
    return found


def _hover(
    topology: Topology,
    links: Sequence[int],
    shares: Floats | None,
    busy: Floats | None,
    size_bytes: float,
) -> str:
    """Both directions; of parallel links the busiest."""
    source, target = topology.ends()
    lines = []
    ways: dict[tuple[int, int], list[int]] = {}
    for link in links:
        ways.setdefault((int(source[link]), int(target[link])), []).append(link)
    for (a, b), own in ways.items():
        name = f"<b>{safe(topology.node_name(a))} to {safe(topology.node_name(b))}</b>"
        width = float(topology.capacity_bytes_per_s[own[0]])
        many = f"{len(own)} links of " if len(own) > 1 else ""
        speed = "dead" if width == 0 else f"{many}{bytes_text(width)}/s"
        latency = time_text(float(topology.link_latency_s[own[0]]) * 1e3)
        lines.append(f"{name}<br>{speed}, latency {latency}")
        if shares is not None and busy is not None:
            link = max(own, key=lambda k: busy[k])
            carried = bytes_text(float(shares[link]) * size_bytes)
            lines.append(f"carries {carried}, busy {share_text(float(busy[link]), 1.0)} as long as "
                         "the busiest link")  # fmt: skip
    return "<br>".join(lines)


def _level(pair: Pair) -> int:
    """0 where nothing is carried, then equal steps up to the busiest link, or `DEAD`."""
    if pair.bytes_per_s == 0:
        return DEAD
    if not pair.load:
        return 0
    return min(LEVELS, 1 + int(pair.load * LEVELS * (1 - 1e-9)))


def _level_name(level: int, loaded: bool) -> str:
    if level == DEAD:
        return "dead"
    if level == 0:
        return "carries nothing" if loaded else "link"
    low, high = (level - 1) * 100 // LEVELS, level * 100 // LEVELS
    return f"{low}{DASH}{high} % of the busiest"


def _colour(level: int, style: Style) -> str:
    if level == DEAD:
        return CLASS_COLOURS["exposed_communication"]
    if level == 0:
        return mixed(style.surface, style.muted, 0.45)
    full = mixed(PHASE_COLOURS["recv"], style.text, 0.25 if style.dark else 0.0)
    pale = mixed(style.surface, PHASE_COLOURS["all-reduce"], 0.5)
    return mixed(pale, full, (level - 1) / (LEVELS - 1))


def _width(bytes_per_s: float, pairs: Sequence[Pair]) -> float:
    """By the logarithm of the bandwidth, between the slowest and the fastest link drawn."""
    speeds = [pair.bytes_per_s for pair in pairs if pair.bytes_per_s > 0]
    low, high = WIDTHS
    if bytes_per_s == 0 or not speeds or max(speeds) <= min(speeds) * 1.001:
        return 2.4 if len(pairs) <= MANY else 1.4
    # At least a factor of 16 from thin to wide, so that similar links look similar.
    slowest = min(min(speeds), max(speeds) / 16)
    part = math.log(bytes_per_s / slowest) / math.log(max(speeds) / slowest)
    # Many links of full width would cover each other.
    return low + (high - low) * part * min(1.0, 120 / len(pairs) + 0.35)


def _draw_links(figure: Figure, pairs: Sequence[Pair], places: Places, style: Style) -> None:
    """One trace for each heat and width, so that 2,000 links are still a few traces."""
    kinds: dict[tuple[int, float], list[Pair]] = {}
    for pair in pairs:
        kinds.setdefault((_level(pair), pair.bytes_per_s), []).append(pair)
    loaded = any(pair.load is not None for pair in pairs)
    named: set[int] = set()
    for (level, speed), own in sorted(kinds.items()):
        points = [point for pair in own for point in (*_curve(places, pair.ends), (None, None))]
        figure.add_trace(
            scatter_trace(
                x=[x for x, _ in points],
                y=[y for _, y in points],
                mode="lines",
                line={
                    "color": _colour(level, style),
                    "width": _width(speed, pairs),
                    "dash": "dot" if level == DEAD else "solid",
                },
                name=_level_name(level, loaded),
                legendgroup=str(level),
                showlegend=level not in named and loaded,
                hoverinfo="skip",
                meta="line",
            )
        )
        named.add(level)
    _draw_hovers(figure, pairs, places)


def _draw_hovers(figure: Figure, pairs: Sequence[Pair], places: Places) -> None:
    """Something to point at on each link: nearer to the lower end, where links do not meet."""
    curves = [_curve(places, pair.ends) for pair in pairs]
    spots = [_between(c[0], c[1]) if len(c) == 2 else c[len(c) // 2] for c in curves]
    figure.add_trace(
        scatter_trace(
            x=[x for x, _ in spots],
            y=[y for _, y in spots],
            mode="markers",
            marker={"size": 12, "opacity": 0.01, "color": "#888888"},
            hovertext=[pair.hover for pair in pairs],
            hovertemplate="%{hovertext}<extra></extra>",
            showlegend=False,
            meta="link",
        )
    )


def _between(start: Point, end: Point) -> Point:
    return start[0] + 0.42 * (end[0] - start[0]), start[1] + 0.42 * (end[1] - start[1])


def _curve(places: Places, ends: tuple[int, int]) -> list[Point]:
    """Straight, or bowed where it would run through other nodes of a grid."""
    start, end = places.at[ends[0]], places.at[ends[1]]
    length = math.dist(start, end)
    if not places.neighbours or abs(ends[0] - ends[1]) in places.neighbours:
        return [start, end]
    dx, dy = (end[0] - start[0]) / length, (end[1] - start[1]) / length
    bow = BOW + 0.05 * length
    steps = [i / 10 for i in range(11)]
    return [
        (
            start[0] + dx * length * t - dy * bow * 4 * t * (1 - t),
            start[1] + dy * length * t + dx * bow * 4 * t * (1 - t),
        )
        for t in steps
    ]


def _draw_nodes(figure: Figure, topology: Topology, places: Places, style: Style) -> None:
    gpus = [node for node in places.at if places.level[node] == 0]
    switches = [node for node in places.at if places.level[node] > 0]
    room = _room_px(places)
    on_phone = room * PHONE_WIDTH_PX / ASSUMED_WIDTH_PX if not places.same_scale else room
    # On a grid each link lies between two discs and has to be seen there.
    share = 0.6 if places.same_scale else 0.82
    disc = max(7.0, min(2.3 * style.font_size, share * room, max(13.0, 0.8 * on_phone)))
    fill = mixed(style.surface, PHASE_COLOURS["forward"], 0.35)
    written = disc >= 1.15 * style.small
    _scatter(
        figure, topology, places, gpus,
        marker={"size": disc, "color": fill,
                "line": {"color": PHASE_COLOURS["backward"], "width": 1.2}},
        text=[str(node) if written else "" for node in gpus],
        colour=text_on(fill), size=min(style.small, 0.55 * disc), meta="gpu",
    )  # fmt: skip
    vacant = [node for node in places.at if places.level[node] < 0]
    if vacant:
        edge = {"color": style.muted, "width": 1}
        _scatter(
            figure, topology, places, vacant,
            marker={"size": 0.6 * disc, "color": style.surface, "line": edge},
            text=[""] * len(vacant), colour=style.muted, size=style.small, meta="free place",
        )  # fmt: skip
    fill = mixed(style.surface, PHASE_COLOURS["optimizer"], 0.4)
    _scatter(
        figure, topology, places, switches,
        marker={"symbol": "square", "size": max(10.0, min(1.7 * style.font_size, room)),
                "color": fill, "line": {"color": PHASE_COLOURS["optimizer"], "width": 1.2}},
        text=[""] * len(switches), colour=text_on(fill), size=style.small, meta="switch",
    )  # fmt: skip


def _scatter(
    figure: Figure,
    topology: Topology,
    places: Places,
    nodes: Sequence[int],
    *,
    marker: Mapping[str, object],
    text: Sequence[str],
    colour: str,
    size: float,
    meta: str,
) -> None:
    figure.add_trace(
        scatter_trace(
            x=[places.at[node][0] for node in nodes],
            y=[places.at[node][1] for node in nodes],
            mode="markers+text",
            marker={"opacity": 1, **marker},
            text=text,
            textfont={"size": size, "color": colour},
            hovertext=[safe(topology.node_name(node)) for node in nodes],
            hovertemplate="<b>%{hovertext}</b><extra></extra>",
            showlegend=False,
            cliponaxis=False,
            meta=meta,
        )
    )


def _room_px(places: Places) -> float:
    """The distance between neighbouring GPUs in pixels."""
    xs, ys = ([point[k] for point in places.at.values()] for k in (0, 1))
    wide = max(xs) - min(xs) + 2 * places.pitch
    if not places.same_scale:
        return ASSUMED_WIDTH_PX / max(wide, 4.0) * places.pitch
    high = max(ys) - min(ys) + 2 * places.pitch
    return min(ASSUMED_WIDTH_PX / wide, 330 / high) * places.pitch


def _label_rows(figure: Figure, places: Places, style: Style) -> None:
    """What stands on each level and how many of it there are, at the left edge."""
    if places.same_scale:
        return
    # Nothing stands below the GPUs, so their label does.
    bottom = min(point[1] for point in places.at.values())
    below = {"yanchor": "top", "yshift": -1.1 * style.font_size}
    above = {"yanchor": "bottom", "yshift": 0.75 * style.font_size}
    heights: dict[float, list[str]] = {}
    for row in places.rows:
        heights.setdefault(row.y, []).append(_count_text(row.name, row.count))
    figure.update_layout(
        annotations=[
            {
                "xref": "paper", "x": 0.0, "xanchor": "left",
                "y": bottom if y == places.rows[0].y else y,
                "text": "<br>".join(map(safe, names)), "showarrow": False, "align": "left",
                "font": {"size": style.small, "color": style.muted},
                "bgcolor": style.surface, "borderpad": 1,
                **(below if y == places.rows[0].y else above),
            }
            for y, names in heights.items()
        ]
    )  # fmt: skip


def _count_text(name: str, count: int) -> str:
    return name if count == 1 else f"{name} {TIMES} {count:,}"


def _caption(places: Places) -> list[str]:
    found = []
    if places.same_scale and places.rows:
        found.append(", ".join(_count_text(row.name, row.count) for row in places.rows))
    if places.drawn_ranks < places.ranks:
        times = places.ranks / places.drawn_ranks
        found.append(
            f"{places.drawn_ranks} of {places.ranks:,} GPUs drawn, with their way up; "
            f"all there is {TIMES} {digits(times)}"
            if places.rows
            else f"{places.drawn_ranks} of {places.ranks:,} GPUs drawn"
        )
    return found


def _set_axes(figure: Figure, places: Places, caption: Sequence[str], style: Style) -> None:
    xs, ys = ([point[k] for point in places.at.values()] for k in (0, 1))
    pad = 0.28 if places.same_scale and max(map(abs, xs)) < 1.5 else 0.7
    wide = pad + (0.0 if places.same_scale else 0.06 * (max(xs) - min(xs)) + 0.4)
    bare = {"showticklabels": False, "showgrid": False, "fixedrange": True, "ticks": ""}
    # Labels stand below the lowest and above the highest row.
    low, high = (min(ys) - pad, max(ys) + pad) if places.same_scale else (min(ys) - 1, max(ys) + 1)
    figure.update_layout(
        xaxis=value_axis(
            style, "<br>".join(caption), range=[min(xs) - wide, max(xs) + wide], **bare
        ),
        yaxis=value_axis(style, "", range=[low, high], **bare),
        dragmode=False,
        hovermode="closest",
    )
    if places.same_scale:
        figure.update_yaxes(scaleanchor="x", scaleratio=1)


def _height(places: Places, caption: Sequence[str], style: Style) -> int:
    levels = 1 + max(places.level.values(), default=0)
    rows = len({places.at[node][1] for node, level in places.level.items() if level == 0})
    body = 350 if places.same_scale else 100 + 68 * levels + 26 * min(rows - 1, MAX_ROWS - 1)
    if len(places.at) == 1:
        body = 130
    return round(min(560, body) * style.font_size / 13 + 1.5 * style.font_size * len(caption))
