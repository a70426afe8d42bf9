"""Stretches of time, as arrays of their starts and ends."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def covered(start: Floats, end: Floats) -> float:
    """The length of a union of intervals, in any order, in the unit of their ends."""
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    reached = np.maximum.accumulate(end)
    uncovered_from = np.maximum(start, np.concatenate(([-np.inf], reached[:-1])))
    return float(np.maximum(end - uncovered_from, 0.0).sum())
