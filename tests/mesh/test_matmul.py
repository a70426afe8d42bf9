"""Layouts of matrix products."""

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
    blocks,
    format_placements,
    matmul_plan,
    matmul_strategies,
    parse_placements,
)

GPUS_PER_HOST = 4  # as tests/mesh/torch_dtensor.py tells torch
WORDS = (Replicate(), Shard(0), Shard(1), Partial(), Partial("avg"))


@pytest.mark.parametrize(
    ("a", "b", "out"),
    [
        ("R", "R", "R"),
        ("S(0)", "R", "S(0)"),
        ("R", "S(1)", "S(1)"),
        ("S(1)", "S(0)", "P"),  # question M2: nothing sent
        ("P", "R", "P"),
        ("R", "P(avg)", "P(avg)"),
    ],
)
def test_layouts_that_need_no_communication(a, b, out):
    plan = matmul_plan(
        (16, 24), (24, 32), DeviceMesh((4,), ("tp",)), parse_placements(a), parse_placements(b)
    )
    assert plan.direct
    assert format_placements(plan.out) == out


@pytest.mark.parametrize("rule", matmul_strategies((6, 4), (4, 8), 2), ids=lambda rule: rule.why)
def test_what_ranks_compute_is_the_product(rule):
    """Each rank multiplies its blocks; put together as `out` says, they are A @ B."""
    mesh, shapes = DeviceMesh((2,), ("a",)), {"a": (6, 4), "b": (4, 8)}
    random = np.random.default_rng(0)
    whole = {name: random.random(shape) for name, shape in shapes.items()}
    result = np.zeros((6, 8))
    for rank in range(2):
        local = {}
        for name, placement in (("a", rule.a), ("b", rule.b)):
            held = blocks(shapes[name], mesh, (placement,))[rank]
            part = whole[name][tuple(slice(*dim[0]) for dim in held)]
            # An addend: a third on rank 0, the rest on rank 1 (twice that for an average).
            if isinstance(placement, Partial):
                share = (1 / 3, 2 / 3)[rank] * (2 if placement.op == "avg" else 1)
                part = part * share
            local[name] = part
        place = tuple(slice(*dim[0]) for dim in blocks((6, 8), mesh, (rule.out,))[rank])
        product = local["a"] @ local["b"]
        if isinstance(rule.out, Partial):
            result += product / (2 if rule.out.op == "avg" else 1)
        else:
            result[place] = product
    assert result == pytest.approx(whole["a"] @ whole["b"])


def test_a_short_dim_cannot_be_sharded():
    # m = 3 is too short for 4 ranks, k = 4 and n = 8 are not.
    rules = matmul_strategies((3, 4), (4, 8), 4)
    assert [str(rule.out) for rule in rules][:3] == ["R", "P", "S(1)"]
    assert all(rule.a != Shard(0) for rule in rules)


def test_a_column_parallel_then_a_row_parallel_layer_send_one_sum():
    mesh = DeviceMesh((4,), ("tp",))
    first = matmul_plan((16, 8), (8, 32), mesh, (Replicate(),), (Shard(1),))
    second = matmul_plan((16, 32), (32, 8), mesh, first.out, (Shard(0),))
    assert first.direct
    assert second.direct
    assert second.out == (Partial(),)


def test_other_layouts_are_changed_first():
    mesh = DeviceMesh((4,), ("tp",))
    plan = matmul_plan((16, 4096), (4096, 4096), mesh, (Shard(0),), (Shard(1),))
    # A is small: gather it and keep the columns of B.
    assert [step.operation for step in plan.a_steps] == ["all-gather"]
    assert plan.b_steps == ()
    assert plan.out == (Shard(1),)


@st.composite
def products(draw):
    sizes = draw(st.sampled_from([(4,), (2, 2), (4, 2)]))
    mesh = DeviceMesh(sizes, tuple("ab"[: len(sizes)]))
    side = st.tuples(*[st.sampled_from(WORDS)] * mesh.ndim)
    m, k, n = draw(st.tuples(*[st.sampled_from((3, 16, 27, 4096))] * 3))
    return mesh, ((m, k), (k, n)), (draw(side), draw(side))


@given(products())
@settings(max_examples=80)
def test_outputs_and_redistributions_are_those_of_torch(in_torch, case):
    mesh, shapes, sides = case
    plan = matmul_plan(*shapes, mesh, *sides, element_bytes=4, gpus_per_host=GPUS_PER_HOST)
    steps = [step for step in (*plan.a_steps, *plan.b_steps) if step.sends]
    with in_torch(mesh) as torch:
        out, seen = torch.matmul(shapes, sides)
    assert plan.out == out
    assert [(step.operation, step.axis, step.array_bytes // 4) for step in steps] == seen


@pytest.mark.parametrize("b", ["R, R", "S(1), R", "R, S(1)"])
@pytest.mark.parametrize("a", ["_S(0,2), R", "R, _S(0,2)", "_S(0,2), S(0)"])
def test_strided_shards_too(in_torch, a, b):
    mesh, shapes = DeviceMesh((2, 2), ("a", "b")), ((16, 8), (8, 32))
    sides = (parse_placements(a), parse_placements(b))
    plan = matmul_plan(*shapes, mesh, *sides, element_bytes=4, gpus_per_host=GPUS_PER_HOST)
    with in_torch(mesh) as torch:
        out, _ = torch.matmul(shapes, sides)
    assert plan.out == out


def test_shapes_must_match():
    with pytest.raises(ConfigError, match=r"b_shape \(5, 6\): must be \(k, n\)"):
        matmul_strategies((3, 4), (5, 6), 2)
