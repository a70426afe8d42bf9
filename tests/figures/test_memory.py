"""The memory curve as stacked areas."""

from __future__ import annotations

import numpy as np
import pytest

from triosim.figures import CATEGORY_COLOURS, memory_figure
from triosim.figures.memory import GIB, keep


def layers(figure):
    return [trace for trace in figure.data if trace.meta in CATEGORY_COLOURS]


def level_at(times, levels, when):
    """A step curve's level just after `when`."""
    return levels[int(np.searchsorted(times, when, side="right")) - 1]


@pytest.mark.parametrize("name", ["alone", "distributed", "tensor", "pipeline", "straggler"])
def test_the_stack_is_the_memory_in_use(result_of, name):
    result = result_of(name)
    for c, rank_class in enumerate(result.classes):
        curve = result.memory[c]
        drawn = layers(memory_figure(result, rank_class.rank))
        times = np.array(drawn[-1].x)
        between = (times[1:] + times[:-1])[np.diff(times) > 0] / 2
        for when in between:
            want = level_at(curve.time_s * 1e3, curve.total_bytes, when)
            assert level_at(times, drawn[-1].y, when) * GIB == pytest.approx(want, rel=1e-6)
            parts = sum(level_at(times, trace.customdata, when) for trace in drawn)
            assert parts * GIB == pytest.approx(want, rel=1e-6)


def test_areas_have_their_categories_colours(result_of):
    for trace in layers(memory_figure(result_of("distributed"), 0)):
        assert trace.line.color == CATEGORY_COLOURS[trace.meta]
        assert trace.line.shape == "hv"


def test_the_peak_is_marked_and_reached(result_of):
    result = result_of("distributed")
    figure = memory_figure(result, 0)
    (peak,) = (trace for trace in figure.data if trace.meta == "peak")
    assert peak.y[0] * GIB == pytest.approx(result.peak_memory_bytes)
    assert max(layers(figure)[-1].y) * GIB == pytest.approx(result.peak_memory_bytes, rel=1e-6)


def test_a_far_capacity_is_a_sentence_and_a_near_one_a_line(result_of):
    far = memory_figure(result_of("distributed"), 0)
    assert not far.layout.shapes
    assert far.layout.annotations[0].text == "capacity 1 TiB, peak 1.90 GiB (0.2 %)"
    near = memory_figure(result_of("small memory"), 0)
    assert near.layout.shapes[0].y0 == 2.0
    assert near.layout.yaxis.range[1] > 2.0


def test_small_memories_are_drawn_in_mib(make_trace, simulate_trace):
    result = simulate_trace(make_trace([100], [200], parameter_bytes=2**20), gpus=1)
    figure = memory_figure(result, 0)
    assert figure.layout.yaxis.title.text == "memory of GPU 0 (MiB)"
    assert max(layers(figure)[-1].y) == pytest.approx(result.peak_memory_bytes / 2**20)


def test_thinning_keeps_every_runs_highest_level():
    """10,000 levels to 100: no run of 200 levels loses its highest or its last."""
    levels = np.random.default_rng(3).integers(0, 10**9, 10_000)
    kept = keep(np.arange(10_000.0), levels, 100)
    assert len(kept) <= 100
    for low in range(0, 10_000, 200):
        own = kept[(kept >= low) & (kept < low + 200)]
        assert levels[own].max() == levels[low : low + 200].max()
        assert own[-1] == low + 199


def test_levels_of_no_duration_are_drawn_only_where_they_are_highest():
    """At 1 s: 10 to 2 to 8, a dip; at 2 s: 8 to 12 to 9, a peak."""
    time_s = np.array([0.0, 1.0, 1.0, 2.0, 2.0])
    total = np.array([10, 2, 8, 12, 9])
    assert keep(time_s, total).tolist() == [0, 2, 3, 4]


def test_the_payload_is_bounded(result_of):
    result = result_of("long pipeline")
    assert all(len(memory_figure(result, rank).to_json()) <= 600e3 for rank in range(16))
