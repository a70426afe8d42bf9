"""Collectives of a redistribution: the seminar's bytes, then torch's own plans."""

from itertools import product

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from triosim.errors import ConfigError
from triosim.mesh import (
    DeviceMesh,
    Partial,
    Replicate,
    Shard,
    StridedShard,
    format_placements,
    parse_placements,
    redistribute,
)
from triosim.network.closed_forms import bus_factor

GPUS_PER_HOST = 4  # as tests/mesh/torch_dtensor.py tells torch
WORDS = (Replicate(), Partial(), Shard(0), Shard(1))


def steps(shape, mesh, source, target, **settings):
    sides = (parse_placements(source), parse_placements(target))
    return redistribute(shape, 1, mesh, *sides, **settings)


@pytest.mark.parametrize(
    ("target", "operation", "ms"),
    [("S(0)", "reduce-scatter", 8.75), ("R", "all-reduce", 17.5)],
)
def test_seconds_of_a_pending_sum(target, operation, ms):
    # Question M2: 1 GB over 8 ranks at 100 GB/s.
    (step,) = steps((10**9,), DeviceMesh((8,), ("tp",)), "P", target)
    assert (step.operation, step.array_bytes, step.padding_bytes) == (operation, 10**9, 0)
    assert step.sent_bytes / 100e9 * 1e3 == pytest.approx(ms, rel=1e-12)
    assert step.sent_bytes == bus_factor(8, operation) * step.array_bytes


@pytest.mark.parametrize(
    ("source", "target", "operation", "array", "padding"),
    [
        # 7 x 5 over 4 ranks: chunks of 2 rows or 2 columns, so 8 x 5 or 7 x 8 with padding.
        ("S(0)", "R", "all-gather", 40, 5),
        ("P", "S(0)", "reduce-scatter", 40, 5),
        ("P", "S(1)", "reduce-scatter", 56, 21),
        ("P", "R", "all-reduce", 35, 0),
        ("S(0)", "S(1)", "all-to-all", 16, 6),
        ("R", "S(0)", "local slice", 0, 0),
        ("R", "P", "local division", 0, 0),
    ],
)
def test_uneven_shards_are_padded(source, target, operation, array, padding):
    (step,) = steps((7, 5), DeviceMesh((4,), ("a",)), source, target)
    assert step.operation == operation
    assert (step.array_bytes, step.padding_bytes) == (array, padding)
    assert (format_placements([step.before]), format_placements([step.after])) == (source, target)
    assert step.sends == (array > 0)


def test_the_last_rank_sends_more_padding():
    mesh = DeviceMesh((4,), ("a",))
    (step,) = steps((7, 5), mesh, "S(0)", "S(1)", coordinate=(3,))
    assert (step.array_bytes, step.padding_bytes) == (16, 11)


def test_fsdp2_with_tensor_parallelism_gathers_only_its_own_axis():
    mesh = DeviceMesh((2, 2), ("dp_shard", "tp"))
    (step,) = steps((8, 6), mesh, "_S(0,2), S(0)", "R, S(0)")
    assert (step.operation, step.axis, step.array_bytes) == ("all-gather", "dp_shard", 24)
    # Plain shards cut dp_shard first, so that tp has to be put together before it.
    plain = steps((8, 6), mesh, "S(0), S(0)", "R, S(0)")
    assert [step.axis for step in plain] == ["tp", "dp_shard", "tp"]
    assert [step.operation for step in plain] == ["all-gather", "all-gather", "local slice"]
    assert format_placements(plain[1].placements) == "R, R"


def test_nothing_happens_without_a_change_or_on_one_rank():
    mesh = DeviceMesh((2, 1), ("a", "b"))
    assert steps((8,), mesh, "S(0), R", "S(0), R") == ()
    assert steps((8,), mesh, "R, P", "R, S(0)") == ()
    assert steps((8,), mesh, "_S(0,1), R", "S(0), R") == ()


