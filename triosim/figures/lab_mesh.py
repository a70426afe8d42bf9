"""A device mesh with the part of a tensor that each rank holds: one small drawing for each rank."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

from triosim.figures.figure import Figure, Trace, scatter_trace
from triosim.figures.style import DEFAULT_STYLE, MAX_HEIGHT, Style, finish, legend_entry
from triosim.figures.train_colours import GROUP_COLOURS
from triosim.mesh import DeviceMesh, Partial, Placement, blocks
from triosim.mesh.shards import Block

MAX_DRAWN = 256
WRAP = 8  # ranks of a mesh of one dimension side by side
WRITTEN = 4  # ranks side by side up to which their ranges fit below them, also on a phone
CELL_PX = 112
LEAST_ACROSS = 3
THIN = 0.3  # a side of the drawing is at least this share of a cell, however long the other is
SIDE = 0.8
BAR, BAR_GAP = 0.05, 0.04  # of a cell: the strip that stands for a tensor's third dim
ROOM = {True: 1.45, False: 1.2}  # height of a cell whose ranges are written below it, or not
PANEL = 0.35

Point = tuple[float, float]
Box = tuple[float, float, float, float]
"""Left, top, right and bottom."""


def ranges_text(block: Block) -> str:
    """What a rank holds, dim by dim: "0:2 + 4:6, 0:7"; "nothing" where a dim is empty."""
    if not all(block):
        return "nothing"
    return ", ".join(" + ".join(f"{low}:{high}" for low, high in dim) for dim in block)


def mesh_shards(
    mesh: DeviceMesh,
    shape: Sequence[int],
    placements: Sequence[Placement],
    *,
    style: Style = DEFAULT_STYLE,
) -> Figure:
    """Ranks as they stand in the mesh, each with the whole tensor and what it holds of it coloured.

    Dim 0 goes down, dim 1 to the right, dim 2 is a strip below; ranks that hold the same have the
    same colour, parts of a pending sum are hatched. Beyond `MAX_DRAWN` ranks only the first.
    """
    held = dict(list(blocks(shape, mesh, placements).items())[:MAX_DRAWN])
    places, columns, rows = _places(mesh, len(held))
    sides = _sides(shape)
    contents = list(dict.fromkeys(block for block in held.values() if all(block)))
    summed = any(isinstance(p, Partial) for p in placements)
    figure = Figure()
    figure.add_trace(_boxes([_whole(at, sides) for at in places], style))
    for number, colour in enumerate(GROUP_COLOURS):
        own = [
            box
            for at, block in zip(places, held.values(), strict=True)
            if all(block) and contents.index(block) % len(GROUP_COLOURS) == number
            for box in _held(at, block, shape, sides)
        ]
        if own:
            figure.add_trace(_filled(own, colour, style, hatched=summed))
    figure.add_trace(_hover(mesh, held, places))
    written = columns <= WRITTEN
    strip = BAR_GAP + BAR if len(shape) > 2 else 0.0
    figure.add_trace(_labels(held, places, style, sides[1] + strip if written else None))
    if summed:
        entry = legend_entry("an addend: the sum is still to come", style.muted)
        entry["marker"]["symbol"] = "hash-open"
        figure.add_trace(entry)
    room = ROOM[written]
    height = min(MAX_HEIGHT, rows * room * CELL_PX) + 16 + 26 * summed
    finish(figure, style, height=round(height), revision="mesh-shards")
    still = {"visible": False, "fixedrange": True}
    across = max(columns, LEAST_ACROSS)
    figure.update_layout(
        showlegend=summed,
        width=across * CELL_PX + 28,  # at most: a narrow page makes the drawings narrower
        xaxis={**still, "range": [-0.1, across]},
        yaxis={**still, "range": [rows * room - 0.25, -0.22]},
        dragmode=False,
    )
    return figure


def _places(mesh: DeviceMesh, count: int) -> tuple[list[Point], int, float]:
    """The upper left corner of each rank's cell, in cells; how many columns and rows there are."""
    if mesh.ndim == 1:
        columns = min(mesh.size, WRAP)
        flat = [divmod(i, columns) for i in range(count)]
        where = [(float(row), col) for row, col in flat]
    else:
        *outer, across, columns = mesh.shape
        where = []
        for panel, row, col in product(range(math.prod(outer)), range(across), range(columns)):
            where.append((panel * (across + PANEL) + row, col))
        where = where[:count]
    room = ROOM[columns <= WRITTEN]
    rows = max((row for row, _ in where), default=0.0) + 1
    return [(float(col), row * room) for row, col in where], columns, rows


