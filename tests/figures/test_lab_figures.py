"""Figures of the labs: what they draw is what they were given."""

from __future__ import annotations

import pytest

from triosim.figures import Style
from triosim.figures.answer_axis import AxisRow, answer_axis
from triosim.figures.bucket_sweep import bucket_sweep
from triosim.figures.class_counts import OTHER_COLOUR, RIGHT_COLOUR, SLIP_COLOUR, class_counts
from triosim.figures.palette import contrast
from triosim.figures.schedule_grid import KIND_COLOURS, schedule_grid
from triosim.figures.schedule_trade import (
    bubble_for_microbatches,
    memory_by_stage,
    speed_for_memory,
)
from triosim.lab.bucket_sweep import SweepPoint
from triosim.pipelines import pipeline
from triosim.schedules import SCHEDULES

DARK = Style(dark=True, font_size=20)


def test_the_axis_has_every_mark_where_its_value_is() -> None:
    rows = [AxisRow(label="a", formula=3, simulation=4, guess=-1), AxisRow(label="b", formula=7)]
    figure = answer_axis(rows, "ms", style=DARK)
    marks = {trace.name: list(trace.x) for trace in figure.data}
    assert marks == {"Formula": [3, 7], "Simulation": [4, None], "Your guess": [-1, None]}
    low, high = figure.layout.xaxis.range
    assert low < -1
    assert high > 7
    assert [note.text for note in figure.layout.annotations] == ["<b>4</b>", "<b>7</b>"]
    assert figure.layout.font.size == 20


def test_an_axis_without_a_guess_has_no_mark_for_one() -> None:
    figure = answer_axis([AxisRow(label="<b>x</b>", formula=0, simulation=0)], "ms")
    assert [trace.name for trace in figure.data] == ["Formula", "Simulation"]
    assert figure.layout.yaxis.ticktext == ("&lt;b&gt;x&lt;/b&gt;",)


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_grid_shows_every_task_when_it_runs(name: str) -> None:
    run = pipeline(name, stages=4, microbatches=8, chunks=2 if name in ("interleaved",) else 1)
    figure = schedule_grid(run)
    drawn = sorted(
        (row, round(start, 9), round(start + length, 9))
        for trace in figure.data[1:]
        for row, start, length in zip(trace.y, trace.base, trace.x, strict=True)
    )
    timeline = run.timeline
    assert drawn == sorted(
        (f"stage {stage}", round(start, 9), round(end, 9))
        for stage, start, end in zip(
            timeline["stage"], timeline["start"], timeline["end"], strict=True
        )
    )
    assert figure.data[0].name == "idle"
    assert set(figure.data[0].x) == {run.makespan}


def test_a_large_grid_has_no_text_in_its_cells() -> None:
    figure = schedule_grid(pipeline("zb-h1", stages=16, microbatches=48))
    assert all(trace.text is None for trace in figure.data)
    assert figure.layout.height < 720


@pytest.mark.parametrize("kind", KIND_COLOURS)
def test_cells_stand_out_from_both_pages(kind: str) -> None:
    for style in (Style(), DARK):
        assert contrast(KIND_COLOURS[kind], style.surface) > 1.3


def test_memory_of_stages() -> None:
    figure = memory_by_stage([4, 3, 2.5, 1], "micro-batches")
    assert list(figure.data[0].x) == [4, 3, 2.5, 1]
    assert figure.data[0].text == ("4", "3", "2.5", "1")


def test_schedules_that_lie_together_share_a_line_of_names() -> None:
    points = {"gpipe": (8.0, 0.5), "1f1b": (4.0, 0.5), "zb-h1": (4.1, 0.51), "zb-h2": (7.9, 0.9)}
    figure = speed_for_memory(points, "zb-h1", "micro-batches")
    names = sorted(note.text for note in figure.layout.annotations)
    assert names == ["1f1b, <b>zb-h1</b>", "gpipe", "zb-h2"]
    assert list(figure.data[0].x) == [4.1]
    assert sorted(figure.data[1].x) == [4.0, 7.9, 8.0]


def test_the_bubble_is_counted_both_ways() -> None:
    """p 4: 3/(m + 3) of the total and 3/m of the ideal, in percent."""
    figure = bubble_for_microbatches([1, 3, 12], [0.75, 0.5, 0.2], [3, 1, 0.25], 4, 0.1)
    lines = [trace for trace in figure.data if trace.mode == "lines"]
    assert list(lines[0].y) == pytest.approx([75, 50, 20])
    assert list(lines[1].y) == pytest.approx([300, 100, 25])
    dots = [trace for trace in figure.data if trace.mode == "markers"]
    assert list(dots[0].y) == pytest.approx([75, 50, 20])
    assert figure.layout.shapes[0].y0 == pytest.approx(10)


def test_the_least_exposed_bucket_has_the_star() -> None:
    points = [
        SweepPoint(bucket_mb=mb, step_ms=70 + ms, exposed_ms=ms, buckets=n)
        for mb, ms, n in ((1, 5.0, 98), (5, 2.0, 20), (25, 3.0, 4))
    ]
    figure = bucket_sweep(points, 25)
    assert (figure.data[1].x, figure.data[1].y) == ((5,), (2.0,))
    assert figure.layout.shapes[0].x0 == 25


def test_a_classs_bars_say_which_is_right_and_which_are_slips() -> None:
    figure = class_counts({"no chunks": 7, "right": 5, "wrong": 1}, "right", {"no chunks": "hint"})
    (bars,) = figure.data
    assert list(bars.x) == [7, 5, 1]
    assert list(bars.marker.color) == [SLIP_COLOUR, RIGHT_COLOUR, OTHER_COLOUR]
