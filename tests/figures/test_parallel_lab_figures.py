"""Figures of the labs on meshes, layers, long context and published runs."""

from __future__ import annotations

import pytest

from triosim.figures import Style
from triosim.figures.lab_context import causal_map, ways_by_degree, work_bars
from triosim.figures.lab_heads import heads_by_rank
from triosim.figures.lab_layers import layer_lanes, stacked_times
from triosim.figures.lab_mesh import MAX_DRAWN, mesh_shards, ranges_text
from triosim.figures.lab_published import RunRow, beside_published
from triosim.lab.causal import owners
from triosim.lab.layer_run import LayerRun
from triosim.mesh import DeviceMesh, Partial, Replicate, Shard, StridedShard

DARK = Style(dark=True, font_size=20)


def coloured(figure) -> list:
    """The traces of what ranks hold."""
    return [trace for trace in figure.data if trace.fill == "toself"][1:]


def boxes(trace) -> int:
    return sum(value is None for value in trace.x)


def test_ranks_that_hold_the_same_have_one_colour() -> None:
    mesh = DeviceMesh((2, 4), ("a", "b"))
    figure = mesh_shards(mesh, (8, 8), (Replicate(), Shard(0)), style=DARK)
    assert [boxes(trace) for trace in coloured(figure)] == [2, 2, 2, 2]
    assert len({trace.fillcolor for trace in coloured(figure)}) == 4


def test_a_strided_shard_has_several_boxes_and_an_empty_one_none() -> None:
    mesh = DeviceMesh((2,), ("a",))
    figure = mesh_shards(mesh, (8, 2), (StridedShard(0, 2),))
    assert [boxes(trace) for trace in coloured(figure)] == [2, 2]
    figure = mesh_shards(DeviceMesh((4,), ("a",)), (3, 2), (Shard(0),))
    assert sum(boxes(trace) for trace in coloured(figure)) == 3


def test_areas_are_the_shares_that_ranks_hold() -> None:
    mesh = DeviceMesh((2, 2), ("a", "b"))
    figure = mesh_shards(mesh, (6, 4), (Shard(0), Shard(1)))
    whole = figure.data[0]
    full = (whole.x[1] - whole.x[0]) * (whole.y[2] - whole.y[1])
    for trace in coloured(figure):
        area = (trace.x[1] - trace.x[0]) * (trace.y[2] - trace.y[1])
        assert area == pytest.approx(full / 4)


def test_pending_sums_are_hatched_and_have_a_legend() -> None:
    mesh = DeviceMesh((4,), ("a",))
    plain, summed = (mesh_shards(mesh, (4, 4), (p,)) for p in (Replicate(), Partial()))
    assert not plain.layout.showlegend
    assert summed.layout.showlegend
    assert coloured(plain)[0].fillpattern.shape is None
    assert coloured(summed)[0].fillpattern.shape == "/"


def test_of_a_large_mesh_the_first_ranks_are_drawn() -> None:
    figure = mesh_shards(DeviceMesh((16, 16, 8), ("a", "b", "c")), (64, 64), (Shard(0),) * 3)
    assert len(figure.data[-1].text) == MAX_DRAWN
    assert figure.layout.height <= 1000
    assert len(figure.to_json()) < 1_500_000


def test_a_third_dim_is_a_strip() -> None:
    mesh = DeviceMesh((2,), ("a",))
    figure = mesh_shards(mesh, (4, 4, 8), (Shard(2),))
    assert [boxes(trace) for trace in coloured(figure)] == [2, 2]


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ((((0, 2), (4, 6)), ((0, 7),)), "0:2 + 4:6, 0:7"),
        ((((0, 2),), ()), "nothing"),
        ((), ""),
    ],
)
def test_ranges_are_written_as_slices(block, text) -> None:
    assert ranges_text(block) == text


RUN = LayerRun(
    passes=("forward", "backward"), seconds=(0.002, 0.004), exposed_s=(0.001, 0.0),
    sent_bytes=(1e6, 1e6), kept_bytes=10,
    rows=(
        ("compute", "a", "forward", 0.0, 1.0), ("tensor parallel", "b", "all-reduce", 1.0, 2.0),
        ("compute", "c", "backward", 2.0, 6.0),
    ),
)  # fmt: skip


def test_kernels_lie_above_transfers() -> None:
    figure = layer_lanes({"one": RUN, "<two>": RUN}, style=DARK)
    lanes = {trace.name: list(trace.y) for trace in figure.data}
    assert lanes["forward"] == lanes["backward"] == [0, 1]
    assert all(0 < y - n < 1 for n, y in enumerate(lanes["all-reduce"]))
    assert figure.layout.yaxis.ticktext == ("one", "&lt;two&gt;")
    assert [note.text for note in figure.layout.annotations] == ["<b>6 ms</b>"] * 2
    assert figure.layout.xaxis.range[1] > 6


def test_stacked_times_sum_and_mark_the_next_host() -> None:
    figure = stacked_times(["1", "8", "16"], [4, 2, 1], [0, 1, 1], "t", crossing=2)
    assert [list(trace.y) for trace in figure.data] == [[4, 2, 1], [0, 1, 1]]
    assert figure.layout.shapes[0].x0 == 1.5
    texts = [note.text for note in figure.layout.annotations]
    assert texts == ["<b>4</b>", "<b>3</b>", "<b>2</b>", "more than one host"]


def test_query_heads_have_the_colour_of_their_kv_head() -> None:
    figure = heads_by_rank(8, 2, 4)
    z, text = figure.data[0].z, figure.data[0].text
    assert [list(row) for row in z] == [[0, 0, 1, 1]] * 3
    assert list(text[0]) == ["q0", "q2", "q4", "q6"]
    assert list(text[2]) == ["<b>kv0</b>", "<b>kv0</b>", "<b>kv1</b>", "<b>kv1</b>"]
    assert len(heads_by_rank(8, 4, 2).data[0].z) == 4 + 2


def test_a_crossover_outside_is_not_drawn() -> None:
    inside, outside = (
        ways_by_degree((2, 4, 8), {"a": [1, 2, None]}, "MB", chosen=4, crossover=c)
        for c in (5.0, 9.0)
    )
    assert [shape.x0 for shape in inside.layout.shapes] == [4, 5]
    assert [shape.x0 for shape in outside.layout.shapes] == [4]


def test_only_earlier_keys_are_attended() -> None:
    figure = causal_map(owners(2, zigzag=True), "zig-zag", style=DARK)
    assert [list(row) for row in figure.data[0].z] == [
        [0, None, None, None], [1, 1, None, None], [1, 1, 1, None], [0, 0, 0, 0],
    ]  # fmt: skip
    bars = work_bars([0.5, 1.5], [1, 1])
    assert bars.layout.annotations[0].text == "<b>1.5\u00d7</b>"


def test_a_run_that_was_not_published_has_only_its_own_mark() -> None:
    rows = [RunRow(label="a", simulated=11, published=10, low=9, high=12),
            RunRow(label="b", simulated=5, low=4, high=6)]  # fmt: skip
    figure = beside_published(rows, "s")
    assert list(figure.data[0].x) == [10]
    assert list(figure.data[1].x) == [11, 5]
    assert list(figure.data[1].error_x.array) == [1, 1]
    texts = [note.text for note in figure.layout.annotations]
    assert texts == ["<b>11</b> (+10.0 %)", "<b>5</b>"]
