"""Where the nodes of a topology stand in its drawing, and which of them are drawn.

Grids stand on their grid, switches in rows above what they join, everything else on a circle. Of
more than `MAX_DRAWN` GPUs a part is drawn: the first unit with its way up, or a corner of a grid.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from triosim.figures.places import Point
from triosim.network.topology.base import Ints, Topology

MAX_DRAWN = 64
FULL = 32  # GPUs that are drawn with a link between any two
FULL_WHEN_MANY = 12  # of more
PER_UNIT = 16  # GPUs drawn of one unit of a large machine
SIDE = 8  # of the drawn corner of a large grid
FREE = "free place"
VACANT = -1
DEPTH = (0.6, 0.45)  # how far the next layer of a 3-D grid is set off
MAX_WIDTH = 12.0  # on a phone the discs of more GPUs side by side would touch
MAX_ROWS = 4  # of GPUs under one switch
UNIT_GAP = 1.5
GPU_ROW_GAP = 0.8
ROW_GAP = 1.15
_NUMBER = re.compile(r"\s*\d+( of host \d+)?$")


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A kind of node on one level: its name, how many there are and how many are drawn."""

    name: str
    y: float
    count: int
    drawn: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Places:
    """`at[node]` is a position; nodes that are not in it are not drawn.

    `level[node]` is 0 for a GPU, the number of the row for a switch and `VACANT` for a free place.
    `same_scale` says that x and y need the same scale, `pitch` is the distance between neighbouring
    GPUs; on a grid, links between ranks that are none of `neighbours` apart pass other GPUs.
    """

    at: Mapping[int, Point]
    level: Mapping[int, int]
    rows: Sequence[Row]
    ranks: int
    drawn_ranks: int
    same_scale: bool
    pitch: float
    neighbours: tuple[int, ...] = ()


def place_network(topology: Topology, sides: Sequence[int] = ()) -> Places:
    """The layout of a topology of any size.

    `sides` are those of a grid; they need not be given where a GPU stands on every place of it.
    """
    source, target = topology.ends()
    nodes = 1 + int(max(source.max(initial=0), target.max(initial=0), topology.ranks - 1))
    shape = tuple(sides) or topology.shape()
    if shape is not None and 2 <= len(shape) <= 3 and sum(side > 1 for side in shape) > 1:
        return _grid(topology, shape)
    first, last = topology.ranks, topology.ranks + _free_places(topology, nodes)
    used = ((source < first) | (source >= last)) & ((target < first) | (target >= last))
    source, target = source[used], target[used]
    depth = _levels(topology, source, target, nodes)
    if not (depth > 0).any():
        return _circle(topology)
    if _joined_at_one_level(source, target, depth):
        return _rounds(topology, source, target, depth)
    return _tiers(topology, source, target, depth)


def is_free(topology: Topology, node: int) -> bool:
    """Whether a node is a place of a grid or host without a GPU."""
    return node >= topology.ranks and topology.node_name(node).startswith(FREE)


def _free_places(topology: Topology, nodes: int) -> int:
    """How many nodes behind the GPUs are places without one."""
    low, high = topology.ranks, nodes
    while low < high:
        middle = (low + high) // 2
        if is_free(topology, middle):
            low = middle + 1
        else:
            high = middle
    return low - topology.ranks


def _levels(topology: Topology, source: Ints, target: Ints, nodes: int) -> Ints:
    """How many links each node is away from the nearest GPU; -1 where it is joined to nothing."""
    level = np.full(nodes, -1, dtype=np.int64)
    level[: topology.ranks] = 0
    step = 0
    while True:
        reached = target[level[source] == step]
        fresh = np.unique(reached[level[reached] < 0])
        if not len(fresh):
            return level
        step += 1
        level[fresh] = step


def _joined_at_one_level(source: Ints, target: Ints, level: Ints) -> bool:
    """Whether switches of the same level are joined, as routers are."""
    switches = (level[source] > 0) & (level[target] > 0)
    return bool((switches & (level[source] == level[target])).any())


def _grid(topology: Topology, shape: Sequence[int]) -> Places:
    """Layers of a 3-D grid lie behind each other, each a little to the right and up."""
    whole = math.prod(shape) <= MAX_DRAWN
    layers, rows, cols = (1, *shape)[-3:]
    side = max(rows, cols, layers) if whole else SIDE if layers == 1 else SIDE // 2
    shown = min(layers, side)
    wide, high = (DEPTH[k] * (shown - 1) + 1.0 for k in (0, 1))
    at: dict[int, Point] = {}
    for z in range(shown):
        for y in range(min(rows, side)):
            for x in range(min(cols, side)):
                place = (z * rows + y) * cols + x
                at[place] = (wide * x + DEPTH[0] * z, high * -y + DEPTH[1] * z)
    gpus = sum(place < topology.ranks for place in at)
    return Places(
        at=at,
        level={place: 0 if place < topology.ranks else VACANT for place in at},
        rows=[],
        ranks=topology.ranks,
        drawn_ranks=gpus,
        same_scale=True,
        pitch=1.0 if layers == 1 else math.hypot(*DEPTH),
        neighbours=(1, cols, cols * rows),
    )


