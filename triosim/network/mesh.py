"""A rows x cols mesh of GPUs, and the way that a connection takes through it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Pair = tuple[int, int]
Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Mesh:
    """GPUs in rows and columns, numbered row by row, with fibre between neighbours.

    Each mesh link has that many `wavelengths` in each direction; None means any number.
    """

    rows: int
    cols: int
    wavelengths: int | None = None

    def route(self, source: int, target: int) -> list[Pair]:
        """Mesh links from one GPU to another: along the row, then along the column."""
        corner = source - source % self.cols + target % self.cols
        along = range(source, corner, 1 if corner > source else -1)
        down = range(corner, target, self.cols if target > corner else -self.cols)
        return list(pairwise([*along, *down, target]))

    def fullest_link(self, pairs: Sequence[Pair]) -> tuple[int, Pair]:
        """How many routes between the pairs, there and back, pass the fullest link; and that link.

        The routes are those of `route`, all counted at once.
        """
        there = np.array(pairs, dtype=np.int64)
        source, target = np.concatenate([there, there[:, ::-1]]).T
        (row, col), (last_row, last_col) = (np.divmod(end, self.cols) for end in (source, target))
        on_row, at, a, b = _fullest(row, col, last_col, (self.rows, self.cols))
        on_col, across, c, d = _fullest(last_col, row, last_row, (self.cols, self.rows))
        if on_row >= on_col:
            return on_row, (at * self.cols + a, at * self.cols + b)
        return on_col, (c * self.cols + across, d * self.cols + across)


def _fullest(
    line: Ints, start: Ints, stop: Ints, shape: tuple[int, int]
) -> tuple[int, int, int, int]:
    """Of straight ways on parallel lines: how many pass the fullest step, its line, from and to."""
    found = []
    for step in (1, -1):
        going = (stop - start) * step > 0
        low, high = np.minimum(start, stop)[going], np.maximum(start, stop)[going]
        begins = np.zeros(shape, dtype=np.int64)
        np.add.at(begins, (line[going], low), 1)
        np.add.at(begins, (line[going], high), -1)
        passing = begins.cumsum(axis=1)
        at, before = divmod(int(passing.argmax()), shape[1])
        ends = (before, before + 1) if step > 0 else (before + 1, before)
        found.append((int(passing[at, before]), at, *ends))
    return max(found, key=lambda item: item[0])
