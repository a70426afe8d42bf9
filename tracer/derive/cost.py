"""What one aten operator asks of a GPU: which kernels it runs, their FLOPs and bytes.

FLOPs of matrix products, convolutions and attention are torch's own formulas; elsewhere one per
element of the largest operand, which is all that matters where memory is the limit. Bytes are each
operand once: caches and kernels that read twice are part of the fitted efficiencies.
"""

from __future__ import annotations

from math import ceil, prod
from typing import Any

import torch
from torch.utils.flop_counter import flop_registry

from tracer.derive.attention import attention_flops
from tracer.derive.tensors import arguments, tensors_in
from triosim.hardware import Work, kind_of

aten = torch.ops.aten
# No kernel: bookkeeping, or memory that nobody has written yet. Views are recognised by schema.
_NO_KERNEL = frozenset({
    "_fused_sdp_choice", "_local_scalar_dense", "_reshape_alias", "_unsafe_view", "alias",
    "detach", "detach_", "empty", "empty_like", "empty_permuted", "empty_strided", "is_same_size",
    "item", "lift_fresh", "new_empty", "new_empty_strided", "resize_", "set_", "squeeze_", "t_",
    "transpose_", "unsqueeze_",
})  # fmt: skip
# In place without reading what was there.
_OVERWRITES = frozenset({"bernoulli_", "copy_", "fill_", "normal_", "random_", "uniform_", "zero_"})
# Read or write only the rows that are named: as many bytes as the result (or the gradient) has.
_LOOKUPS = frozenset({"embedding", "gather", "index", "index_select"})
# Zero a whole tensor, then add rows to it.
_SCATTERS = frozenset({"embedding_dense_backward", "select_backward", "slice_backward"})
# torch/aten/src/ATen/native/cuda/MultiTensorApply.cuh: tensors per launch by number of lists,
# elements per block, blocks per launch.
_TENSORS_PER_LAUNCH = {1: 110, 2: 64, 3: 48, 4: 36}
_CHUNK, _BLOCKS_PER_LAUNCH = 65536, 320
# Products side by side, which torch does not count.
_GROUPED = (aten._grouped_mm, aten._scaled_grouped_mm)


def runs_kernel(func: torch._ops.OpOverload) -> bool:
    """Whether the operator starts work on the GPU at all."""
    namespace, _, name = func._schema.name.partition("::")
    return namespace not in ("prim", "profiler") and not func.is_view and name not in _NO_KERNEL


def work_of(
    func: torch._ops.OpOverload,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    out: Any,
    *,
    tf32_matmul: bool = False,
) -> Work:
    """The work of one operator that runs kernels.

    float32 convolutions run in TF32, as cuDNN does unless told otherwise; float32 matrix products
    do so only with `tf32_matmul`.
    """
    packet = func.overloadpacket
    name = func._schema.name.rpartition("::")[2]
    kind = kind_of("aten::" + name)
    dtype = _compute_dtype(args, out, kind, tf32_matmul)
    if packet is aten.convolution_backward:
        return _convolution_backward(args, out, dtype)
    read, written = _traffic(func, name, args, kwargs, out)
    if kind == "attention":
        flops: float = attention_flops(func, args, kwargs)
    elif packet in _GROUPED:
        flops = _grouped_flops(args)
    elif packet in flop_registry:
        flops = flop_registry[packet](*args, **kwargs, out_val=out)
    else:
        flops = 0.0 if kind in ("copy", "embedding") else _largest_numel(args, out)
    return Work(
        kind=kind,
        flops=flops,
        bytes=read + written,
        dtype=dtype,
        shape=_shape(packet, args, out),
        kernels=_launches(args) if kind == "optimizer" else 1,
    )


def _compute_dtype(args: tuple[Any, ...], out: Any, kind: str, tf32_matmul: bool) -> str:
    floats = [t for t in (*tensors_in(args), *tensors_in(out)) if t.dtype.is_floating_point]
    if not floats:
        return "fp32"
    name = str(max(floats, key=lambda t: t.numel()).dtype).removeprefix("torch.")
    short = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}.get(name, "fp32")
    tf32 = kind == "conv" or (tf32_matmul and kind in ("gemm", "attention"))
    return "tf32" if short == "fp32" and tf32 else short


def tensor_bytes(tensor: torch.Tensor) -> int:
    """Bytes that a kernel touches: a broadcast dimension is the same memory again."""
    distinct = prod(n for n, step in zip(tensor.shape, tensor.stride(), strict=True) if step)
    return int(distinct) * tensor.element_size()


def _bytes(value: Any) -> int:
    return sum(tensor_bytes(t) for t in tensors_in(value))