def _circle(topology: Topology) -> Places:
    """Clockwise from the top; a ring of which a part is left out stays open at the end."""
    ring = topology.shape() is not None
    most = MAX_DRAWN if ring else FULL if topology.ranks <= FULL else FULL_WHEN_MANY
    drawn = min(topology.ranks, most)
    places = drawn if drawn == topology.ranks else drawn + 3
    at = {rank: _on_circle(rank / places) for rank in range(drawn)}
    return Places(
        at=at,
        level=dict.fromkeys(at, 0),
        rows=[],
        ranks=topology.ranks,
        drawn_ranks=drawn,
        same_scale=True,
        pitch=2 * math.sin(math.pi / max(places, 2)),
    )


def _on_circle(share: float, radius: float = 1.0) -> Point:
    angle = 2 * math.pi * share
    return radius * math.sin(angle), radius * math.cos(angle)


def _rounds(topology: Topology, source: Ints, target: Ints, level: Ints) -> Places:
    """Routers on a circle, their GPUs around it."""
    routers = np.flatnonzero(level == 1)[:MAX_DRAWN]
    shown = set(routers.tolist())
    parent = {
        int(gpu): int(router)
        for gpu, router in _pairs(source, target)
        if level[gpu] == 0 and router in shown
    }
    gpus = sorted(parent, key=lambda gpu: (parent[gpu], gpu))[:MAX_DRAWN]
    order = sorted({parent[gpu] for gpu in gpus})
    at: dict[int, Point] = {}
    for i, router in enumerate(order):
        at[router] = _on_circle(i / len(order), 1.0)
        own = [gpu for gpu in gpus if parent[gpu] == router]
        for k, gpu in enumerate(own):
            share = (i + (k + 0.5) / len(own) * 0.8 - 0.4) / len(order)
            at[gpu] = _on_circle(share, 1.45)
    kinds = _rows(topology, level, at, dict.fromkeys(at, 0.0))
    return Places(
        at=at,
        level={node: int(level[node]) for node in at},
        rows=kinds,
        ranks=topology.ranks,
        drawn_ranks=len(gpus),
        same_scale=True,
        pitch=2.9 * math.sin(math.pi / max(len(gpus), 2)),
    )


def _pairs(source: Ints, target: Ints) -> Iterable[tuple[int, int]]:
    return zip(source.tolist(), target.tolist(), strict=True)


def _tiers(topology: Topology, source: Ints, target: Ints, level: Ints) -> Places:
    """GPUs below in units under their nearest switch, each level of switches above the last."""
    whole = topology.ranks <= MAX_DRAWN
    up = (level[target] == level[source] + 1) & (level[source] >= 0)
    lower, upper = source[up], target[up]
    drawn = np.flatnonzero(level == 0) if whole else _first_unit(lower, upper, level)
    units = _units(drawn, lower, upper)
    x, y, pitch = _place_units(units, _joined(source, target, drawn))
    levels = int(level.max())
    heights: dict[int, float] = {}
    width = max(x.values()) - min(x.values()) if len(x) > 1 else 0.0
    # A figure is about three times as wide as it is high.
    gap = max(ROW_GAP, width / 9)
    top = max(y.values())
    below = set(drawn.tolist())
    for k in range(1, levels + 1):
        here = _parents(below, lower, upper, level, k)
        if not whole:
            here = here[:PER_UNIT]
        centre = {node: _centre(node, lower, upper, x) for node in here}
        order = sorted(here, key=lambda node: (centre[node], node))
        x.update(_spread(order, centre, width))
        heights[k] = top + k * gap
        y.update(dict.fromkeys(order, heights[k]))
        below |= set(order)
    at = {node: (x[node], y[node]) for node in x}
    heights[0] = (min(y[gpu] for gpu in drawn.tolist()) + top) / 2
    rows = _rows(topology, level, at, {node: heights[int(level[node])] for node in at})
    return Places(
        at=at,
        level={node: int(level[node]) for node in at},
        rows=rows,
        ranks=topology.ranks,
        drawn_ranks=len(drawn),
        same_scale=False,
        pitch=pitch,
    )


