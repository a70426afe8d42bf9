"""The detail: exactly the timeline's spans, and a reason for every gap."""

from __future__ import annotations

import pytest

from triosim.figures import CLASS_COLOURS, PHASE_COLOURS, Style, gantt_bars
from triosim.figures.gantt_bars import CUSTOM_DATA, MAX_BARS
from triosim.figures.palette import channels
from triosim.figures.text import time_text

COLUMN = {name: i for i, name in enumerate(CUSTOM_DATA)}


def whole(result, ranks, **more):
    return gantt_bars(result, ranks, (0.0, result.total_ms), **more)


def spans(figure):
    return {trace.meta: trace for trace in figure.data if trace.meta != "gap"}


def gaps(figure):
    return {trace.name: trace for trace in figure.data if trace.meta == "gap"}


@pytest.mark.parametrize(
    "name", ["alone", "each alone", "standard", "distributed", "tensor", "pipeline", "straggler"]
)
def test_one_bar_for_each_span(result_of, name):
    result = result_of(name)
    ranks = [c.rank for c in result.classes]
    timeline = result.timeline
    drawn = spans(whole(result, ranks))
    assert set(drawn) == set(timeline.phase)
    for phase, rows in timeline.groupby("phase"):
        trace = drawn[phase]
        assert len(trace.x) == len(rows)
        assert sum(trace.x) == pytest.approx(
            (rows.end_ms - rows.start_ms).sum(), abs=1e-6 * len(rows)
        )
        assert sorted(trace.base) == pytest.approx(sorted(rows.start_ms), abs=1e-6)
        assert trace.marker.color == PHASE_COLOURS[phase]
        assert trace.name == phase


@pytest.mark.parametrize("name", ["standard", "tensor", "pipeline", "straggler"])
def test_gaps_are_the_breakdowns_gaps(result_of, name):
    result = result_of(name)
    ranks = [c.rank for c in result.classes]
    drawn = gaps(whole(result, ranks))
    kinds = {gap.kind for b in result.breakdowns for gap in b.gaps}
    assert set(drawn) == {kind.replace("_", " ") for kind in kinds}
    for kind in kinds:
        trace = drawn[kind.replace("_", " ")]
        want = sum(b.classes_s[kind] for b in result.breakdowns) * 1e3
        assert sum(trace.x) == pytest.approx(want, abs=1e-6 * len(trace.x))
        red, green, blue = channels(CLASS_COLOURS[kind])
        assert trace.marker.color.startswith(f"rgba({red},{green},{blue},0.")


def test_compute_spans_and_gaps_fill_every_compute_lane(result_of):
    result = result_of("pipeline")
    figure = whole(result, range(4))
    filled = dict.fromkeys((f"GPU {rank} \u00b7 compute" for rank in range(4)), 0.0)
    for trace in figure.data:
        for lane, length in zip(trace.y, trace.x, strict=True):
            if lane in filled:
                filled[lane] += length
    assert list(filled.values()) == pytest.approx([result.total_ms] * 4, abs=1e-3)


def test_bars_end_at_the_window_and_keep_their_whole_duration_in_the_hover(
    make_trace, simulate_trace
):
    """One GPU: 100 us forward, then 200 us backward; the window is 50 to 250 us."""
    result = simulate_trace(make_trace([100], [200]), gpus=1, resident=True)
    drawn = spans(gantt_bars(result, [0], (0.05, 0.25)))
    assert (drawn["forward"].base, drawn["forward"].x) == ((0.05,), (0.05,))
    assert (drawn["backward"].base, drawn["backward"].x) == ((0.1,), (0.15,))
    assert drawn["backward"].customdata[0][COLUMN["duration"]] == "200 \u00b5s"


@pytest.mark.parametrize("window", [(0.1, 0.1), (5.0, 6.0), (-3.0, -1.0)])
def test_a_window_outside_the_step_shows_the_whole_step(make_trace, simulate_trace, window):
    result = simulate_trace(make_trace([100], [200]), gpus=1, resident=True)
    figure = gantt_bars(result, [0], window)
    assert figure.layout.xaxis.range == (0.0, pytest.approx(0.3))
    assert len(spans(figure)) == 2


def test_hovers_say_what_a_span_is(result_of):
    result = result_of("standard")
    (custom,) = spans(whole(result, [5]))["all-reduce"].customdata
    row = result.timeline[result.timeline.phase == "all-reduce"].iloc[0]
    assert custom[COLUMN["name"]] == "all-reduce of all gradients"
    assert custom[COLUMN["duration"]] == time_text(row.end_ms - row.start_ms)
    assert custom[COLUMN["bytes"]] == "<br>232 MB"
    assert custom[COLUMN["waited_for"]] == f"<br>waited for {row.waited_for}"
    assert custom[COLUMN["rank"]] == 5
    assert result.tasks.program.phase[custom[COLUMN["task"]]] == "all-reduce"


def test_gaps_say_what_they_wait_for(result_of):
    standard = gaps(whole(result_of("standard"), [0]))["exposed communication"]
    reasons = [custom[COLUMN["name"]] for custom in standard.customdata]
    assert "exposed communication: waits for all-reduce of all gradients" in reasons
    bubble = gaps(whole(result_of("pipeline"), [3]))["bubble"]
    assert bubble.customdata[0][COLUMN["name"]].startswith("bubble: waits for ")
    assert bubble.customdata[0][COLUMN["name"]].endswith(" on GPU 2")
    idle = gaps(whole(result_of("straggler"), [0]))["idle"]
    assert idle.customdata[0][COLUMN["name"]] == "idle: nothing left to do"


def test_operator_names_are_text_and_not_markup(make_trace, simulate_trace):
    from dataclasses import replace

    trace = make_trace([100], [200], optimizer_us=50)
    first = replace(trace.operators[0], name="<b>bold</b> & <a href='x'>link</a>")
    trace = replace(trace, operators=(first, *trace.operators[1:]))
    text = whole(simulate_trace(trace, gpus=1), [0]).to_plotly_json()
    names = [c[COLUMN["name"]] for t in text["data"] for c in t["customdata"]]
    assert "&lt;b&gt;bold&lt;/b&gt; &amp; &lt;a href='x'&gt;link&lt;/a&gt;" in names
    shown = [str(value) for t in text["data"] for c in t["customdata"] for value in c]
    shown += [word for t in text["data"] for word in t.get("text") or ()]
    assert not [value for value in shown if "<b>" in value or "<a" in value]


def test_too_many_intervals_become_a_raster_that_says_so(result_of):
    result = result_of("long pipeline")
    figure = whole(result, range(16))
    assert figure.data[0].type == "heatmap"
    assert f"more than {MAX_BARS:,} intervals" in figure.layout.xaxis.title.text
    narrow = gantt_bars(result, range(4), (30.0, 31.0))
    assert {trace.type for trace in narrow.data} == {"bar"}
    assert sum(len(trace.x) for trace in narrow.data) <= MAX_BARS


def test_names_stand_on_wide_bars_only(make_trace, simulate_trace):
    result = simulate_trace(make_trace([1000, 1], []), gpus=1, resident=True)
    trace = spans(whole(result, [0], style=Style(font_size=20)))["forward"]
    assert trace.text == ("layer0", "")
    assert trace.textposition == ("inside", "none")
