"""Pictures of sweeps and searches against what was simulated, or said by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import plotly.graph_objects as go
import pytest

from triosim.figures.search import fastest_layouts
from triosim.figures.sweep import sweep_line, sweep_pareto
from triosim.figures.sweep_heatmap import sweep_heatmap
from triosim.figures.sweep_marks import FITS_NAME, NO_ANSWER_NAME, TOO_LARGE_NAME
from triosim.search import search
from triosim.sweep import METRICS, Point
from triosim.train import TrainScenario


def say(field: str, value: Any) -> str:
    return f"{field} {value}"


def point(
    index: int,
    settings: Mapping[str, Any],
    step_ms: float | None,
    memory_gib: float = 10.0,
    pace: float = 1.0,
    *,
    fits: bool = True,
    problem: str | None = None,
) -> Point:
    known = {"step_ms": step_ms, "peak_memory_gib": memory_gib, "tokens_per_s_per_gpu": pace}
    empty = step_ms is None
    metrics = {name: None if empty else known.get(name) for name in METRICS}
    return Point(
        index=index, settings=settings, scenario=None, problem=problem,
        fits=None if empty else fits, metrics=metrics,
    )  # fmt: skip


LINE = [
    point(0, {"tp": 4}, 30.0),
    point(1, {"tp": 1}, 100.0, fits=False),
    point(2, {"tp": 3}, None, problem="must divide the 8 GPUs"),
    point(3, {"tp": 2}, 60.0),
    point(4, {"tp": 8}, 45.0),
]


def named(figure: go.Figure, name: str) -> Any:
    return next(trace for trace in figure.data if trace.name == name)


def test_a_line_goes_through_what_fits_in_order() -> None:
    figure = sweep_line(LINE, "tp", "tensor parallel", "step_ms", say=say)
    line = named(figure, FITS_NAME)
    assert list(line.x) == [2, 4, 8]
    assert list(line.y) == [60.0, 30.0, 45.0]
    assert [told[0] for told in line.customdata] == [3, 0, 4]
    assert figure.layout.xaxis.type == "linear"  # 1, 2, 3, 4, 8 are no powers
    best = named(figure, "best")
    assert (best.x[0], best.y[0]) == (4, 30.0)


def test_what_is_left_out_is_marked_with_its_reason() -> None:
    figure = sweep_line(LINE, "tp", "tensor parallel", "step_ms", say=say)
    large, none = named(figure, TOO_LARGE_NAME), named(figure, NO_ANSWER_NAME)
    assert (large.x[0], large.y[0]) == (1, 100.0)
    assert none.y[0] == figure.layout.yaxis.range[0]
    assert none.customdata[0][1] == "must divide the 8 GPUs"
    assert "must divide the 8 GPUs" in none.customdata[0][2]
    assert "does not fit: needs 10.0 GiB" in large.customdata[0][2]


def test_doubled_values_have_a_logarithmic_axis_and_words_are_categories() -> None:
    doubled = [point(k, {"gpus": 2**k}, 10.0 + k) for k in range(4)]
    figure = sweep_line(doubled, "gpus", "GPUs", "step_ms", say=say)
    assert figure.layout.xaxis.type == "log"
    assert list(figure.layout.xaxis.tickvals) == [1, 2, 4, 8]
    words = [point(k, {"gpu": name}, 10.0 + k) for k, name in enumerate(["b", "a", "<i>"])]
    figure = sweep_line(words, "gpu", "GPU", "step_ms", say=say)
    assert figure.layout.xaxis.type == "category"
    assert list(figure.layout.xaxis.categoryarray) == ["gpu b", "gpu a", "gpu &lt;i&gt;"]
    switched = [point(0, {"fold": False}, 1.0), point(1, {"fold": True}, 2.0)]
    figure = sweep_line(switched, "fold", "fold", "step_ms", say=say)
    assert figure.layout.xaxis.type == "category"


GRID = [
    point(0, {"tp": 1, "micro": 1}, 40.0),
    point(1, {"tp": 1, "micro": 2}, 90.0, fits=False),
    point(2, {"tp": 2, "micro": 1}, 25.0),
    point(3, {"tp": 2, "micro": 2}, None, problem="is no multiple"),
]


def test_a_heatmap_has_a_cell_for_each_point_and_a_target_on_it() -> None:
    figure = sweep_heatmap(GRID, ("tp", "micro"), ("tp", "micro"), "step_ms", say=say)
    cells = next(trace for trace in figure.data if trace.type == "heatmap")
    assert [list(row) for row in cells.z] == [[40.0, None], [25.0, None]]
    assert cells.hoverinfo == "skip"
    targets = next(trace for trace in figure.data if trace.meta == "cells")
    found = {told[0]: (x, y) for told, x, y in zip(
        targets.customdata, targets.x, targets.y, strict=True)}  # fmt: skip
    assert found == {0: (0, 0), 1: (1, 0), 2: (0, 1), 3: (1, 1)}
    assert "is no multiple" in targets.customdata[3][2]
    (mark,) = figure.layout.shapes  # around the best: row 1, column 0
    assert mark.x0 < 0 < mark.x1
    assert mark.y0 < 1 < mark.y1
    assert {TOO_LARGE_NAME, NO_ANSWER_NAME} <= {trace.name for trace in figure.data}
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]  # the first row on top


def test_the_darkest_cell_is_the_best_whichever_way_is_better() -> None:
    for metric in ("step_ms", "tokens_per_s_per_gpu"):
        figure = sweep_heatmap(GRID, ("tp", "micro"), ("tp", "micro"), metric, say=say)
        scale = next(trace for trace in figure.data if trace.type == "heatmap").colorscale
        darkest = min(scale, key=lambda stop: int(stop[1][1:], 16))
        assert darkest[0] == (0.0 if METRICS[metric].less_is_better else 1.0)


def test_the_front_has_what_no_other_beats_in_both() -> None:
    points = [
        point(0, {"tp": 1}, 1.0, memory_gib=10, pace=5),
        point(1, {"tp": 2}, 1.0, memory_gib=20, pace=9),
        point(2, {"tp": 4}, 1.0, memory_gib=25, pace=7),
        point(3, {"tp": 8}, 1.0, memory_gib=99, pace=20, fits=False),
    ]
    figure = sweep_pareto(points, "tokens_per_s_per_gpu", say=say, capacity_gib=80)
    front = named(figure, "no other is better in both")
    assert list(zip(front.x, front.y, strict=True)) == [(10, 5), (20, 9)]
    other = named(figure, "another is better in both")
    assert list(other.x) == [25]
    assert list(named(figure, TOO_LARGE_NAME).x) == [99]
    assert figure.layout.shapes[0].x0 == 80


def test_nothing_to_show_is_a_sentence() -> None:
    for points in ([], [LINE[2]]):
        figure = sweep_line(points, "tp", "tp", "step_ms", say=say)
        assert len(figure.layout.annotations) == 1
        assert not figure.data


@pytest.fixture(scope="module")
def found() -> Any:
    base = TrainScenario(model="gpt2", layers=2, gpus=4, global_batch=8)
    return search(
        base, micro_batch_sizes=[1], recompute=["none"], schedules=["1f1b"], workers=1, top=3
    )


def test_bars_of_layouts_are_as_long_as_their_steps(found: Any) -> None:
    figure = fastest_layouts(found.ranked)
    drawn = [one for one in found.ranked if one.figures is not None][:10]
    assert len(drawn) >= 3
    lengths = [sum(bar.x[k] for bar in figure.data) for k in range(len(drawn))]
    assert lengths == pytest.approx([one.step_ms for one in drawn])
    assert figure.data[0].y[0] == f"1. {found.best.layout}"


def test_a_layout_is_named_by_its_axes(found: Any) -> None:
    texts = [one.layout for one in found.ranked]
    assert "shard 4" in texts
    assert "shard 2 \u00b7 tp 2" in texts
