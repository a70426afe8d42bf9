"""Words for who holds what."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triosim.errors import ConfigError
from triosim.mesh import (
    DeviceMesh,
    Partial,
    Replicate,
    Shard,
    StridedShard,
    check_placements,
    format_placements,
    fully_shard,
    parse_placement,
    parse_placements,
)
from triosim.mesh.placements import REDUCTIONS

MESH = DeviceMesh((2, 2), ("dp", "tp"))
WORDS = st.one_of(
    st.just(Replicate()),
    st.builds(Partial, st.sampled_from(REDUCTIONS)),
    st.builds(Shard, st.integers(-3, 9)),
    st.builds(StridedShard, st.integers(-3, 9), st.integers(1, 99)),
)


@given(st.lists(WORDS, min_size=1, max_size=4))
def test_what_is_written_is_read(placements):
    assert parse_placements(format_placements(placements)) == tuple(placements)


@given(st.lists(WORDS, min_size=1, max_size=4))
def test_what_torch_writes_is_read(in_torch, placements):
    from tests.mesh.torch_dtensor import theirs

    made = theirs(placements)
    assert parse_placements(", ".join(map(str, made))) == tuple(placements)
    assert parse_placements(str(made)) == tuple(placements)


@pytest.mark.parametrize("text", ["", "X", "S", "S(a)", "R(1)", "P(most)", "_S(0)", "_S(0,0)"])
def test_other_words_are_not(text):
    with pytest.raises(ConfigError):
        parse_placement(text)


def test_fsdp2_on_a_dim_that_tensor_parallelism_has_cut_is_strided():
    assert fully_shard((Replicate(), Shard(0)), MESH, "dp") == (StridedShard(0, 2), Shard(0))
    assert fully_shard((Replicate(), Shard(1)), MESH, "dp") == (Shard(0), Shard(1))
    with pytest.raises(ConfigError, match="axis tp: is taken: S"):
        fully_shard((Replicate(), Shard(0)), MESH, "tp")


def test_dims_are_counted_from_the_end_too():
    checked = check_placements((Shard(-1), StridedShard(-2, 2)), MESH, 2)
    assert checked == (Shard(1), StridedShard(0, 2))


@pytest.mark.parametrize(
    ("text", "ndim", "sentence"),
    [
        ("R", 2, "must be one for each axis of dp, tp"),
        ("R, S(2)", 2, "dims of this tensor are 0 to 1"),
        ("R, S(0)", 0, "a number has no dims"),
        ("P, P(max)", 2, "pending reductions must be of one kind"),
    ],
)
def test_placements_must_fit_mesh_and_tensor(text, ndim, sentence):
    with pytest.raises(ConfigError, match=sentence):
        check_placements(parse_placements(text), MESH, ndim)
