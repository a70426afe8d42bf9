"""Cells of a pipeline stage's row that are written like one before them.

In a pipeline parameters stay gathered for the step, so that a cell's passes wait for nothing but
what other stages hand on, which is written later. All but a chunk's first forward and last backward
are one piece of a program each, and stretches of the row are pieces put one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from triosim.engine.pieces import Piece
from triosim.engine.tiling import Extent
from triosim.schedules.columns import Flags, Integers, Row
from triosim.train.sharding import Written

if TYPE_CHECKING:
    from triosim.train.step import Made


class Point(NamedTuple):
    """How much of a stage had been written."""

    program: Extent
    sharding: Written
    busy_s: tuple[float, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Copy:
    """A cell as written: a piece whose last tasks, one for each class, are made from `made`."""

    piece: Piece
    made: Made


class Copies:
    """What has been found of a stage's row: the copy of each sort of tasks, once it is known.

    A sort is known when two of its cells in turn were written alike: whatever the first one made
    anew, such as gradients, the second one did not. A chunk's first forward and last backward stay
    apart.
    """

    def __init__(self, row: Row) -> None:
        self.row = row
        self._found: list[Copy | None] = [None] * len(row.kinds)
        self._alone = np.zeros(len(row.sort), dtype=bool)
        self._alone[[*row.first.values(), *row.last.values()]] = True
        self._known = np.zeros(len(row.kinds), dtype=bool)

    def ready(self, place: int) -> int:
        """How many cells from a place on can be copied."""
        waits: Flags = self._alone[place:] | ~self._known[self.row.sort[place:]]
        return int(waits.argmax()) if waits.any() else len(waits)

    def learn(self, place: int, written: Copy | None) -> None:
        """A cell has been written; None where it cannot be copied."""
        if not self._alone[place]:
            sort = self.row.sort[place]
            self._known[sort] = written is not None and written == self._found[sort]
            self._found[sort] = written

    def stretch(self, place: int, count: int) -> tuple[list[Copy], Integers]:
        """So many cells from a place on that can be copied: copies, and which of them each is."""
        own = self.row.sort[place : place + count]
        sorts = np.flatnonzero(np.bincount(own))
        found = (self._found[sort] for sort in sorts.tolist())
        return [copy for copy in found if copy is not None], np.searchsorted(sorts, own)