def _sides(shape: Sequence[int]) -> Point:
    """Width and height of the drawing of a tensor, in cells."""
    down, right = (*shape[:2], 1, 1)[:2]
    longest = max(down, right, 1)
    return SIDE * max(THIN, right / longest), SIDE * max(THIN, down / longest)


def _whole(at: Point, sides: Point) -> Box:
    left, top = at[0], at[1]
    return left, top, left + sides[0], top + sides[1]


def _held(at: Point, block: Block, shape: Sequence[int], sides: Point) -> list[Box]:
    """A rank's ranges as boxes, the strip of dim 2 among them."""
    down = block[0] if block else ((0, 1),)
    right = block[1] if len(block) > 1 else ((0, 1),)
    high, wide = (*shape[:2], 1, 1)[:2]
    left, top = at
    boxes = [
        (
            left + sides[0] * a / wide, top + sides[1] * c / high,
            left + sides[0] * b / wide, top + sides[1] * d / high,
        )
        for (a, b), (c, d) in product(right, down)
    ]  # fmt: skip
    if len(shape) > 2:
        low = top + sides[1] + BAR_GAP
        boxes += [
            (left + sides[0] * a / shape[2], low, left + sides[0] * b / shape[2], low + BAR)
            for a, b in block[2]
        ]
    return boxes


def _outline(boxes: Sequence[Box]) -> tuple[list[float | None], list[float | None]]:
    """The boxes as one path with gaps."""
    x: list[float | None] = []
    y: list[float | None] = []
    for left, top, right, bottom in boxes:
        x += [left, right, right, left, left, None]
        y += [top, top, bottom, bottom, top, None]
    return x, y


def _boxes(boxes: Sequence[Box], style: Style) -> Trace:
    x, y = _outline(boxes)
    return scatter_trace(
        x=x, y=y, mode="lines", fill="toself", fillcolor=style.grid, hoverinfo="skip",
        line={"color": style.muted, "width": 1}, showlegend=False,
    )  # fmt: skip


def _filled(boxes: Sequence[Box], colour: str, style: Style, *, hatched: bool) -> Trace:
    x, y = _outline(boxes)
    pattern = {"shape": "/", "fgcolor": colour, "bgcolor": style.surface, "size": 7}
    return scatter_trace(
        x=x, y=y, mode="lines", fill="toself", fillcolor=colour, hoverinfo="skip",
        fillpattern={**pattern, "solidity": 0.55} if hatched else None,
        line={"color": style.text, "width": 1}, showlegend=False,
    )  # fmt: skip


def _hover(mesh: DeviceMesh, held: dict[int, Block], places: Sequence[Point]) -> Trace:
    coordinates = mesh.coordinates(list(held)).tolist()
    return scatter_trace(
        x=[x + SIDE / 2 for x, _ in places],
        y=[y + SIDE / 2 for _, y in places],
        mode="markers",
        marker={"size": 30, "opacity": 0},
        showlegend=False,
        customdata=[
            (rank, f"({', '.join(map(str, at))})", ranges_text(block))
            for (rank, block), at in zip(held.items(), coordinates, strict=True)
        ],
        hovertemplate="<b>rank %{customdata[0]}</b> at %{customdata[1]}<br>holds %{customdata[2]}"
        "<extra></extra>",
    )


def _labels(
    held: dict[int, Block], places: Sequence[Point], style: Style, below: float | None
) -> Trace:
    """The number of a rank above its drawing, its ranges `below` where there is room."""
    texts = [(x, y, f"<b>{rank}</b>") for rank, (x, y) in zip(held, places, strict=True)]
    where = ["top right"] * len(texts)
    if below is not None:
        ranges = zip(held.values(), places, strict=True)
        texts += [(x, y + below + 0.04, ranges_text(block)) for block, (x, y) in ranges]
        where += ["bottom right"] * len(held)
    x, y, text = zip(*texts, strict=True) if texts else ((), (), ())
    return scatter_trace(
        x=x, y=y, text=text, textposition=where, mode="text", hoverinfo="skip", showlegend=False,
        textfont={"size": style.font_size, "color": style.text}, cliponaxis=False,
    )  # fmt: skip
