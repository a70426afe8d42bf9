"""Shapes, offsets and index ranges: SEMINAR's questions, then torch itself."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triosim.errors import ConfigError
from triosim.mesh import (
    DeviceMesh,
    Partial,
    Replicate,
    Shard,
    StridedShard,
    blocks,
    local_shape_and_offset,
    local_shapes,
    parse_placements,
)


def test_uneven_shards_leave_some_ranks_with_nothing():
    # Question M1 of the seminar.
    mesh = DeviceMesh((3, 10), ("a", "b"))
    placements = (Shard(0), Shard(1))
    assert local_shape_and_offset((10, 7), mesh, placements, (2, 8)) == ((2, 0), (8, 7))
    held = local_shapes((10, 7), mesh, placements).prod(axis=-1)
    assert (held == 0).sum() == 9
    assert held.sum() == 70


def test_rows_of_a_strided_shard():
    # Question M3: FSDP2 2 x TP 2 of an 8-row column-parallel weight.
    mesh = DeviceMesh((2, 2), ("dp_shard", "tp"))
    strided = blocks((8, 6), mesh, parse_placements("_S(0,2), S(0)"))
    assert strided[1] == (((4, 6),), ((0, 6),))
    assert blocks((8, 6), mesh, parse_placements("S(0), S(0)"))[1] == (((2, 4),), ((0, 6),))


def test_a_strided_shard_alone_has_gaps():
    # chunk(9, 2) = 0:5 and 5:9; chunks of those over 4 ranks: 2, 2, 1, 0 and 1, 1, 1, 1 rows.
    held = blocks((9,), DeviceMesh((4,), ("a",)), (StridedShard(0, 2),))
    assert [held[rank][0] for rank in range(4)] == [
        ((0, 2), (5, 6)), ((2, 4), (6, 7)), ((4, 5), (7, 8)), ((8, 9),),
    ]  # fmt: skip


def test_nothing_and_numbers():
    mesh = DeviceMesh((2,), ("a",))
    assert blocks((), mesh, (Replicate(),)) == {0: (), 1: ()}
    assert blocks((0, 3), mesh, (Shard(0),))[1] == ((), ((0, 3),))
    assert local_shape_and_offset((1,), mesh, (Shard(0),), (1,)) == ((0,), (1,))


@st.composite
def cases(draw):
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    mesh = DeviceMesh(sizes, tuple("abc"[: len(sizes)]))
    shape = tuple(draw(st.lists(st.integers(0, 20), min_size=1, max_size=3)))
    dims = st.integers(0, len(shape) - 1)
    word = st.one_of(
        st.builds(Shard, dims),
        st.builds(StridedShard, dims, st.integers(1, 4)),
        st.sampled_from((Replicate(), Partial())),
    )
    placements = tuple(draw(st.lists(word, min_size=len(sizes), max_size=len(sizes))))
    return mesh, shape, placements, draw(st.integers(0, mesh.size - 1))


@given(cases())
@settings(max_examples=150)
def test_shapes_and_offsets_are_those_of_torch(in_torch, case):
    mesh, shape, placements, rank = case
    coordinate = mesh.coordinates(rank)
    mine = local_shape_and_offset(shape, mesh, placements, coordinate)
    assert tuple(local_shapes(shape, mesh, placements)[tuple(coordinate)]) == mine[0]
    with in_torch(mesh, rank) as torch:
        assert torch.coordinate == tuple(coordinate)
        assert mine == torch.shape_and_offset(shape, placements)


@given(cases())
@settings(max_examples=100)
def test_every_rank_holds_what_distribute_tensor_gives_it(in_torch, case):
    mesh, shape, placements, rank = case
    if any(isinstance(placement, Partial) for placement in placements):
        placements = tuple(Replicate() if isinstance(p, Partial) else p for p in placements)
    held = blocks(shape, mesh, placements)[rank]
    indices = [[i for low, high in dim for i in range(low, high)] for dim in held]
    whole = np.arange(math.prod(shape)).reshape(shape)
    with in_torch(mesh, rank, device="cpu") as torch:
        import torch as library

        local = torch.distributed(library.from_numpy(whole), placements)
    assert np.array_equal(local.numpy(), whole[np.ix_(*indices)])


@given(cases())
def test_every_index_is_held_as_often_as_it_is_replicated(case):
    mesh, shape, placements, _ = case
    counted = np.zeros(shape, dtype=int)
    for held in blocks(shape, mesh, placements).values():
        for corner in product(*held):
            counted[tuple(slice(*interval) for interval in corner)] += 1
    copies = math.prod(
        size
        for size, placement in zip(mesh.shape, placements, strict=True)
        if not isinstance(placement, (Shard, StridedShard))
    )
    assert (counted == copies).all()


def test_a_coordinate_must_lie_in_the_mesh():
    mesh = DeviceMesh((2, 2), ("a", "b"))
    for coordinate in ((2, 0), (0,), (0, -1)):
        with pytest.raises(ConfigError, match="coordinate"):
            local_shape_and_offset((4,), mesh, (Shard(0), Replicate()), coordinate)
