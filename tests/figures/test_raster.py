"""Spans to bins: no time is lost and none is made."""

from __future__ import annotations

import numpy as np
import pytest

from triosim.figures.gantt import PHASES
from triosim.figures.raster import MAX_BINS, MAX_CELLS, bins_for, dominant, phase_times, rasterise


def test_two_lanes_by_hand():
    """Five bins of 2 s. Row 0: 1 to 6 and 6.5 to 7; row 1: 0 to 0.5, 9 to 12 and, outside, 13."""
    row = np.array([0, 0, 1, 1, 1])
    start = np.array([1.0, 6.5, 0.0, 9.0, 13.0])
    end = np.array([6.0, 7.0, 0.5, 12.0, 14.0])
    times = rasterise(row, start, end, 2, 5, (0.0, 10.0))
    assert times.tolist() == [[1.0, 2.0, 2.0, 0.5, 0.0], [0.5, 0.0, 0.0, 0.0, 1.0]]


def test_spans_that_meet_at_a_bins_edge_stay_on_their_sides():
    times = rasterise(
        np.array([0, 0]), np.array([0.0, 2.0]), np.array([2.0, 6.0]), 1, 4, (0.0, 8.0)
    )
    assert times.tolist() == [[2.0, 2.0, 2.0, 0.0]]


def test_a_window_without_length_holds_nothing():
    times = rasterise(np.array([0]), np.array([0.0]), np.array([1.0]), 1, 3, (0.5, 0.5))
    assert times.tolist() == [[0.0, 0.0, 0.0]]


@pytest.mark.parametrize("name", ["distributed", "tensor", "long pipeline", "straggler"])
@pytest.mark.parametrize("bins", [1, 7, 1200])
def test_bins_hold_the_time_of_the_spans(result_of, name, bins):
    result = result_of(name)
    timeline = result.tasks
    streams = range(len(timeline.program.streams))
    times = phase_times(timeline, streams, PHASES, bins, (0.0, timeline.total_s))
    for s in streams:
        for p, phase in enumerate(PHASES):
            want = sum(
                float(timeline.end_s[t] - timeline.start_s[t])
                for t in range(len(timeline.program))
                if timeline.program.stream[t] == s and timeline.program.phase[t] == phase
            )
            assert times[s, p].sum() == pytest.approx(want, rel=1e-9, abs=1e-15)
    assert times.sum(axis=1).max() <= timeline.total_s / bins * (1 + 1e-9)


def test_the_longest_phase_of_a_bin_wins_and_idle_bins_stay_empty():
    times = np.array([[[0.2, 0.0, 0.0], [0.3, 0.0, 1.0]]])
    assert dominant(times).tolist() == [[1, -1, 1]]


@pytest.mark.parametrize("lanes", [1, 24, 100, 101, 256])
def test_the_grid_is_bounded(lanes):
    assert bins_for(lanes) == min(MAX_BINS, MAX_CELLS // lanes)
    assert bins_for(lanes) * lanes <= MAX_CELLS