def test_a_strided_shard_on_one_axis_goes_through_a_whole():
    mesh = DeviceMesh((4,), ("a",))
    both = steps((16,), mesh, "_S(0,2)", "S(0)")
    assert [step.operation for step in both] == ["all-gather", "local slice"]
    assert [step.operation for step in steps((16,), mesh, "P", "_S(0,2)")] == [
        "all-reduce", "local slice",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "source", "target", "sentence"),
    [
        ((8,), "S(0), R", "P, R", "torch has no way to P on axis a"),
        ((8,), "P, R", "P(max), R", "torch has no way to P.max. on axis a"),
        ((8,), "R, R", "P(product), R", "torch has no way to P.product. on axis a"),
        ((8,), "_S(0,3), S(0)", "R, R", "on axis a the split factor can be 1, 4 here"),
        ((8,), "R", "R, R", "one for each axis"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(shape, source, target, sentence):
    with pytest.raises(ConfigError, match=sentence):
        steps(shape, DeviceMesh((2, 4), ("a", "b")), source, target)


def test_very_uneven_strided_shards_cannot_be_redistributed():
    # 9 rows, tp 2 first: 0:5 and 5:9. The last of 4 chunks of those: none and row 8, so row 8 is
    # on tp rank 1. Read from left to right, S(0) cuts the one row that _S(0,2) has left: tp rank 0.
    mesh = DeviceMesh((4, 2), ("dp_shard", "tp"))
    with pytest.raises(ConfigError, match=r"dim 0 is too uneven .* nearest: 8 or 16"):
        steps((9,), mesh, "_S(0,2), S(0)", "R, R")
    assert len(steps((16,), mesh, "_S(0,2), S(0)", "R, R")) == 2


def compare(torch, shape, source, target):
    """Our plan and torch's: collectives in order with axis and elements, or both refuse."""
    mesh, coordinate = torch.mesh, torch.coordinate
    try:
        mine = redistribute(
            shape, 4, mesh, source, target, coordinate=coordinate, gpus_per_host=GPUS_PER_HOST
        )
    except ConfigError:
        with pytest.raises((RuntimeError, AssertionError, ValueError)):
            torch.redistribute(shape, source, target)
        return
    seen, counted, local = torch.redistribute(shape, source, target)
    sent = [(step.operation, step.axis, step.array_bytes // 4) for step in mine if step.sends]
    assert sent == seen
    assert counted == len(sent)
    assert local == torch.shape_and_offset(shape, target)[0]


@pytest.mark.parametrize("shape", [(8, 16), (7, 5), (3, 2)])
@pytest.mark.parametrize("rank", [0, 2, 3])
def test_all_pairs_on_one_axis_are_those_of_torch(in_torch, rank, shape):
    words = (*WORDS, Partial("max"), Partial("avg"), StridedShard(0, 2), StridedShard(1, 3))
    with in_torch(DeviceMesh((4,), ("a",)), rank) as torch:
        for source, target in product(words, words):
            compare(torch, shape, (source,), (target,))


@pytest.mark.parametrize("shape", [(8, 24), (7, 5)])
@pytest.mark.parametrize("rank", [0, 5])
def test_all_pairs_on_two_axes_are_those_of_torch(in_torch, rank, shape):
    layouts = list(product(WORDS, repeat=2))
    with in_torch(DeviceMesh((2, 3), ("a", "b")), rank) as torch:
        for source, target in product(layouts, layouts):
            compare(torch, shape, source, target)


@st.composite
def plain_cases(draw):
    sizes = draw(st.lists(st.integers(1, 3), min_size=2, max_size=3))
    mesh = DeviceMesh(sizes, tuple("abc"[: len(sizes)]))
    side = st.tuples(*[st.sampled_from(WORDS)] * len(sizes))
    shape = draw(st.tuples(st.integers(1, 12), st.integers(1, 12)))
    return mesh, draw(st.integers(0, mesh.size - 1)), shape, draw(side), draw(side)


@given(plain_cases())
@settings(max_examples=150)
def test_other_meshes_and_ranks_are_those_of_torch(in_torch, case):
    mesh, rank, *layouts = case
    with in_torch(mesh, rank) as torch:
        compare(torch, *layouts)


@st.composite
def strided_cases(draw):
    mesh = DeviceMesh(draw(st.sampled_from([(2, 2), (2, 4), (4, 2), (3, 2)])), ("a", "b"))
    dim = draw(st.integers(0, 1))
    strided = (StridedShard(dim, mesh.shape[1]), Shard(dim))
    side = st.tuples(st.sampled_from(WORDS), st.sampled_from(WORDS))
    sides = draw(st.permutations([strided, draw(side)]))
    shape = draw(st.tuples(st.sampled_from((24, 48, 7, 13)), st.sampled_from((24, 48, 11))))
    return mesh, draw(st.integers(0, mesh.size - 1)), shape, *sides


@given(strided_cases())
@settings(max_examples=150)
def test_strided_shards_go_the_way_of_torch(in_torch, case):
    mesh, rank, shape, source, target = case
    try:
        redistribute(shape, 4, mesh, source, target)
    except ConfigError as refused:
        # Torch does not check this.
        assume("too uneven" not in str(refused))
    with in_torch(mesh, rank) as torch:
        compare(torch, shape, source, target)
