"""Figures of a training step against what the result says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

from triosim.engine.program import COMPUTE_PHASES
from triosim.figures.palette import channels
from triosim.figures.style import Style
from triosim.figures.train_breakdown import class_labels, train_breakdown
from triosim.figures.train_colours import (
    GROUP_COLOURS,
    HELD_COLOURS,
    PART_COLOURS,
    STEP_COLOURS,
    step_colour,
)
from triosim.figures.train_memory import memory_by_stage, memory_over_step
from triosim.figures.train_mesh import MAX_RANKS, mesh_map
from triosim.figures.train_timeline import pass_timeline, stage_lanes, step_timeline
from triosim.hardware import load_gpu
from triosim.train import Plan, TrainResult, TrainScenario, make_plan, train
from triosim.train.stage import CATEGORIES

PLANS = {
    "sharded": {"gpus": 16},
    "pipeline": {"gpus": 16, "pp": 4, "tp": 2, "recompute": "full", "global_batch": 16},
    "alone": {"model": "gpt2", "gpus": 1},
    "uneven": {"gpus": 8, "rank_speed": {3: 0.5}},
}
Get = Callable[[str], TrainResult]


@cache
def _train(name: str) -> TrainResult:
    return train(TrainScenario(**{"model": "llama3.2-1b", "seq_len": 1024, **PLANS[name]}))


@pytest.fixture(params=PLANS)
def result(request: pytest.FixtureRequest) -> TrainResult:
    return _train(request.param)


def test_each_bar_of_the_breakdown_is_as_long_as_the_step(result: TrainResult) -> None:
    figure = train_breakdown(result)
    lengths = np.sum([trace.x for trace in figure.data], axis=0)
    assert lengths == pytest.approx([result.step_ms] * len(class_labels(result)))
    assert {trace.meta for trace in figure.data} <= set(PART_COLOURS)


def test_passes_and_gaps_fill_every_compute_stream(result: TrainResult) -> None:
    figure = step_timeline(result, (0.0, result.step_ms), streams=False)
    drawn = sum(sum(bar.x) for bar in figure.data)
    assert drawn == pytest.approx(result.step_ms * len(result.classes), rel=1e-5)
    assert {bar.meta for bar in figure.data} <= {*COMPUTE_PHASES, "gap"}


def test_every_phase_and_category_has_a_colour_of_its_own(result: TrainResult) -> None:
    assert {*result.tasks.program.phase} <= set(STEP_COLOURS)
    for colours in (STEP_COLOURS, {name: HELD_COLOURS[name] for name in CATEGORIES}):
        assert len(set(colours.values())) == len(colours)
    assert step_colour("something new") not in STEP_COLOURS.values()
    assert len(set(GROUP_COLOURS)) == len(GROUP_COLOURS)
    assert min(min(channels(colour)) for colour in GROUP_COLOURS) >= 0.3 * 255 - 1


def test_a_window_cuts_bars_at_its_edges() -> None:
    result = _train("pipeline")
    low, high = 0.2 * result.step_ms, 0.4 * result.step_ms
    figure = step_timeline(result, (low, high), streams=False, style=Style(dark=True))
    for bar in figure.data:
        assert min(bar.base) >= low - 1e-6
        assert max(np.add(bar.base, bar.x)) <= high + 1e-6
    assert {y for bar in figure.data for y in bar.y} <= {
        f"stage {stage} \u00b7 compute" for stage in range(4)
    }


def test_bars_of_passes_carry_their_task() -> None:
    result = _train("sharded")
    figure = step_timeline(result, (0.0, result.step_ms))
    tasks = {int(c[4]) for bar in figure.data for c in bar.customdata} - {-1}
    assert tasks == set(result.writer.made)


def test_more_intervals_than_a_browser_can_draw_become_a_raster() -> None:
    many = train(TrainScenario(model="gpt2", gpus=16, pp=4, global_batch=1200))
    figure = step_timeline(many, (0.0, many.step_ms))
    assert figure.data[0].type == "heatmap"
    assert np.asarray(figure.data[0].z).shape[0] == len(stage_lanes(many, streams=True).lanes)
    points = figure.data[-1]
    spans = [custom[5] for custom in points.customdata if custom[5] >= 0]
    assert {many.tasks.program.stream[t] for t in spans} <= {
        lane.stream for lane in stage_lanes(many, streams=True).lanes
    }
    assert any(custom[7] >= 0 for custom in points.customdata)  # a gap
    assert "shorter window" in figure.layout.xaxis.title.text.replace("</i><br><i>", " ")


def test_a_pass_is_its_layers_and_a_layer_its_kernels() -> None:
    result = _train("pipeline")
    task = next(t for t, made in result.writer.made.items() if made.kind == "backward")
    inside = result.inside(task)
    layers = pass_timeline(inside)
    drawn = [custom[0] for bar in layers.data for custom in bar.customdata]
    assert sorted(drawn) == sorted(set(inside["unit"]))
    unit = inside["unit"].iloc[-1]
    kernels = pass_timeline(inside, unit=unit)
    assert sum(len(bar.x) for bar in kernels.data) == (inside["unit"] == unit).sum()
    assert kernels.layout.yaxis.categoryarray[0] == "compute"


def test_memory_at_the_peak_sums_to_the_peak(result: TrainResult) -> None:
    figure = memory_by_stage(result)
    held = np.sum([trace.x for trace in figure.data], axis=0) * 2**30
    assert held == pytest.approx([curve.peak_bytes for curve in result.memory])
    over = memory_over_step(result, 0)
    layers = [trace for trace in over.data if trace.meta != "peak"]
    assert max(layers[-1].y) * 2**30 == pytest.approx(result.memory[0].peak_bytes, rel=1e-5)


def _map(plan: Plan, axes: Sequence[str], per_host: int | None) -> dict[str, Any]:
    return mesh_map(plan, axes, per_host, lambda group: f"{group.shape[1]} ranks")


@pytest.mark.parametrize("axis", ["dp_shard", "tp", "pp", "cp"])
def test_ranks_of_a_group_share_their_place_on_the_other_axes(axis: str) -> None:
    plan = make_plan(TrainScenario(gpus=64, tp=2, pp=2, cp=2, seq_len=1024))
    (one,) = _map(plan, [axis], 8)["axes"]
    places = np.delete(plan.mesh.coordinates(np.arange(64)), plan.mesh.axis(axis), axis=1)
    same_group = np.equal.outer(one["group"], one["group"])
    same_place = (places[:, None, :] == places[None, :, :]).all(axis=2)
    assert (same_group == same_place).all()
    assert one["size"] == plan.sizes[axis]
    assert set(one["link"]) == {f"{plan.sizes[axis]} ranks"}


def test_members_and_places_are_said_by_number() -> None:
    plan = make_plan(TrainScenario(gpus=64, tp=8, seq_len=1024))
    drawn = _map(plan, ["dp_shard", "tp"], 8)
    shard, tensor = drawn["axes"]
    assert shard["members"][1] == "1, 9, 17, 25, 33, 41, 49, 57"
    assert tensor["members"][1] == "8 to 15"
    assert drawn["places"][11] == "dp_shard 1, tp 3"
    long = _map(make_plan(TrainScenario(gpus=256, tp=8, seq_len=1024)), ["dp_shard"], 8)
    assert long["axes"][0]["members"][0].endswith("56, ... (32)")


@pytest.mark.parametrize(
    ("gpus", "per_host", "hosts", "columns"),
    [(512, 8, 64, 8), (4, 8, 1, 4), (144, 72, 2, 12), (16, None, 1, 8)],
)
def test_every_rank_is_on_its_host(
    gpus: int, per_host: int | None, hosts: int, columns: int
) -> None:
    drawn = _map(make_plan(TrainScenario(gpus=gpus, seq_len=1024)), ["dp_shard"], per_host)
    assert len(drawn["hosts"]) == hosts
    assert drawn["columns"] == columns
    assert [rank for host in drawn["hosts"] for rank in host["ranks"]] == list(range(gpus))
    assert drawn["hosts"][-1]["label"] == (f"host {hosts - 1}" if per_host else "")


def test_of_a_large_mesh_the_first_ranks_are_drawn() -> None:
    drawn = _map(make_plan(TrainScenario(gpus=4096, seq_len=1024)), ["dp_shard"], 8)
    assert (drawn["size"], drawn["shown"]) == (4096, MAX_RANKS)
    assert drawn["hosts"][-1]["ranks"][-1] == MAX_RANKS - 1
    (one,) = drawn["axes"]
    assert len(one["group"]) == MAX_RANKS
    assert one["members"] == ["0 to 4,095"]


def test_expert_groups_are_inside_the_shards() -> None:
    plan = make_plan(TrainScenario(model="mixtral-8x7b", gpus=16, ep=4, seq_len=1024))
    (one,) = _map(plan, ["ep"], 8)["axes"]
    assert one["group"] == [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]


def test_a_low_peak_has_the_height_of_the_chart_and_the_capacity_is_said() -> None:
    low = _train("sharded")
    gpu = low.scenario.gpu
    assert low.peak_memory_gib < load_gpu(gpu).memory_bytes / 2**30 / 2
    figure = memory_over_step(low, 0)
    assert figure.layout.yaxis.range[1] < 2 * low.memory[0].peak_bytes / 2**30
    assert any("far above" in note.text for note in figure.layout.annotations)