def _first_unit(lower: Ints, upper: Ints, level: Ints) -> Ints:
    """The GPUs that share the first one's nearest switch."""
    switch = upper[lower == 0]
    gpus = np.unique(lower[(level[lower] == 0) & np.isin(upper, switch[:1])])
    return gpus[:PER_UNIT]


def _units(drawn: Ints, lower: Ints, upper: Ints) -> list[list[int]]:
    """The GPUs under each nearest switch, in the order of their numbers."""
    first: dict[int, int] = {}
    own = np.isin(lower, drawn)
    for gpu, switch in zip(lower[own].tolist(), upper[own].tolist(), strict=True):
        first[gpu] = min(first.get(gpu, switch), switch)
    units: dict[int, list[int]] = {}
    for gpu in drawn.tolist():
        units.setdefault(first.get(gpu, -1), []).append(gpu)
    return list(units.values())


def _joined(source: Ints, target: Ints, drawn: Ints) -> bool:
    """Whether drawn GPUs are joined to each other, past any switch."""
    return bool((np.isin(source, drawn) & np.isin(target, drawn)).any())


def _place_units(
    units: Sequence[Sequence[int]], joined: bool
) -> tuple[dict[int, float], dict[int, float], float]:
    """Side by side; a unit whose GPUs are joined is a small circle, any other one a few rows."""
    x: dict[int, float] = {}
    y: dict[int, float] = {}
    left = 0.0
    rows = _rows_of_gpus(units)
    for unit in units:
        if joined and len(unit) > 2:
            radius = max(0.9, len(unit) / (2 * math.pi))
            for i, gpu in enumerate(unit):
                dx, dy = _on_circle(i / len(unit), radius)
                x[gpu], y[gpu] = left + radius + dx, dy
            left += 2 * radius + 1.0
            continue
        columns = -(-len(unit) // rows)
        for i, gpu in enumerate(unit):
            row, column = divmod(i, columns)
            x[gpu], y[gpu] = left + column, -GPU_ROW_GAP * row
        left += columns - 1 + UNIT_GAP
    return x, y, 1.0


def _rows_of_gpus(units: Sequence[Sequence[int]]) -> int:
    """The fewest rows in each unit with which all of them side by side are not too wide."""
    for rows in range(1, MAX_ROWS):
        columns = [-(-len(unit) // rows) for unit in units]
        if sum(columns) - len(units) + UNIT_GAP * (len(units) - 1) <= MAX_WIDTH:
            return rows
    return MAX_ROWS


def _parents(below: set[int], lower: Ints, upper: Ints, level: Ints, k: int) -> list[int]:
    under = np.isin(lower, np.fromiter(below, dtype=np.int64))
    return [int(node) for node in np.unique(upper[under & (level[upper] == k)])]


def _centre(node: int, lower: Ints, upper: Ints, x: Mapping[int, float]) -> float:
    own = [x[child] for child in lower[upper == node].tolist() if child in x]
    return sum(own) / len(own)


def _spread(order: Sequence[int], centre: Mapping[int, float], width: float) -> dict[int, float]:
    """Above their children where these lie apart, else evenly over the width."""
    apart = [b - a for a, b in zip(map(centre.get, order), map(centre.get, order[1:]), strict=False)
             if a is not None and b is not None]  # fmt: skip
    if not apart or min(apart) >= 1.0:
        return dict(centre)
    middle = sum(centre.values()) / len(centre)
    span = max(width * 0.8, len(order) - 1.0)
    step = span / (len(order) - 1)
    return {node: middle - span / 2 + i * step for i, node in enumerate(order)}


def _rows(
    topology: Topology, level: Ints, at: Mapping[int, Point], heights: Mapping[int, float]
) -> list[Row]:
    """Each kind of node by its name without the number."""
    drawn: dict[tuple[int, str], list[int]] = {}
    for node in at:
        key = int(level[node]), kind_of(topology, node)
        drawn.setdefault(key, []).append(node)
    rows = []
    for (k, name), nodes in sorted(drawn.items()):
        alike = [key for key in drawn if key[0] == k]
        # One kind on a level: all nodes of the level are of it, and need not be named one by one.
        count = int((level == k).sum()) if len(alike) == 1 else _count(topology, level, k, name)
        rows.append(Row(name=name, y=heights[nodes[0]], count=count, drawn=len(nodes)))
    return rows


def _count(topology: Topology, level: Ints, k: int, name: str) -> int:
    nodes = np.flatnonzero(level == k).tolist()
    return sum(kind_of(topology, node) == name for node in nodes)


def kind_of(topology: Topology, node: int) -> str:
    """A node's name without its number: "leaf" for "leaf 3"."""
    return _NUMBER.sub("", topology.node_name(node)) or topology.node_name(node)
