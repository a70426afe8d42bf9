"""The work of operators: formulas by hand, and two networks from first principles."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest

from triosim.hardware import kind_of
from triosim.trace import Operator, Tensor, read_trace
from triosim.trace.cost import work_of
from triosim.trace.scale import works_of
from triosim.trace.sizes import Sizes

NODE = "autograd::engine::evaluate_function: "


def tensors(*shapes, size=4, first=1):
    return tuple(
        Tensor(id=i, storage=i, shape=shape, numel=prod(shape), element_bytes=size)
        for i, shape in enumerate(shapes, first)
    )


def operator(name, inputs, outputs, *, size=4, phase="forward", **more):
    return Operator(
        id=1,
        name=name,
        phase=phase,
        time_s=1e-3,
        inputs=tensors(*inputs, size=size),
        outputs=tensors(*outputs, size=size, first=100),
        **more,
    )


def parts(work, kind):
    return [part for part in work.parts if part.kind == kind]


# Matrix products: 2mnk operations

PRODUCTS = [
    ("aten::linear", [(8, 16), (32, 16), (32,)], (8, 32), (8, 32, 16), 1),
    ("aten::linear", [(4, 6, 16), (32, 16)], (4, 6, 32), (24, 32, 16), 1),
    ("aten::linear", [(8, 4, 2, 2), (32, 16)], (8, 32), (8, 32, 16), 1),
    ("aten::addmm", [(32,), (8, 16), (16, 32)], (8, 32), (8, 32, 16), 1),
    ("aten::mm", [(8, 16), (16, 32)], (8, 32), (8, 32, 16), 1),
    ("aten::bmm", [(5, 8, 16), (5, 16, 32)], (5, 8, 32), (8, 32, 16), 5),
    ("aten::matmul", [(2, 5, 8, 16), (2, 5, 16, 32)], (2, 5, 8, 32), (8, 32, 16), 10),
    ("aten::matmul", [(4, 6, 16), (16, 32)], (4, 6, 32), (24, 32, 16), 1),
    ("aten::baddbmm", [(5, 8, 32), (5, 8, 16), (5, 16, 32)], (5, 8, 32), (8, 32, 16), 5),
    ("aten::mv", [(8, 16), (16,)], (8,), (8, 1, 16), 1),
    ("aten::_grouped_mm", [(20, 16), (5, 16, 32), (5,)], (20, 32), (4, 32, 16), 5),
    ("aten::_grouped_mm", [(8, 20), (20, 32), (5,)], (5, 8, 32), (8, 32, 4), 5),
    ("aten::_grouped_mm", [(5, 8, 16), (16, 20), (5,)], (8, 20), (8, 4, 16), 5),
]


@pytest.mark.parametrize(("name", "inputs", "output", "shape", "count"), PRODUCTS)
def test_matrix_products(name, inputs, output, shape, count):
    work = work_of(operator(name, inputs, [output]))
    m, n, k = shape
    assert work.kind == "gemm"
    assert work.shape == shape
    assert work.flops == 2 * m * n * k * count
    assert work.bytes == 4 * count * (m * k + k * n + m * n)
    assert work.dtype == "fp32"


def test_both_gradients_of_a_linear_take_as_many_operations_as_it():
    """dX = dY W is (m, k, n), dW = dY^T X is (n, m, k) in size; the bias sums dY."""
    forward = operator("aten::linear", [(8, 16), (32, 16), (32,)], [(8, 32)])
    backward = operator(NODE + "AddmmBackward0", [(16, 32)], [(32, 16)], phase="backward")
    work = work_of(backward, partner=forward)
    assert work.flops == 2 * (2 * 8 * 32 * 16)
    assert {part.shape for part in parts(work, "gemm")} == {(8, 16, 32), (16, 32, 8)}
    (bias,) = parts(work, "reduction")
    assert bias.bytes == 8 * 32 * 4


def test_a_gradient_without_its_forward_operator_is_unknown():
    backward = operator(NODE + "AddmmBackward0", [(16, 32)], [(32, 16)], phase="backward")
    assert work_of(backward) is None


@pytest.mark.parametrize(
    ("size", "dtype", "computed"),
    [
        (4, "", "fp32"),
        (2, "", "bf16"),
        (2, "float16", "float16"),
        (1, "", "fp8"),
        (4, "tf32", "tf32"),
    ],
)
def test_the_type_is_the_column_s_else_by_the_size_of_elements(size, dtype, computed):
    op = operator("aten::mm", [(8, 16), (16, 32)], [(8, 32)], size=size, dtype=dtype)
    assert work_of(op).dtype == computed


@pytest.mark.parametrize(
    ("name", "inputs", "output"),
    [
        ("aten::linear", [(8, 16), (32, 17)], (8, 32)),
        ("aten::mm", [(8, 16), (17, 32)], (8, 32)),
        ("aten::mm", [(8, 16)], (8, 32)),
        ("aten::mm", [], (8, 32)),
        ("aten::linear", [(), ()], ()),
        ("aten::conv2d", [(8, 3, 8, 8)], (8, 4, 8, 8)),
        ("aten::conv2d", [(8, 3, 8, 8), (4, 2, 3, 3)], (8, 4, 8, 8)),
        ("aten::conv2d", [(1536,), (108,)], (2048,)),
        ("aten::scaled_dot_product_attention", [(8, 4)], (8, 4)),
        ("aten::something", [], None),
    ],
)
def test_tensors_that_do_not_tell(name, inputs, output):
    op = operator(name, inputs, [] if output is None else [output])
    assert work_of(op) is None
    columns = replace(op, flops=12.0, bytes=24.0)
    assert work_of(columns).flops == 12
    assert work_of(columns).bytes == 24
    assert work_of(columns, sizes=Sizes(2.0)).flops == 24


# Convolutions


def conv(inputs, output, name="aten::conv2d", **more):
    return operator(name, inputs, [output], **more)


def test_a_convolution_by_hand():
    """2 x 8 samples x 6 x 6 positions x 16 channels x (4 x 3 x 3) products, in TF32."""
    work = work_of(conv([(8, 4, 8, 8), (16, 4, 3, 3)], (8, 16, 6, 6)))
    assert work.flops == 2 * 8 * 36 * 16 * 36
    (main,) = parts(work, "conv")
    assert main.shape == (8 * 36, 16, 36)
    assert main.dtype == "tf32"
    assert main.bytes == 4 * (8 * 4 * 64 + 16 * 36 + 8 * 16 * 36)
    # NCHW to NHWC and back, each read and written.
    assert sum(part.bytes for part in parts(work, "copy")) == 2 * 4 * (8 * 4 * 64 + 8 * 16 * 36)


def test_a_bias_is_added_by_a_kernel_of_its_own():
    plain = work_of(conv([(8, 4, 8, 8), (16, 4, 3, 3)], (8, 16, 6, 6)))
    biased = work_of(conv([(8, 4, 8, 8), (16, 4, 3, 3), (16,)], (8, 16, 6, 6)))
    assert biased.bytes - plain.bytes == 2 * 4 * 8 * 16 * 36
    assert biased.flops == plain.flops


def test_groups_divide_the_operations():
    """A depthwise convolution: one input channel per output channel."""
    work = work_of(conv([(2, 32, 8, 8), (32, 1, 3, 3)], (2, 32, 8, 8)))
    assert work.flops == 2 * 2 * 64 * 32 * 9


def test_one_tap_on_aligned_rows_needs_no_layout_change():
    aligned = work_of(conv([(8, 64, 8, 8), (16, 64, 1, 1)], (8, 16, 8, 8)))
    odd = work_of(conv([(8, 64, 7, 7), (16, 64, 1, 1)], (8, 16, 7, 7)))
    strided = work_of(conv([(8, 64, 8, 8), (16, 64, 1, 1)], (8, 16, 4, 4)))
    assert [part.kind for part in aligned.parts] == ["conv_direct"]
    assert [part.kind for part in odd.parts] == ["conv", "copy", "copy"]
    assert [part.kind for part in strided.parts] == ["conv", "copy", "copy"]


def test_three_input_channels_run_in_float32():
    work = work_of(conv([(8, 3, 8, 8), (16, 3, 3, 3)], (8, 16, 6, 6)))
    assert [(part.kind, part.dtype) for part in work.parts] == [("gemm", "fp32")]


@pytest.mark.parametrize("size", [2, 4])
def test_gradients_of_a_convolution_take_twice_its_operations(size):
    forward = conv([(8, 4, 8, 8), (16, 4, 3, 3)], (8, 16, 8, 8), size=size)
    backward = operator(
        NODE + "ConvolutionBackward0",
        [(8, 16, 8, 8), (8, 4, 8, 8), (16, 4, 3, 3)],
        [(8, 4, 8, 8), (16, 4, 3, 3), (16,)],
        size=size,
        phase="backward",
    )
    work = work_of(backward)
    assert work.flops == 2 * work_of(forward).flops
    (bias,) = parts(work, "reduction")
    assert bias.bytes == 8 * 16 * 64 * size
    by_partner = replace(backward, inputs=backward.inputs[:1])
    assert work_of(by_partner, partner=forward) == work


def test_a_strided_convolution_s_gradients_too():
    forward = conv([(8, 4, 8, 8), (16, 4, 2, 2)], (8, 16, 4, 4))
    backward = operator(
        "aten::convolution_backward",
        [(8, 16, 4, 4), (8, 4, 8, 8), (16, 4, 2, 2)],
        [(8, 4, 8, 8), (16, 4, 2, 2)],
        phase="backward",
    )
    assert work_of(backward).flops == 2 * work_of(forward).flops


def test_the_first_layer_has_no_gradient_of_its_input():
    backward = operator(
        NODE + "ConvolutionBackward0",
        [(8, 16, 6, 6), (8, 3, 8, 8), (16, 3, 3, 3)],
        [(), (16, 3, 3, 3), (16,)],
        phase="backward",
    )
    assert work_of(backward).flops == 2 * 8 * 36 * 16 * 27


# Attention: two products forward, five backward


def test_attention():
    shapes = [(2, 4, 128, 64), (2, 4, 256, 64), (2, 4, 256, 64)]
    op = operator("aten::scaled_dot_product_attention", shapes, [shapes[0]], size=2)
    work = work_of(op)
    assert work.flops == 2 * (2 * (2 * 4) * 128 * 256 * 64)
    assert work.bytes == 2 * (2 * 4 * 64) * (128 + 256 + 256 + 128)
    backward = operator(
        NODE + "ScaledDotProductFlashAttentionBackward0", [shapes[0]], shapes, size=2
    )
    assert work_of(backward, partner=op).flops == 2.5 * work.flops
    # A causal mask halves the operations: the trace's own count wins.
    assert work_of(replace(op, flops=12345.0)).flops == 12345


# What moves


@pytest.mark.parametrize(
    ("name", "inputs", "outputs", "elements"),
    [
        ("aten::add", [(8, 16), (8, 16)], [(8, 16)], 3 * 128),
        ("aten::relu_", [(8, 16)], [], 2 * 128),
        ("aten::sum", [(8, 16)], [()], 128 + 1),
        (NODE + "ReluBackward0", [(8, 16), (8, 16)], [(8, 16)], 3 * 128),
        ("aten::_foreach_mul_", [(8, 16), (4,)], [], 2 * 132),
        ("aten::_foreach_sqrt", [(8, 16), (4,)], [(8, 16), (4,)], 2 * 132),
        ("aten::_foreach_lerp_", [(8, 16), (4,)] * 2, [], 3 * 132),
        ("aten::_foreach_addcmul_", [(8, 16), (4,)] * 3, [], 4 * 132),
        ("aten::_foreach_addcdiv_", [(8, 16), (4,)] * 3, [], 4 * 132),
        ("aten::_foreach_add_", [(8, 16), (4,)] * 2, [], 3 * 132),
        ("aten::_fused_adam_", [(8, 16)] * 4, [], 7 * 128),
        ("aten::layer_norm", [(8, 16), (16,), (16,)], [(8, 16)], 2 * 128),
        ("aten::batch_norm", [(8, 16, 4, 4), (16,)], [(8, 16, 4, 4)], 3 * 2048),
        (NODE + "CudnnBatchNormBackward0", [(8, 16, 4, 4)] * 2, [(8, 16, 4, 4)], 5 * 2048),
        # An index of eight bytes per output of four.
        ("aten::max_pool2d", [(8, 16, 4, 4)], [(8, 16, 2, 2)], 2048 + 512 + 2 * 512),
        ("aten::avg_pool2d", [(8, 16, 4, 4)], [(8, 16, 2, 2)], 2048 + 512),
        # 1000 rows are in the table, 8 are looked up.
        ("aten::embedding", [(1000, 16), (8,)], [(8, 16)], 128 + 8 + 128),
        ("aten::embedding_dense_backward", [(8, 16), (8,)], [(1000, 16)], 128 + 8 + 16000),
    ],
)
def test_bytes(name, inputs, outputs, elements):
    assert work_of(operator(name, inputs, outputs)).bytes == 4 * elements


def test_a_list_read_twice_is_read_from_memory_once():
    """addcmul_(squares, gradients, gradients)."""
    op = operator("aten::_foreach_addcmul_", [(8, 16), (8, 16)], [])
    squares, gradients = op.inputs
    assert work_of(replace(op, inputs=(squares, gradients, gradients))).bytes == 3 * 128 * 4


def test_a_view_runs_no_kernel():
    view = operator("aten::view", [(8, 16)], [(128,)])
    work = work_of(replace(view, time_s=0.0))
    assert (work.flops, work.bytes, work.kernels) == (0, 0, 0)


def test_the_trace_s_own_bytes_win_where_only_memory_counts():
    op = operator("aten::add", [(8, 16), (8, 16)], [(8, 16)], bytes=1000.0)
    assert work_of(op).bytes == 1000
    assert work_of(op, sizes=Sizes(2.0)).bytes == 2000
    # One of the three does not grow: 5/3 of the bytes.
    fixed = Sizes(2.0, frozenset({op.inputs[1].id}))
    assert work_of(op, sizes=fixed).bytes == pytest.approx(1000 * 5 / 3)


# Another batch: which dimension grows


@pytest.mark.parametrize(
    ("fixed", "shape"),
    [
        ({2}, (16, 32, 16)),  # activation x weight: more rows
        ({100}, (8, 32, 32)),  # gradient of a weight: a longer sum
        ({1}, (8, 64, 16)),  # weight x activation: more columns
    ],
)
def test_the_dimension_that_grows(fixed, shape):
    op = operator("aten::mm", [(8, 16), (16, 32)], [(8, 32)])
    work = work_of(op, sizes=Sizes(2.0, frozenset(fixed)))
    assert work.shape == shape
    assert work.flops == 2 * 2 * 8 * 32 * 16


def test_a_batch_of_products_grows_in_number():
    op = operator("aten::bmm", [(5, 8, 16), (5, 16, 32)], [(5, 8, 32)])
    work = work_of(op, sizes=Sizes(3.0))
    assert work.shape == (8, 32, 16)
    assert work.flops == 3 * 5 * 2 * 8 * 32 * 16


# Networks from first principles

# Input channels, output channels, positions of VGG13 (Simonyan and Zisserman, column B).
VGG13 = [
    (3, 64, 224), (64, 64, 224), (64, 128, 112), (128, 128, 112), (128, 256, 56), (256, 256, 56),
    (256, 512, 28), (512, 512, 28), (512, 512, 14), (512, 512, 14),
]  # fmt: skip
VGG13_LINEAR = [(25088, 4096), (4096, 4096), (4096, 1000)]


def resnet50_convolutions():
    """Input channels, output channels, taps, output width (He et al., table 1)."""
    yield 3, 64, 49, 112
    channels, width = 64, 56
    for stage, blocks in enumerate((3, 4, 6, 3)):
        inner = 64 * 2**stage
        for block in range(blocks):
            before = width
            if stage and not block:
                width //= 2  # torchvision strides in the 3 x 3 convolution
            yield channels, inner, 1, before
            yield inner, inner, 9, width
            yield inner, 4 * inner, 1, width
            if not block:
                yield channels, 4 * inner, 1, width
            channels = 4 * inner


def flops_of(trace, phase, kind):
    pairs = zip(trace.operators, works_of(trace), strict=True)
    return sum(
        work.flops for op, work in pairs if work and op.phase == phase and kind_of(op.name) == kind
    )


def test_vgg13_from_first_principles(upstream):
    trace = read_trace(upstream / "vgg13")
    convolutions = [2 * 128 * a * b * 9 * width**2 for a, b, width in VGG13]
    linear = [2 * 128 * a * b for a, b in VGG13_LINEAR]
    # torchvision prints 11.31 billion multiply-adds for one image.
    assert sum(convolutions + linear) / 128 / 2 == pytest.approx(11.31e9, rel=2e-3)
    assert flops_of(trace, "forward", "conv") == sum(convolutions)
    assert flops_of(trace, "forward", "gemm") == sum(linear)
    # Twice forward, but for the gradient of the images, which nobody wants.
    assert flops_of(trace, "backward", "conv") == 2 * sum(convolutions) - convolutions[0]
    assert flops_of(trace, "backward", "gemm") == 2 * sum(linear)


def test_resnet50_from_first_principles(upstream):
    trace = read_trace(upstream / "resnet50")
    convolutions = [2 * 128 * a * b * taps * w**2 for a, b, taps, w in resnet50_convolutions()]
    assert len(convolutions) == 53
    # torchvision prints 4.09 billion multiply-adds for one image.
    assert (sum(convolutions) / 128 / 2 + 2048 * 1000) == pytest.approx(4.09e9, rel=2e-3)
    assert flops_of(trace, "forward", "conv") == sum(convolutions)
    assert flops_of(trace, "backward", "conv") == 2 * sum(convolutions) - convolutions[0]


@pytest.mark.parametrize("name", ["vgg13", "resnet50"])
def test_every_operator_of_the_published_traces_is_known(upstream, name):
    trace = read_trace(upstream / name)
    assert all(work is not None for work in works_of(trace))
