"""The overview: what each stream mostly does, at a fixed cost."""

from __future__ import annotations

import numpy as np
import pytest

from triosim.figures import PHASE_COLOURS, gantt_overview
from triosim.figures.gantt import PHASES
from triosim.figures.lanes import MAX_LANES


def heatmap(figure):
    (found,) = (trace for trace in figure.data if trace.type == "heatmap")
    return found


def test_cells_show_the_phase_with_the_most_time(result_of):
    """Against a plain sum over spans, lane by lane, on every fiftieth bin."""
    result = result_of("pipeline")
    trace = heatmap(gantt_overview(result, [0, 3]))
    spans = result.expand([0, 3])
    lanes = ("GPU " + spans["rank"].astype(str) + " \u00b7 " + spans.stream).tolist()
    cells = np.array(trace.z)
    for row, lane in enumerate(trace.y):
        own = spans[[label == lane for label in lanes]]
        assert len(own)
        for column in range(0, cells.shape[1], 50):
            low = column * trace.dx
            high = low + trace.dx
            overlap = np.minimum(own.end_ms, high) - np.maximum(own.start_ms, low)
            held = overlap.clip(lower=0).groupby(own.phase).sum()
            if held.max() <= 0:
                assert cells[row, column] == 0
                assert trace.hovertext[row][column] == "idle"
            else:
                shown = PHASES[cells[row, column] - 1]
                assert held[shown] == pytest.approx(held.max(), rel=1e-6)
                assert trace.hovertext[row][column] == shown


def test_the_colour_scale_gives_each_code_its_phases_colour(result_of):
    trace = heatmap(gantt_overview(result_of("distributed"), [0]))
    for code, phase in enumerate(PHASES, start=1):
        share = (code - trace.zmin) / (trace.zmax - trace.zmin)
        below = [colour for at, colour in trace.colorscale if at < share]
        above = [colour for at, colour in trace.colorscale if at > share]
        assert below[-1] == above[0] == PHASE_COLOURS[phase]


def test_the_legend_names_the_phases_that_are_drawn(result_of):
    def legend(name):
        figure = gantt_overview(result_of(name), [0, 1])
        return {t.name: t.marker.color for t in figure.data if t.type == "scatter"}

    shared = ("forward", "backward", "optimizer", "fetch")
    assert legend("distributed") == {p: PHASE_COLOURS[p] for p in (*shared, "all-reduce")}
    assert legend("pipeline") == {p: PHASE_COLOURS[p] for p in (*shared, "send", "recv")}


def test_a_window_is_framed_and_the_rest_dimmed(result_of):
    result = result_of("distributed")
    plain = gantt_overview(result, [0])
    marked = gantt_overview(result, [0], window_ms=(1.0, 2.5))
    shapes = [(s.x0, s.x1) for s in marked.layout.shapes if s.type == "rect"]
    assert not [s for s in plain.layout.shapes if s.type == "rect"]
    assert shapes == [(0.0, 1.0), (2.5, result.total_ms), (1.0, 2.5)]


def test_dragging_selects_a_range_of_time(result_of):
    layout = gantt_overview(result_of("distributed"), [0]).layout
    assert (layout.dragmode, layout.selectdirection) == ("select", "h")


def test_lanes_are_limited_and_the_figure_says_so(result_of):
    figure = gantt_overview(result_of("huge"), range(500))
    assert len(heatmap(figure).y) == MAX_LANES // 3 * 3
    assert "85 of 500 chosen GPUs drawn" in figure.layout.xaxis.title.text


def test_representatives_say_how_many_they_stand_for(result_of):
    huge = heatmap(gantt_overview(result_of("huge"), [0])).y
    assert huge[0] == "GPU 0 (\u00d716,384) \u00b7 compute"
    slow = heatmap(gantt_overview(result_of("straggler"), [0, 3])).y
    assert [slow[0], slow[3]] == ["GPU 0 (\u00d77) \u00b7 compute", "GPU 3 \u00b7 compute"]
    some = heatmap(gantt_overview(result_of("straggler"), [3, 0])).y
    assert [some[0], some[3]] == ["GPU 3 \u00b7 compute", "GPU 0 \u00b7 compute"]


def test_100_000_spans_weigh_as_much_as_a_few(many_spans):
    assert len(many_spans.tasks.program) == 100_000
    assert len(gantt_overview(many_spans, range(32)).to_json()) <= 1.5e6


def test_the_widest_overview_is_bounded(result_of):
    assert len(gantt_overview(result_of("huge"), range(300)).to_json()) <= 1.5e6
