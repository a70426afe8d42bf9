"""Spans to a grid of lanes and time bins: the exact time of every phase in every cell.

The cost hardly depends on how many spans there are, nor on how long they last.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from triosim.engine.timeline import Timeline

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

MAX_BINS = 1200
MAX_CELLS = 120_000


def bins_for(lanes: int) -> int:
    """As fine as the payload allows: every cell carries a word for its hover."""
    return max(1, min(MAX_BINS, MAX_CELLS // max(1, lanes)))


def rasterise(
    row: Integers, start: Floats, end: Floats, rows: int, bins: int, window: tuple[float, float]
) -> Floats:
    """Time that spans spend in each of `bins` equal parts of the window; an array rows x bins.

    Each span adds its share to its first and its last bin; the bins between are covered whole and
    come from a running sum of where spans begin and stop covering.
    """
    width = (window[1] - window[0]) / bins
    if width <= 0:
        return np.zeros((rows, bins))
    low = np.clip((start - window[0]) / width, 0, bins)
    high = np.clip((end - window[0]) / width, 0, bins)
    seen = high > low
    row, low, high = row[seen], low[seen], high[seen]
    first = low.astype(np.int64)
    last = np.ceil(high).astype(np.int64) - 1
    single = first == last
    at_first = np.where(single, high - low, first + 1 - low)
    at_last = np.where(single, 0.0, high - last)
    base = row * (bins + 1)
    size = rows * (bins + 1)
    edges = np.bincount(base + first, at_first, size) + np.bincount(base + last, at_last, size)
    begins = np.bincount(base + first + 1, ~single, size)
    stops = np.bincount(base + last, ~single, size)
    whole = np.cumsum((begins - stops).reshape(rows, bins + 1), axis=1)
    return np.asarray((edges.reshape(rows, bins + 1) + whole)[:, :bins] * width)


def phase_times(
    timeline: Timeline,
    streams: Sequence[int],
    phases: Sequence[str],
    bins: int,
    window_s: tuple[float, float],
) -> Floats:
    """Seconds of each phase in each cell; an array streams x phases x bins."""
    program = timeline.program
    code = {phase: i for i, phase in enumerate(phases)}
    phase = np.fromiter(map(code.__getitem__, program.phase), np.int64, len(program))
    position = np.full(len(program.streams), -1, dtype=np.int64)
    position[list(streams)] = np.arange(len(streams))
    lane = position[np.array(program.stream, dtype=np.int64)]
    chosen = lane >= 0
    times = rasterise(
        (lane * len(phases) + phase)[chosen],
        timeline.start_s[chosen],
        timeline.end_s[chosen],
        len(streams) * len(phases),
        bins,
        window_s,
    )
    return times.reshape(len(streams), len(phases), bins)


def dominant(times: Floats) -> Integers:
    """Per lane and bin the phase with the most time, -1 where none has any."""
    best = times.argmax(axis=1)
    return np.where(times.max(axis=1) > 0, best, -1)
