"""Kinds of operators by their names."""

from __future__ import annotations

import pytest

from triosim.hardware import KINDS, kind_of

NODE = "autograd::engine::evaluate_function: "
NAMES = {
    "gemm": [
        "aten::linear", "aten::addmm", "aten::mm", "aten::bmm", "aten::baddbmm", "aten::matmul",
        "aten::_scaled_mm", NODE + "AddmmBackward0", NODE + "MmBackward0", "BmmBackward0",
        "triton_tem_fused_mm_3",
    ],
    "conv": [
        "aten::conv2d", "aten::convolution", "aten::cudnn_convolution",
        "aten::convolution_backward", NODE + "ConvolutionBackward0",
    ],
    "attention": [
        "aten::scaled_dot_product_attention", "aten::_scaled_dot_product_flash_attention_backward",
        NODE + "ScaledDotProductFlashAttentionBackward0",
    ],
    "norm": [
        "aten::batch_norm", "aten::native_layer_norm", "aten::rms_norm", "aten::group_norm",
        NODE + "CudnnBatchNormBackward0", NODE + "NativeLayerNormBackward0",
    ],
    "pool": [
        "aten::max_pool2d", "aten::adaptive_avg_pool2d", NODE + "MaxPool2DWithIndicesBackward0",
        NODE + "AdaptiveAvgPool2DBackward0",
    ],
    "embedding": [
        "aten::embedding", "aten::embedding_dense_backward", "aten::index_select", "aten::gather",
    ],
    "optimizer": [
        "aten::_foreach_add_", "aten::_foreach_addcdiv_", "aten::_fused_adam_",
        "Optimizer.step#Adam.step",
    ],
    "reduction": [
        "aten::sum", "aten::mean", "aten::softmax", "aten::_log_softmax", "aten::nll_loss_forward",
        "aten::cross_entropy_loss", NODE + "LogSoftmaxBackward0", NODE + "MeanBackward1",
        "aten::argmax", "aten::linalg_vector_norm", "triton_red_fused_mean_1",
        "triton_per_fused_sum_2",
    ],
    "copy": [
        "aten::copy_", "aten::_to_copy", "aten::clone", "aten::cat", "aten::ones_like",
        "aten::fill_", "aten::contiguous", "Memcpy HtoD", "aten::zeros",
    ],
    "elementwise": [
        "aten::relu_", "aten::gelu", "aten::silu", "aten::add", "aten::add_", "aten::mul.Tensor",
        "aten::dropout", "aten::threshold_backward", NODE + "ReluBackward0", "aten::pow",
        NODE + "NativeDropoutBackward0", "aten::where", "triton_poi_fused_relu_0", "aten::normal_",
        "aten::masked_fill",
    ],
    "other": ["something", "", "nccl:all_reduce", "torch::autograd::AccumulateGrad"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for kind, names in NAMES.items() for name in names]
)
def test_kind_of(name, kind):
    assert kind_of(name) == kind
    assert kind in KINDS
