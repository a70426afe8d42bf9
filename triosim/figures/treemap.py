"""Where a trace's time goes, by kind of work, by module or by name: areas are time.

Colours are the phases, as in every other figure. A click opens a tile.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from triosim.figures.figure import Figure, Trace, treemap_trace
from triosim.figures.palette import PHASE_COLOURS, text_on
from triosim.figures.style import (
    CLEAR,
    DEFAULT_STYLE,
    Style,
    finish,
    legend_entry,
    say_nothing_to_show,
)
from triosim.figures.text import operator_text, safe, share_text, time_text

MAX_TILES = 600  # more are too small to see; the smallest of a place become one
GROUPINGS = ("kind", "module", "name")
NO_MODULE = "(no module)"
Path = tuple[str, ...]


@dataclass
class Place:
    """A tile that holds others; `phases` is the time of what ends here."""

    label: str
    inside: dict[str, Place] = field(default_factory=dict)
    phases: dict[str, float] = field(default_factory=dict)

    def total_ms(self) -> float:
        return sum(self.phases.values()) + sum(p.total_ms() for p in self.inside.values())


def time_treemap(
    operators: pd.DataFrame, by: str, *, style: Style = DEFAULT_STYLE, height: int | None = None
) -> Figure:
    """Tiles as large as the time of what they hold.

    `operators` has one row each with name, phase, module, kind and time_ms. `by`: "kind" (then
    name), "module" (as nested as the modules are, a model's
    blocks as one) or "name".
    """
    root = Place("step")
    for path, phase, time_ms in _places(operators, _PATHS[by]):
        place = root
        for label in path:
            place = place.inside.setdefault(label, Place(label))
        place.phases[phase] = place.phases.get(phase, 0.0) + time_ms
    figure = Figure()
    total_ms = root.total_ms()
    if total_ms > 0:
        figure.add_trace(
            _treemap(_tiles(_tidied(root) if by == "module" else root), total_ms, style)
        )
        for phase in PHASE_COLOURS:
            if phase in set(operators["phase"]):
                figure.add_trace(legend_entry(phase, PHASE_COLOURS[phase]))
    # The legend's entries need axes, which are nowhere to be seen.
    figure.update_xaxes(visible=False, fixedrange=True)
    figure.update_yaxes(visible=False, fixedrange=True)
    figure.update_layout(uniformtext={"minsize": style.small, "mode": "hide"})
    finish(figure, style, height=height or round(34 * style.font_size), revision=f"treemap-{by}")
    if total_ms == 0:
        say_nothing_to_show(figure, style, "This step takes no time.")
    return figure


def _by_kind(kind: str, name: str, module: str) -> Path:
    return kind, operator_text(name)


def _by_name(kind: str, name: str, module: str) -> Path:
    return (operator_text(name),)


def _by_module(kind: str, name: str, module: str) -> Path:
    return tuple(module.split(".")) if module else (NO_MODULE, operator_text(name))


_PATHS: Mapping[str, Callable[[str, str, str], Path]] = {
    "kind": _by_kind,
    "module": _by_module,
    "name": _by_name,
}


def _places(
    operators: pd.DataFrame, path_of: Callable[[str, str, str], Path]
) -> list[tuple[Path, str, float]]:
    """Time by place and phase; in each place the smallest are one where there are too many."""
    sums: dict[tuple[Path, str], float] = defaultdict(float)
    columns = ("kind", "name", "module", "phase", "time_ms")
    for kind, name, module, phase, time_ms in zip(*(operators[c] for c in columns), strict=True):
        sums[path_of(kind, name, module), phase] += time_ms
    ordered = sorted(sums.items(), key=lambda item: -item[1])
    kept = [(path, phase, time_ms) for (path, phase), time_ms in ordered[:MAX_TILES]]
    rest: dict[tuple[Path, str], float] = defaultdict(float)
    for (path, phase), time_ms in ordered[MAX_TILES:]:
        rest[(path[0], "others") if len(path) > 1 else ("others",), phase] += time_ms
    return kept + [(path, phase, time_ms) for (path, phase), time_ms in rest.items()]


def _tidied(root: Place) -> Place:
    """Modules with fewer tiles around what takes time."""
    return _shortened(_alike(root))


def _alike(place: Place) -> Place:
    """Numbered places that hold others, the blocks of a model, become one."""
    inside: dict[str, Place] = {}
    blocks = [label for label, one in place.inside.items() if label.isdigit() and one.inside]
    numbers = sorted(map(int, blocks))
    joined = f"{numbers[0]}..{numbers[-1]}" if len(blocks) > 1 else ""
    for label, one in place.inside.items():
        name = joined if joined and label in blocks else label
        _add(inside.setdefault(name, Place(name)), one)
    merged = {label: _alike(one) for label, one in inside.items()}
    return Place(place.label, merged, place.phases)


def _add(place: Place, other: Place) -> None:
    """Put everything of a place into another."""
    for phase, time_ms in other.phases.items():
        place.phases[phase] = place.phases.get(phase, 0.0) + time_ms
    for label, one in other.inside.items():
        _add(place.inside.setdefault(label, Place(label)), one)


def _shortened(place: Place) -> Place:
    """A place that holds one place and nothing else is that place, with both names."""
    inside = [_shortened(one) for one in place.inside.values()]
    if len(inside) == 1 and not place.phases and place.label not in ("step", NO_MODULE):
        only = inside[0]
        joined = f"{place.label}.{only.label}"
        return Place(joined, only.inside, only.phases)
    return Place(place.label, {one.label: one for one in inside}, place.phases)


@dataclass(frozen=True, kw_only=True, slots=True)
class Tile:
    """One rectangle; `phase` is "" for one that holds others."""

    label: str
    parent: int | None
    time_ms: float
    phase: str
    path: str


def _tiles(root: Place) -> Sequence[Tile]:
    """Every tile after the one that holds it; what ends in a place is one tile for each phase."""
    tiles: list[Tile] = []

    def add(place: Place, parent: int | None, path: str) -> None:
        holder = parent
        if place.inside:
            holder = len(tiles)
            whole_ms = place.total_ms()
            tiles.append(
                Tile(label=place.label, parent=parent, time_ms=whole_ms, phase="", path=path)
            )
        for phase, time_ms in place.phases.items():
            tiles.append(
                Tile(label=place.label, parent=holder, time_ms=time_ms, phase=phase, path=path)
            )
        for one in place.inside.values():
            add(one, holder, f"{path}.{one.label}" if path else one.label)

    add(root, None, "")
    return tiles


def _colours(tiles: Sequence[Tile], style: Style) -> Iterator[tuple[str, str]]:
    """Fill and text of each tile."""
    for tile in tiles:
        if tile.phase:
            yield PHASE_COLOURS[tile.phase], text_on(PHASE_COLOURS[tile.phase])
        else:
            yield (CLEAR if tile.parent is None else style.grid), style.text


def _treemap(tiles: Sequence[Tile], total_ms: float, style: Style) -> Trace:
    fills, texts = zip(*_colours(tiles, style), strict=True)
    return treemap_trace(
        ids=[str(i) for i in range(len(tiles))],
        parents=["" if tile.parent is None else str(tile.parent) for tile in tiles],
        labels=[safe(tile.label) for tile in tiles],
        values=[tile.time_ms for tile in tiles],
        branchvalues="total",
        text=[share_text(tile.time_ms, total_ms) for tile in tiles],
        texttemplate="%{label}<br>%{text}",
        customdata=[
            (safe(tile.path or "the whole step"), tile.phase, time_text(tile.time_ms))
            for tile in tiles
        ],
        hovertemplate="<b>%{customdata[0]}</b><br>%{customdata[1]} %{customdata[2]}, "
        "%{text} of the step<extra></extra>",
        marker={
            "colors": fills,
            "line": {"width": 1, "color": style.surface},
            "pad": {"t": round(1.7 * style.font_size), "l": 2, "r": 2, "b": 2},
            "cornerradius": 3,
        },
        tiling={"packing": "squarify", "pad": 1},
        textfont={"size": style.font_size, "color": texts},
        pathbar={"thickness": round(1.7 * style.font_size), "textfont": {"color": style.text}},
        root={"color": CLEAR},
        sort=True,
    )
