"""Figures of a comparison against the timelines, sums and curves that they draw."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import triosim as ts
from triosim.compare import MOST, Delta, compare
from triosim.figures import Style
from triosim.figures.compare_colours import LETTERS, letter_colour, letter_dash
from triosim.figures.compare_gantt import MAX_KINDS, MAX_LANES, compare_gantts
from triosim.figures.compare_memory import compare_memory
from triosim.figures.compare_waterfall import (
    MAX_ROWS,
    compare_waterfall,
    part_colour,
    signed_time,
)
from triosim.figures.gantt_bars import MAX_BARS
from triosim.figures.palette import CLASS_COLOURS, PHASE_COLOURS, contrast
from triosim.figures.train_colours import HELD_COLOURS, STEP_COLOURS

SMALL = ts.TrainScenario(
    model=None, layers=4, hidden=256, heads=4, ffn=512, vocab=1000, seq_len=256, gpus=8
)


@pytest.fixture(scope="module")
def found():
    return compare(
        ts.Scenario(case=2, gpus=4),
        ts.Scenario(case=4, gpus=4, micro_batch_size=2),
        SMALL,
        replace(SMALL, pp=4, global_batch=16),
    )


NAMES = ["one", "two", "three", "four"]


def axis_of(figure, index):
    return figure.layout[f"yaxis{index + 1 if index else ''}"]


def test_letters_have_colours_of_their_own_that_can_be_read():
    others = {*PHASE_COLOURS.values(), *CLASS_COLOURS.values(), *STEP_COLOURS.values()}
    others |= set(HELD_COLOURS.values())
    assert len(LETTERS) == MOST
    for dark in (False, True):
        style = Style(dark=dark)
        colours = [letter_colour(letter, style) for letter in LETTERS]
        assert len(set(colours)) == len(LETTERS)
        assert not others & set(colours[1:])
        assert all(contrast(colour, style.surface) >= 4.5 for colour in colours)
    assert len({letter_dash(letter) for letter in LETTERS}) == len(LETTERS)


def test_all_timelines_share_one_axis_of_time(found):
    figure = compare_gantts(found.results, NAMES)
    assert {trace.xaxis for trace in figure.data} <= {None, "x"}
    longest = max(result.tasks.total_s for result in found.results) * 1e3
    assert tuple(figure.layout.xaxis.range) == (0.0, longest)
    ends = [shape.x0 for shape in figure.layout.shapes]
    assert ends == [result.tasks.total_s * 1e3 for result in found.results]
    domains = [axis_of(figure, index).domain for index in range(4)]
    for above, below in pairwise(domains):
        assert above[0] > below[1]  # from the top down, none over another
    assert all(0 <= low < high <= 1 for low, high in domains)


def test_bars_are_the_busy_time_of_the_drawn_gpus(found):
    figure = compare_gantts(found.results[:1], ["one"])
    result = found.results[0]
    frame = result.timeline
    for phase in ("forward", "backward", "optimizer", "all-reduce"):
        [trace] = [t for t in figure.data if t.meta == phase]
        own = frame[frame["phase"] == phase]
        assert sum(trace.x) == pytest.approx((own["end_ms"] - own["start_ms"]).sum(), rel=1e-5)
    gaps = sum(sum(trace.x) for trace in figure.data if trace.meta == "gap")
    idle = result.total_ms - result.breakdown["compute"]
    assert gaps == pytest.approx(idle, rel=1e-5)


def test_a_name_stands_in_the_legend_once(found):
    figure = compare_gantts(found.results, NAMES)
    shown = [trace.name for trace in figure.data if trace.showlegend]
    assert len(shown) == len(set(shown))
    assert set(shown) == {trace.name for trace in figure.data if trace.name}
    titles = [note.text for note in figure.layout.annotations]
    for letter, name, title in zip(LETTERS, NAMES, titles, strict=True):
        assert title.startswith(f"<b>{letter}</b>")
        assert title.endswith(name)


def test_without_streams_only_what_is_computed_is_drawn(found):
    figure = compare_gantts(found.results, NAMES, streams=False)
    for index in range(4):
        lanes = axis_of(figure, index).categoryarray
        assert len(lanes) == min(MAX_KINDS, len(found.results[index].classes))
        assert all(lane.endswith("compute") for lane in lanes)


def test_many_kinds_and_lanes_stay_within_bounds_and_say_so():
    speeds = {rank: 0.5 + rank / 100 for rank in range(20)}
    many = ts.simulate(ts.Scenario(case=2, gpus=20, rank_speed=speeds))
    figure = compare_gantts([many, many], ["one", "two"])
    lanes = [len(axis_of(figure, index).categoryarray) for index in (0, 1)]
    assert sum(lanes) <= MAX_LANES
    text = figure.layout.xaxis.title.text.replace("<br>", " ").replace("</i> <i>", " ")
    assert f"A: {MAX_KINDS} of 20 kinds of GPU are drawn" in text
    bars = sum(len(trace.x) for trace in figure.data if trace.type == "bar")
    assert bars <= MAX_BARS


def test_a_step_of_many_intervals_is_drawn_as_cells_in_the_right_place(monkeypatch, found):
    monkeypatch.setattr("triosim.figures.compare_gantt.MAX_BARS", 4)
    figure = compare_gantts(found.results[:2], NAMES[:2])
    cells = [trace for trace in figure.data if trace.type == "heatmap"]
    assert {trace.yaxis for trace in cells} == {"y", "y2"}
    for trace in cells:
        assert list(trace.y) == list(axis_of(figure, trace.yaxis == "y2").categoryarray)
        assert np.shape(trace.hovertext) == np.shape(trace.z)


def test_a_window_past_the_end_of_a_step_leaves_it_empty(found):
    longest = max(result.tasks.total_s for result in found.results) * 1e3
    window = 0.9 * longest, longest
    figure = compare_gantts(found.results, NAMES, window_ms=window)
    assert tuple(figure.layout.xaxis.range) == window
    for index, result in enumerate(found.results):
        name = f"y{index + 1}" if index else "y"
        own = [t for t in figure.data if (t.yaxis or "y") == name and t.type == "bar"]
        if result.tasks.total_s * 1e3 <= window[0]:
            assert own == []
    assert any(trace.type == "bar" for trace in figure.data)


@pytest.mark.parametrize("index", [1, 2, 3])
def test_the_bars_of_a_waterfall_follow_each_other_to_the_difference(found, index):
    base = found.baseline.total_ms
    figure = compare_waterfall(found.waterfall(index), base)
    [bars] = figure.data
    difference = found.results[index].total_ms - base
    at = 0.0
    for begin, size in zip(bars.base[:-1], bars.x[:-1], strict=True):
        assert begin == pytest.approx(at)
        at += size
    assert at == pytest.approx(difference)
    assert (bars.base[-1], bars.x[-1]) == (0.0, pytest.approx(difference))
    assert len(bars.x) <= MAX_ROWS + 2
    low, high = figure.layout.xaxis.range
    assert low < min(0, difference) <= max(0, difference) < high


def test_small_parts_are_one_and_colours_are_those_of_the_breakdown():
    deltas = [
        Delta(kind="compute", part="forward", ms=-100.0),
        Delta(kind="compute", part="backward", ms=0.01),
        Delta(kind="exposed_communication", part="all-reduce gradients", ms=40.0),
        Delta(kind="bubble", part="bubble", ms=0.02),
    ]
    [bars] = compare_waterfall(deltas, 200.0).data
    assert list(bars.y) == [
        "forward compute", "exposed all-reduce<br>(gradients)", "2 smaller parts", "step",
    ]  # fmt: skip
    assert list(bars.x) == pytest.approx([-100.0, 40.0, 0.03, -59.97])
    assert list(bars.text)[:2] == ["\N{MINUS SIGN}100 ms", "+40 ms"]
    assert bars.customdata[0] == "-50.0 %"
    assert bars.marker.color[:2] == (
        PHASE_COLOURS["forward"], CLASS_COLOURS["exposed_communication"],
    )  # fmt: skip
    assert part_colour(deltas[3]) == CLASS_COLOURS["bubble"]


def test_no_difference_is_a_sentence():
    figure = compare_waterfall([], 5.0)
    assert not figure.data
    assert "the same time in every part" in figure.layout.annotations[0].text


def test_a_difference_has_its_sign():
    assert signed_time(8.1) == "+8.10 ms"
    assert signed_time(-0.5) == "\N{MINUS SIGN}500 \u00b5s"


def test_memory_lines_reach_the_peak_of_the_fullest_gpu(found):
    figure = compare_memory(found.results, NAMES)
    unit = 2.0**30
    for trace, result, letter in zip(figure.data, found.results, LETTERS, strict=True):
        assert trace.meta == letter
        assert max(trace.y) == pytest.approx(result.peak_memory_bytes / unit, rel=1e-5)
        assert trace.x[-1] == pytest.approx(result.tasks.total_s * 1e3)
        assert trace.line.dash == letter_dash(letter)


def test_capacities_in_view_are_lines_and_others_are_said():
    fits = replace(SMALL, model="llama3.2-1b", layers=None, hidden=None, heads=None, ffn=None,
                   vocab=None, seq_len=8192)  # fmt: skip
    trace = ts.Scenario(case=2, gpus=4)
    figure = compare_memory([ts.train(fits), ts.simulate(trace)], ["a", "b"])
    texts = [note.text for note in figure.layout.annotations]
    gpu = 80
    assert texts == [
        f"capacity of A {gpu} GiB", "capacity of B 1 TiB, above this picture",
    ]  # fmt: skip
    [line] = figure.layout.shapes
    assert line.y0 == line.y1 == gpu


@pytest.mark.parametrize("dark", [False, True])
def test_names_from_files_are_no_markup(found, dark):
    style = Style(dark=dark)
    name = "<b>x</b>"
    gantt = compare_gantts(found.results[:1], [name], style=style)
    memory = compare_memory(found.results[:1], [name], style=style)
    assert "&lt;b&gt;x" in gantt.layout.annotations[0].text
    assert "&lt;b&gt;x" in memory.data[0].name
