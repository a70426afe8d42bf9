"""Where GPUs stand in a drawing of the network, and which pairs are joined.

Rings stand on a circle or a race track, chains in rows, optical layouts on their mesh. Of more than
`MAX_DRAWN` GPUs a part is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from triosim.network.optical import ring_order
from triosim.scenario import Scenario

MAX_DRAWN = 64
ROW = 16
# From here on a ring is drawn as a race track, two half circles of radius 1 and two straights.
TRACK_FROM = 17
STRAIGHT = 4.2
# How far the two directions of a connection bow apart, in distances between neighbours.
APART = 0.22
APART_IN_ROWS = 0.15
# How far a circuit that passes other GPUs bows out around them.
AROUND = 0.5

Point = tuple[float, float]
Pair = tuple[int, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Places:
    """`at[rank]` is a position; `pairs` maps directed neighbours to how far their link bows left.

    `circle` says that x and y need the same scale. `mesh` are the mesh's own lines.
    """

    at: Mapping[int, Point]
    pairs: Mapping[Pair, float]
    circle: bool = False
    mesh: list[tuple[Point, Point]] = field(default_factory=list)

    @property
    def two_way(self) -> bool:
        return any((b, a) in self.pairs for a, b in self.pairs)


def place(scenario: Scenario) -> Places:
    """The layout of a scenario's GPU-to-GPU network; case 0 has GPUs and no links between them."""
    if scenario.case == 0 or scenario.gpus == 1:
        return _circle(scenario.gpus, linked=False)
    if scenario.interconnect == "optical":
        return _mesh(*scenario.mesh, pipeline=scenario.case == 4)
    return _chain(scenario.gpus) if scenario.case == 4 else _circle(scenario.gpus, linked=True)


def _circle(gpus: int, *, linked: bool) -> Places:
    """Clockwise from the top; where some are left out, the ring stays open at the end."""
    drawn = min(gpus, MAX_DRAWN)
    steps = drawn if drawn == gpus else drawn + 3
    straight = STRAIGHT if drawn >= TRACK_FROM else 0.0
    at = {rank: _on_track(rank / steps, straight) for rank in range(drawn)}
    pairs = _ring(at, gpus) if linked else []
    # On a circle of two both links would lie on one line.
    bend = APART if gpus == 2 else 0.0
    return Places(at=at, pairs=dict.fromkeys(pairs, bend), circle=True)


def _on_track(share: float, straight: float) -> Point:
    """The point after that share of a lap, clockwise from the middle of the upper straight."""
    half = straight / 2
    way = share * (2 * straight + 2 * math.pi)
    if way < half:
        return way, 1.0
    way -= half
    if way < math.pi:
        return half + math.sin(way), math.cos(way)
    way -= math.pi
    if way < straight:
        return half - way, -1.0
    way -= straight
    if way < math.pi:
        return -half - math.sin(way), -math.cos(way)
    return way - math.pi - half, 1.0


def _chain(gpus: int) -> Places:
    """Rows of `ROW`, every other one from right to left so that neighbours stay neighbours."""
    at = {}
    for rank in range(min(gpus, MAX_DRAWN)):
        row, col = divmod(rank, ROW)
        at[rank] = (float(col if row % 2 == 0 else ROW - 1 - col), -float(row))
    return Places(at=at, pairs=_both_ways(at))


def _mesh(rows: int, cols: int, *, pipeline: bool) -> Places:
    """Rank r stands at the r-th place of the ring that is laid along the mesh."""
    height = min(rows, max(8, MAX_DRAWN // cols))
    width = min(cols, MAX_DRAWN // height)
    at = {}
    for rank, gpu in enumerate(ring_order(rows, cols)):
        row, col = divmod(gpu, cols)
        if row < height and col < width:
            at[rank] = (float(col), -float(row))
    pairs = _both_ways(at)
    if not pipeline:
        bend = APART if rows * cols == 2 else 0.0
        pairs = {(a, b): _around(at[a], at[b]) or bend for a, b in _ring(at, rows * cols)}
    points = list(at.values())
    lines = [
        (p, q)
        for p in points
        for q in ((p[0] + 1, p[1]), (p[0], p[1] - 1))
        if q[0] < width and q[1] > -height
    ]
    return Places(at=at, pairs=pairs, mesh=lines)


def _ring(at: Mapping[int, Point], gpus: int) -> list[Pair]:
    """Every rank and the next one, where both are drawn."""
    every = [(rank, (rank + 1) % gpus) for rank in sorted(at)]
    return [pair for pair in every if pair[1] in at]


def _both_ways(at: Mapping[int, Point]) -> dict[Pair, float]:
    onward = [(rank, rank + 1) for rank in sorted(at) if rank + 1 in at]
    bend = APART if len({y for _, y in at.values()}) == 1 else APART_IN_ROWS
    return {pair: bend for a, b in onward for pair in ((a, b), (b, a))}


def _around(start: Point, end: Point) -> float:
    """How far the closing circuit of a mesh without a Hamiltonian cycle has to bow."""
    return AROUND if math.dist(start, end) > 1.5 else 0.0


def curve(start: Point, end: Point, bend: float) -> list[Point]:
    """A parabola from start to end that bows `bend` to the left at its middle."""
    count = 17 if bend else 3
    length = math.dist(start, end)
    dx, dy = end[0] - start[0], end[1] - start[1]
    points = []
    for i in range(count):
        t = i / (count - 1)
        out = bend * 4 * t * (1 - t) / length
        points.append((start[0] + dx * t - dy * out, start[1] + dy * t + dx * out))
    return points
