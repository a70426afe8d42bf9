"""A raster explains on a click what fills most of each stretch."""

import numpy as np
import pytest

from triosim.explain import explain
from triosim.figures import gantt_bars
from triosim.figures.gantt_bars import CUSTOM_DATA
from triosim.figures.lanes import choose_lanes
from triosim.figures.targets import TARGETS, longest

COLUMN = {name: i for i, name in enumerate(CUSTOM_DATA)}


@pytest.mark.parametrize(
    ("row", "start", "end", "found"),
    [
        # From 0 to 10 in five parts: the third has more of the first one.
        ([0, 0], [0.0, 5.5], [5.5, 9.0], {(0, 0): 0, (0, 1): 0, (0, 2): 0, (0, 3): 1, (0, 4): 1}),
        ([0, 0, 0], [2.0, 2.1, 2.3], [2.1, 2.3, 3.9], {(0, 1): 2}),
        ([1, 0], [-3.0, 9.0], [3.0, 30.0], {(0, 4): 1, (1, 0): 0, (1, 1): 0}),
        ([0], [4.0], [4.0], {}),
    ],
)
def test_each_part_has_the_interval_with_most_time(row, start, end, found):
    lane, part, chosen = longest(np.array(row), np.array(start), np.array(end), 2, 5, (0.0, 10.0))
    columns = (lane.tolist(), part.tolist(), chosen.tolist())
    assert {(i, j): k for i, j, k in zip(*columns, strict=True)} == found


def test_random_intervals_against_one_after_the_other():
    rng = np.random.default_rng(7)
    row = rng.integers(0, 3, 200)
    start = rng.uniform(-1, 9, 200)
    end = start + rng.exponential(1.0, 200)
    lane, part, chosen = longest(row, start, end, 3, 16, (0.0, 8.0))
    seen = set(zip(lane.tolist(), part.tolist(), strict=True))
    for i, j in np.ndindex(3, 16):
        shared = np.minimum(end, (j + 1) / 2) - np.maximum(start, j / 2)
        shared[row != i] = -1
        assert ((i, j) in seen) == (shared.max() > 0)
    for i, j, k in zip(lane, part, chosen, strict=True):
        shared = np.minimum(end, (j + 1) / 2) - np.maximum(start, j / 2)
        assert shared[k] == pytest.approx(shared[row == i].max())


def test_a_raster_can_be_clicked_where_something_is(result_of):
    result = result_of("long pipeline")
    ranks = range(16)
    figure = gantt_bars(result, ranks, (0.0, result.total_ms))
    points = figure.data[-1]
    lanes = {lane.label: lane for lane in choose_lanes(result, ranks).lanes}
    assert set(lanes) == set(points.y)
    assert len(points.x) <= TARGETS
    found = explain(result)
    for x_ms, label, custom in zip(points.x, points.y, points.customdata, strict=True):
        assert custom[COLUMN["rank"]] == lanes[label].rank
        gap, task = custom[COLUMN["gap"]], custom[COLUMN["task"]]
        if gap >= 0:
            wait = found.gaps(lanes[label].rank)[gap]
            assert wait.start_s <= x_ms / 1e3 <= wait.end_s
        else:
            assert result.tasks.program.stream[task] == lanes[label].stream
            assert result.tasks.start_s[task] <= x_ms / 1e3 <= result.tasks.end_s[task]
