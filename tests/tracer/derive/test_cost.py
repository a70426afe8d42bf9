"""The work of single operators against closed forms."""

from __future__ import annotations

import pytest
import torch

from tracer.derive.cost import runs_kernel, tensor_bytes, work_of

aten = torch.ops.aten


def work(func, *args, **kwargs):
    return work_of(func, args, kwargs, func(*args, **kwargs))


def meta(*shape, dtype=torch.float32):
    return torch.empty(*shape, dtype=dtype, device="meta")


def test_a_product_is_2mnk_and_reads_and_writes_each_matrix_once():
    found = work(aten.mm.default, meta(3, 5), meta(5, 7))
    assert (found.kind, found.flops, found.shape) == ("gemm", 2 * 3 * 5 * 7, (3, 7, 5))
    assert found.bytes == 4 * (3 * 5 + 5 * 7 + 3 * 7)


def test_a_batched_product_is_many():
    found = work(aten.bmm.default, meta(4, 3, 5), meta(4, 5, 7))
    assert found.flops == 4 * 2 * 3 * 7 * 5
    assert found.shape == (3, 7, 5)


@pytest.mark.parametrize(
    ("left", "right", "flops", "shape"),
    [
        ((96, 16), (4, 16, 32), 2 * 96 * 16 * 32, (24, 32, 16)),  # tokens in four groups
        ((16, 96), (96, 32), 2 * 16 * 96 * 32, (16, 32, 24)),  # their weights' gradients
        ((4, 16, 32), (32, 96), 2 * 16 * 32 * 96, (16, 24, 32)),
        ((4, 8, 16), (4, 16, 32), 2 * 4 * 8 * 16 * 32, (8, 32, 16)),
    ],
)
def test_grouped_products_are_products(left, right, flops, shape):
    left, right = (meta(*size, dtype=torch.bfloat16) for size in (left, right))
    offsets = torch.empty(4, dtype=torch.int32, device="meta")
    groups = None if left.dim() == right.dim() == 3 else offsets
    found = work(aten._grouped_mm.default, left, right, groups)
    assert (found.kind, found.dtype, found.flops, found.shape) == ("gemm", "bf16", flops, shape)


@pytest.mark.parametrize(("groups", "stride"), [(1, 1), (1, 2), (4, 1)])
def test_a_convolution_is_an_implicit_product(groups, stride):
    x, weight = meta(2, 8, 16, 16), meta(12, 8 // groups, 3, 3)
    found = work(
        aten.convolution.default, x, weight, None, [stride] * 2, [1, 1], [1, 1], False, [0, 0],
        groups,
    )  # fmt: skip
    m, n, k = 2 * (16 // stride) ** 2, 12, 8 // groups * 9
    assert (found.kind, found.dtype, found.shape) == ("conv", "tf32", (m, n, k))
    assert found.flops == 2 * m * n * k


@pytest.mark.parametrize("wanted", [[True, True, True], [False, True, False]])
def test_a_convolutions_backward_is_a_kernel_for_each_gradient(wanted):
    grad, x, weight = meta(2, 12, 8, 8), meta(2, 8, 16, 16), meta(12, 8, 3, 3)
    found = work(
        aten.convolution_backward.default, grad, x, weight, [12], [2, 2], [1, 1], [1, 1], False,
        [0, 0], 1, wanted,
    )  # fmt: skip
    one = 2 * (2 * 8 * 8) * 12 * 8 * 9
    assert [part.flops for part in found.parts if part.kind == "conv"] == [one] * sum(wanted[:2])
    assert len(found.parts) == sum(wanted)
    for part in found.parts:
        if part.shape:
            m, n, k = part.shape
            assert 2 * m * n * k == pytest.approx(one)


@pytest.mark.parametrize(("causal", "share"), [(False, 1.0), (True, 0.5)])
def test_attention_is_two_products_forward_and_five_backward(causal, share):
    query, key = meta(2, 8, 64, 32), meta(2, 2, 64, 32)
    pairs = 2 * 8 * 64 * 64 * share
    flash = aten._scaled_dot_product_flash_attention_for_cpu
    found = work(flash.default, query, key, key, 0.0, causal)
    assert (found.kind, found.flops) == ("attention", pairs * 4 * 32)
    backward = aten._scaled_dot_product_flash_attention_for_cpu_backward.default
    args = (query, query, key, key, query, meta(2, 8, 64), 0.0, causal)
    assert work(backward, *args).flops == pairs * 10 * 32


def test_elementwise_operators_move_each_operand_once():
    found = work(aten.add.Tensor, meta(8, 16), meta(16))
    assert (found.kind, found.flops) == ("elementwise", 128)
    assert found.bytes == 4 * (128 + 16 + 128)


def test_a_broadcast_operand_is_read_once():
    assert tensor_bytes(meta(1, 16).expand(8, 16)) == 4 * 16


def test_in_place_operators_read_and_write_unless_they_overwrite():
    assert work(aten.add_.Tensor, meta(16), meta(16)).bytes == 3 * 64
    assert work(aten.copy_.default, meta(16), meta(16)).bytes == 2 * 64
    assert work(aten.zero_.default, meta(16)).bytes == 64


def test_an_embedding_moves_the_rows_that_it_looks_up():
    indices = meta(4, dtype=torch.int64)
    found = work(aten.embedding.default, meta(1000, 16), indices)
    assert found.bytes == 4 * 8 + 2 * 4 * 16 * 4
    backward = aten.embedding_dense_backward.default
    moved = work(backward, meta(4, 16), indices, 1000, -1, False).bytes
    assert moved >= 1000 * 16 * 4  # the gradient of the whole table is written


@pytest.mark.parametrize(
    ("tensors", "numel", "launches"), [(2, 10, 1), (200, 10, 4), (1, 65536 * 641, 3)]
)
def test_foreach_operators_are_cut_into_launches(tensors, numel, launches):
    values = [meta(numel) for _ in range(tensors)]
    others = [meta(numel) for _ in range(tensors)]
    found = work(aten._foreach_add_.List, values, others)
    assert (found.kind, found.kernels) == ("optimizer", launches)
    assert found.bytes == 3 * 4 * numel * tensors


@pytest.mark.parametrize(
    "func", [aten.view.default, aten.t.default, aten.detach.default, aten.empty.memory_format]
)
def test_views_and_fresh_memory_run_no_kernel(func):
    assert not runs_kernel(func)
    assert runs_kernel(aten.clone.default)
