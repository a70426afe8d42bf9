"""Figures of the labs on FSDP, recomputation and compilation: what is drawn is what was found."""

from __future__ import annotations

import pytest

from triosim.compile import LaunchCosts
from triosim.figures import Style
from triosim.figures.lab_compile import REFUSED_COLOUR, TAKEN_COLOUR, fusion_graph, launch_lanes
from triosim.figures.lab_fsdp import gathered_over_step, pieces_by_rank
from triosim.figures.lab_recompute import bytes_by_mode, layers, speed_for_memory
from triosim.lab.fsdp_step import TOY, Gathered, flat_pieces
from triosim.lab.fusion_steps import CYCLE, greedy
from triosim.lab.launch_steps import EAGER, FUSED, REPLAYED, lane
from triosim.lab.recompute_step import Point

WORK = ((2e-6, 8e-6, 1e-6), (3e-6,))
COSTS = LaunchCosts(launch_s=5e-6, guard_s=4e-6, break_s=6e-6, replay_s=2e-6)


def test_launches_follow_each_other_and_gaps_fill_the_gpu() -> None:
    """By hand, fused: guard 0-4, launches to 9, 14, 19, break and guard to 29, launch to 34."""
    figure = launch_lanes([lane(FUSED, WORK, COSTS)])
    bars = {
        trace.meta: sorted(
            (y, round(a, 6), round(a + d, 6))
            for y, a, d in zip(trace.y, trace.base, trace.x, strict=True)
        )
        for trace in figure.data
    }
    cpu, gpu = f"{FUSED}, CPU", f"{FUSED}, GPU"
    assert bars["guards and breaks"] == [(cpu, 0, 4), (cpu, 19, 29)]
    assert bars["launch"] == [(cpu, 4, 9), (cpu, 9, 14), (cpu, 14, 19), (cpu, 29, 34)]
    assert bars["kernel"] == [(gpu, 9, 11), (gpu, 14, 22), (gpu, 22, 23), (gpu, 34, 37)]
    assert bars["waits for a launch"] == [(gpu, 0, 9), (gpu, 11, 14), (gpu, 23, 34)]


def test_each_way_has_its_step_written_beside_it() -> None:
    figure = launch_lanes([lane(name, WORK, COSTS) for name in (EAGER, FUSED, REPLAYED)])
    # Eager: four launches to 20, then 3 of the last kernel. Replayed: one launch to 6 and 11
    # of work, meanwhile break and guard to 16, a launch to 18, and 3 of work.
    texts = [note.text for note in figure.layout.annotations]
    assert texts == ["<b>23</b>", "<b>37</b>", "<b>21</b>"]


@pytest.mark.parametrize(
    ("number", "name", "colour"), [(1, "taken", TAKEN_COLOUR), (2, "refused", REFUSED_COLOUR)]
)
def test_the_pair_is_an_arc_below(number: int, name: str, colour: str) -> None:
    found = greedy(CYCLE)
    figure = fusion_graph(found, found.step(number))
    arc = next(trace for trace in figure.data if trace.name == name)
    assert arc.line.color == colour
    assert all(y <= 1e-9 for y in arc.y if y is not None)
    nodes = sorted(x for trace in figure.data if "markers" in trace.mode for x in trace.x)
    assert nodes == list(range(6))
    joined = next(trace for trace in figure.data if trace.name == "kernel 1")
    assert list(joined.x) == [1, 4]


def test_before_the_first_pair_there_is_no_arc_below() -> None:
    found = greedy(CYCLE)
    names = {trace.name for trace in fusion_graph(found, found.step(0)).data}
    assert names == {"reads from", "library call", "a kernel of its own"}


def test_padding_is_hatched_and_ranks_add_up() -> None:
    figure = pieces_by_rank(flat_pieces(TOY, 4), list(TOY), 2, all_ranks=4)
    assert sum(sum(trace.x) for trace in figure.data) == 2 * 11
    assert "first 2 of 4 GPUs" in figure.layout.xaxis.title.text
    whole = pieces_by_rank(flat_pieces(TOY, 4), list(TOY), 4, all_ranks=4)
    padding = next(trace for trace in whole.data if trace.name == "padding")
    assert padding.marker.pattern.shape == "/"


def test_gathered_curves_end_with_the_step_and_say_their_peak() -> None:
    curve = Gathered(name="A", time_ms=(0.0, 2.0), gib=(1.0, 3.0), peak_gib=3.0, step_ms=5.0)
    (trace,) = gathered_over_step([curve]).data
    assert (trace.x[-1], trace.y[-1], trace.name) == (5.0, 3.0, "A: 3 GiB")


def test_modes_have_their_share_of_the_first() -> None:
    figure = bytes_by_mode({"nothing": 2.0, "full": 0.5}, "full")
    assert [note.text for note in figure.layout.annotations] == ["<b>2</b>", "<b>0.5</b> (25.0 %)"]
    assert list(figure.data[0].y) == ["nothing", "<b>full</b>"]


def test_layers_that_run_again_are_those_that_keep_less() -> None:
    kept, again = layers([0.1, 2.0, 0.1, 2.0]).data
    assert (list(kept.x), list(again.x)) == ([1, 3], [0, 2])
    assert len(layers([2.0, 2.0]).data) == 1


def test_what_does_not_fit_is_hollow() -> None:
    points = [
        Point(mode="full", batch=b, shards=8, peak_gib=50.0 * b, tokens_per_s=100.0, fits=b == 1)
        for b in (1, 2)
    ]
    (trace,) = speed_for_memory(points, "full", 80.0, "batch", style=Style(dark=True)).data
    assert list(trace.marker.symbol) == ["circle", "circle-open"]
    assert list(trace.text) == ["1", "2"]
