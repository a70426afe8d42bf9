"""The seminar's five presets."""

import pytest

from triosim.errors import ConfigError
from triosim.mesh import PRESETS, local_shapes, preset


def sent(name):
    return [(step.operation, step.axis, step.array_bytes) for _, step in preset(name).collectives()]


def test_names():
    assert [found.name for found in PRESETS] == [
        "column-linear", "row-linear", "sequence-parallel", "hsdp", "fsdp2-tp",
    ]  # fmt: skip
    with pytest.raises(ConfigError, match="preset ddp: must be one of column-linear, row-linear"):
        preset("ddp")


def test_linear_layers_send_one_sum_each():
    activation = 16 * 8 * 2
    assert sent("column-linear") == [("all-reduce", "tp", activation)]
    assert sent("row-linear") == [("all-reduce", "tp", activation)]


def test_sequence_parallel_sends_as_many_bytes_as_the_all_reduces():
    steps = [step for event, step in preset("sequence-parallel").collectives()]
    linear = [step for name in ("column-linear", "row-linear") for step in linear_steps(name)]
    assert sum(step.sent_bytes for step in steps[:4]) == sum(step.sent_bytes for step in linear)


def linear_steps(name):
    return [step for _, step in preset(name).collectives()]


def test_hsdp_reduces_inside_the_group_first():
    whole = 32 * 8 * 2
    assert sent("hsdp") == [
        ("all-gather", "dp_shard", whole),
        ("all-gather", "dp_shard", whole),
        ("reduce-scatter", "dp_shard", whole),
        ("all-reduce", "dp_replicate", whole // 4),
    ]


def test_fsdp2_with_tensor_parallelism():
    found = preset("fsdp2-tp")
    half = 4 * 6 * 2
    assert sent("fsdp2-tp") == [
        ("all-gather", "dp_shard", half),
        ("all-gather", "dp_shard", half),
        ("reduce-scatter", "dp_shard", half),
    ]
    weight, _, plain = found.tensors
    # Question M3.
    assert weight.blocks(found.mesh)[1][0] == ((4, 6),)
    assert plain.blocks(found.mesh)[1][0] == ((2, 4),)


@pytest.mark.parametrize("found", PRESETS, ids=lambda found: found.name)
def test_every_tensor_fits_its_mesh(found):
    for tensor in found.tensors:
        assert (local_shapes(tensor.shape, found.mesh, tensor.placements) > 0).all()
