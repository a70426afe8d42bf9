"""Gaps that can be told apart, the critical path as a line, totals and what-ifs as bars."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from triosim.explain import WhatIf, explain
from triosim.figures import (
    critical_bars,
    gantt_bars,
    gantt_overview,
    memory_figure,
    what_if_tornado,
)
from triosim.figures.critical import NAME, OFFSET
from triosim.figures.explain import FASTER, FREE, MOST_ROWS, kind_colour
from triosim.figures.gantt_bars import CUSTOM_DATA
from triosim.figures.lanes import choose_lanes
from triosim.figures.train_colours import OTHER, STEP_COLOURS
from triosim.figures.train_timeline import CUSTOM_DATA as STEP_DATA
from triosim.figures.train_timeline import pass_timeline, step_timeline
from triosim.train import TrainResult, TrainScenario, train


@pytest.fixture(scope="module")
def trained() -> TrainResult:
    """A pipeline whose steps overlap, so that its timeline is longer than its step."""
    shape = {"layers": 4, "hidden": 4096, "heads": 32, "ffn": 16384, "vocab": 128_000}
    plan = {"gpus": 8, "pp": 4, "global_batch": 16, "optimizer_sync": "stage", "seq_len": 2048}
    return train(TrainScenario(**shape, **plan, schedule="zb-h1"))


def whole(result, ranks, **more):
    return gantt_bars(result, ranks, (0.0, result.tasks.total_s * 1e3), **more)


def gap_bars(figure, columns):
    """Length in milliseconds and custom data of every bar of a gap."""
    for trace in figure.data:
        if trace.meta == "gap":
            for length, custom in zip(trace.x, trace.customdata, strict=True):
                yield length, dict(zip(columns, custom, strict=True))


@pytest.mark.parametrize("name", ["straggler", "pipeline", "two hosts", "small memory"])
def test_every_gap_is_a_bar_that_says_which_it_is(result_of, name):
    result = result_of(name)
    found, ranks = explain(result), [group.rank for group in result.classes]
    seen = {rank: [] for rank in ranks}
    for length, custom in gap_bars(whole(result, ranks), CUSTOM_DATA):
        wait = found.gaps(custom["rank"])[custom["gap"]]
        assert length == pytest.approx(wait.seconds * 1e3, abs=2e-6)
        assert custom["task"] == wait.cause
        seen[custom["rank"]].append(custom["gap"])
    for rank in ranks:
        assert sorted(seen[rank]) == list(range(len(found.gaps(rank))))


def test_spans_are_no_gaps_and_name_their_task(result_of):
    result = result_of("straggler")
    for trace in whole(result, [0, 3]).data:
        if trace.meta != "gap":
            for custom in trace.customdata:
                own = dict(zip(CUSTOM_DATA, custom, strict=True))
                assert own["gap"] == -1
                assert result.tasks.program.phase[own["task"]] == trace.meta


def segments(figure):
    """Horizontal pieces of the line: lane and length in milliseconds."""
    (shape,) = (shape for shape in figure.layout.shapes if shape.name == NAME)
    points = [
        (kind, float(x), float(y))
        for kind, x, y in re.findall(r"([ML])([-\d.]+),([-\d.]+)", shape.path)
    ]
    for before, (kind, x, y) in pairwise(points):
        if kind == "L" and y == before[2]:
            yield round(y - OFFSET), x - before[1]


@pytest.mark.parametrize("name", ["straggler", "pipeline"])
def test_the_path_runs_through_the_lanes_of_its_tasks(result_of, name):
    result = result_of(name)
    ranks = [group.rank for group in result.classes]
    path = explain(result).critical_path
    figure = whole(result, ranks, path=path)
    lanes = choose_lanes(result, ranks).lanes
    drawn = dict.fromkeys((lane.label for lane in lanes), 0.0)
    for row, length in segments(figure):
        drawn[lanes[row].label] += length
    assert sum(drawn.values()) == pytest.approx(result.total_ms, rel=1e-4)
    for lane in lanes:
        own = [s.seconds for s in path if result.tasks.program.stream[s.task] == lane.stream]
        assert drawn[lane.label] == pytest.approx(sum(own) * 1e3, abs=1e-3)
    assert NAME in {trace.name for trace in figure.data}


def test_without_a_path_there_is_no_line(result_of):
    figure = whole(result_of("straggler"), [0])
    assert not [shape for shape in figure.layout.shapes if shape.name == NAME]
    assert NAME not in {trace.name for trace in figure.data}


def test_the_path_is_cut_at_the_window_and_drawn_over_a_raster(result_of):
    result = result_of("long pipeline")
    path = explain(result).critical_path
    figure = gantt_bars(result, range(16), (30.0, 31.0), path=path)
    assert sum(length for _, length in segments(figure)) == pytest.approx(1.0, abs=1e-3)
    raster = whole(result, range(16), path=path)
    assert raster.data[0].type == "heatmap"
    assert sum(length for _, length in segments(raster)) == pytest.approx(result.total_ms, rel=1e-4)


def test_timelines_and_memory_take_training_steps_too(trained):
    makespan_ms = trained.tasks.total_s * 1e3
    assert trained.step_ms < makespan_ms
    ranks = [group.rank for group in trained.classes]
    overview = gantt_overview(trained, ranks)
    assert tuple(overview.layout.xaxis.range) == (0.0, pytest.approx(makespan_ms))
    names = {trace.name for trace in overview.data}
    assert {"forward", "backward", "reduce-scatter"} <= names
    bars = whole(trained, ranks, path=explain(trained).critical_path)
    spans = {trace.meta: trace for trace in bars.data if trace.meta not in ("gap", None)}
    assert spans["all-gather"].marker.color == STEP_COLOURS["all-gather"]
    computed = [c for t in ("forward", "backward", "optimizer") for c in spans[t].customdata]
    passes = [t for t in range(len(trained.tasks.program)) if t in trained.tasks.program.parts]
    assert len(computed) == len(passes)
    memory = memory_figure(trained, ranks[-1])
    peak = trained.memory[trained.class_of(ranks[-1])].peak_bytes / 2**30
    tops = [max(trace.y) for trace in memory.data if trace.fill]
    assert max(tops) == pytest.approx(peak, rel=1e-5)


def test_gaps_of_a_training_step_say_which_they_are(trained):
    found = explain(trained)
    figure = step_timeline(trained, (0.0, trained.tasks.total_s * 1e3), streams=False)
    count = 0
    for _, custom in gap_bars(figure, STEP_DATA):
        wait = found.gaps(custom["rank"])[custom["wait"]]
        assert custom["name"].endswith(found.reason(wait).replace("&", "&amp;"))
        assert (custom["task"], custom["span"]) == (-1, -1)
        count += 1
    # One rank idles after the last task, until the next step lets it go on: that is not drawn.
    end_s = trained.tasks.total_s
    gaps = [w for rank in range(0, 8, 2) for w in found.gaps(rank) if w.inside < 0]
    assert count == sum(wait.start_s < end_s for wait in gaps)


def test_gaps_inside_a_pass_fill_what_its_kernels_leave():
    shape = {"layers": 2, "hidden": 256, "heads": 8, "ffn": 512, "vocab": 1000, "seq_len": 128}
    result = train(TrainScenario(**shape, gpus=4, tp=4))
    task = next(iter(result.writer.made))
    unit = explain(result).inside(task)[0]
    assert unit.waits
    figure = pass_timeline(result.inside(task), unit=unit.unit.name, gaps=unit)
    busy = gaps = 0.0
    for trace in figure.data:
        if trace.meta == "gap":
            gaps += sum(trace.x)
        else:
            lanes = zip(trace.y, trace.x, trace.customdata, strict=True)
            for lane, length, custom in lanes:
                own = dict(zip(STEP_DATA, custom, strict=True))
                name = unit.timeline.program.name[unit.tasks[own["span"]]]
                assert own["name"] == name
                busy += length if lane == "compute" else 0.0
    assert busy + gaps == pytest.approx(unit.made.seconds * 1e3, rel=1e-3)
    found = [custom["wait"] for _, custom in gap_bars(figure, STEP_DATA)]
    assert sorted(found) == list(range(len(unit.waits)))


def test_bars_of_the_path_are_its_totals(result_of):
    totals = explain(result_of("distributed")).critical_totals
    (bars,) = critical_bars(totals).data
    assert list(bars.x) == sorted(totals.values(), reverse=True)
    assert sum(bars.x) == pytest.approx(result_of("distributed").total_ms)
    assert list(bars.marker.color) == [kind_colour(kind) for kind in totals]


def test_a_tornado_reaches_from_the_step_to_what_it_would_be():
    rows = [
        WhatIf(kind="forward", free_ms=6.0, twice_as_fast_ms=8.0, base_ms=10.0),
        WhatIf(kind="all-reduce: gradients", free_ms=9.0, twice_as_fast_ms=9.5, base_ms=10.0),
        WhatIf(kind="launch", free_ms=10.0, twice_as_fast_ms=10.0, base_ms=10.0),
    ]
    figure = what_if_tornado(rows)
    bars = {trace.name: trace for trace in figure.data if trace.type == "bar"}
    for name, ends in ((FREE, [6.0, 9.0]), (FASTER, [8.0, 9.5])):
        trace = bars[name]
        assert [a + b for a, b in zip(trace.base, trace.x, strict=True)] == ends
        assert list(trace.y) == ["forward", "all-reduce: gradients"]
    (text,) = (t for t in figure.data if t.type == "scatter" and t.mode == "text")
    assert [one.strip() for one in text.text] == ["\u221240.0 %", "\u221210.0 %"]
    assert bars[FASTER].customdata[0][1] == "\u221220.0 %"
    assert "1 more would change nothing" in figure.layout.xaxis.title.text


def test_a_tornado_has_an_end_and_may_be_empty():
    many = [
        WhatIf(kind=f"kind {i}", free_ms=1.0 + i, twice_as_fast_ms=50.0, base_ms=100.0)
        for i in range(40)
    ]
    assert len(what_if_tornado(many).data[0].y) == MOST_ROWS
    for figure in (what_if_tornado([]), critical_bars({})):
        assert len(figure.layout.annotations) == 1


@pytest.mark.parametrize(
    ("kind", "colour"),
    [
        ("forward", STEP_COLOURS["forward"]),
        ("all-gather: parameters", STEP_COLOURS["all-gather"]),
        ("send/recv: activations", STEP_COLOURS["send"]),
        ("all computing", OTHER),
    ],
)
def test_a_kind_has_the_colour_of_what_it_does(kind, colour):
    assert kind_colour(kind) == colour