def _traffic(
    func: torch._ops.OpOverload,
    name: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    out: Any,
) -> tuple[int, int]:
    """Bytes read and written."""
    if name in _LOOKUPS:
        return _bytes(out) + _bytes(args[1:]), _bytes(out)
    if name in _SCATTERS:
        return 2 * _bytes(args[0]), _bytes(out) + _bytes(args[0])
    if name == "nll_loss_forward":  # one probability per sample
        return 2 * _bytes(args[1]), _bytes(out)
    if name == "nll_loss_backward":
        return _bytes(args[0]) + _bytes(args[2]), _bytes(out)
    read = written = 0
    for argument, value in arguments(func, args, kwargs):
        changed = argument.alias_info is not None and argument.alias_info.is_write
        written += _bytes(value) if changed else 0
        read += 0 if changed and name in _OVERWRITES else _bytes(value)
    new = [r for r in func._schema.returns if r.alias_info is None]
    if new:
        written += _bytes(out)
    return read, written


def _largest_numel(args: tuple[Any, ...], out: Any) -> float:
    return float(max(sum(t.numel() for t in tensors_in(value)) for value in (out, *args)))


def _shape(packet: Any, args: tuple[Any, ...], out: Any) -> tuple[int, int, int] | None:
    """(m, n, k) of a product; (elements, channels, 1) of a batch norm."""
    if packet in (aten.mm, aten.addmm, aten.bmm, aten.baddbmm):
        left, right = args[-2:] if packet in (aten.mm, aten.bmm) else args[1:3]
        return left.shape[-2], right.shape[-1], left.shape[-1]
    if packet in _GROUPED:
        return _grouped_shape(args, out)
    if packet is aten.convolution and not args[6]:
        return _convolution_shape(args[1], out)
    if packet in (aten.native_batch_norm, aten.native_batch_norm_backward):
        x = args[0] if packet is aten.native_batch_norm else args[1]
        return x.numel() // x.shape[1], x.shape[1], 1
    return None


def _grouped_flops(args: tuple[Any, ...]) -> float:
    """(rows, k) times (k, columns), either of them whole or one for each group.

    Where one is whole, groups share its rows or columns; where both are, they share what is summed.
    """
    left, right = args[:2]
    groups = left.shape[0] if left.dim() == right.dim() == 3 else 1
    return float(2 * groups * left.shape[-2] * left.shape[-1] * right.shape[-1])


def _grouped_shape(args: tuple[Any, ...], out: torch.Tensor) -> tuple[int, int, int]:
    """(m, n, k) of one group, where all have as much to do."""
    left, right = args[:2]
    groups = next(t.shape[0] for t in (left, right, out) if t.dim() == 3)
    m, k, n = left.shape[-2], left.shape[-1], right.shape[-1]
    shared = {(2, 3): (groups, 1, 1), (3, 2): (1, groups, 1), (2, 2): (1, 1, groups)}
    over = shared.get((left.dim(), right.dim()), (1, 1, 1))
    a, b, c = (max(1, size // ways) for size, ways in zip((m, n, k), over, strict=True))
    return a, b, c


def _convolution_shape(weight: torch.Tensor, out: torch.Tensor) -> tuple[int, int, int]:
    pixels = out.numel() // out.shape[1]
    return pixels, weight.shape[0], weight.numel() // weight.shape[0]


def _convolution_backward(args: tuple[Any, ...], out: Any, dtype: str) -> Work:
    """Up to three kernels: the gradients of the input, the weight and the bias."""
    grad, x, weight = args[:3]
    transposed, wanted = args[7], args[10]
    pixels, outs, per_out = _convolution_shape(weight, grad)
    shapes = (
        (x.numel() // x.shape[1], weight.shape[1], _per_input(x, weight, grad)),
        (outs, per_out, pixels),
    )
    parts = []
    for i, other in enumerate((weight, x)):
        if wanted[i]:
            only = [j == i for j in range(3)]
            kept = tuple(t if j == i else None for j, t in enumerate(out))
            parts.append(
                Work(
                    kind="conv",
                    flops=flop_registry[aten.convolution_backward](*args[:10], only, out_val=kept),
                    bytes=_bytes((grad, other, out[i])),
                    dtype=dtype,
                    shape=None if transposed else shapes[i],
                )
            )
    if wanted[2]:
        moved = _bytes((grad, out[2]))
        parts.append(Work(kind="reduction", flops=grad.numel(), bytes=moved, dtype="fp32"))
    return Work.of("conv", parts)


def _per_input(x: torch.Tensor, weight: torch.Tensor, grad: torch.Tensor) -> int:
    """Products per element of the input's gradient; a stride makes them fewer."""
    window = weight.numel() // weight.shape[1]
    share = (grad.numel() // grad.shape[1]) / (x.numel() // x.shape[1])
    return max(1, round(window * share))


def _launches(args: tuple[Any, ...]) -> int:
    """A foreach operator is cut into launches by the number of tensors and of blocks."""
    lists = [found for a in args if isinstance(a, (list, tuple)) if (found := [*tensors_in(a)])]
    if not lists:
        return 1
    tensors = len(lists[0]) / _TENSORS_PER_LAUNCH.get(len(lists), 30)
    blocks = sum(ceil(t.numel() / _CHUNK) for t in lists[0]) / _BLOCKS_PER_LAUNCH
    return ceil(max(tensors, blocks))
