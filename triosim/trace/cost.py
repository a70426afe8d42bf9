"""What an operator of a trace asks of a GPU: floating-point operations and bytes, by its tensors.

Tensors count once when read and once when written. float32 matrix products run in float32 and
float32 convolutions in TF32: PyTorch's defaults, and what the kernel names of the H100 profile
published with TrioSim show. Left out: whether attention is causal (unless the trace counts its
operations), and kernels that the library runs for reasons of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from triosim.hardware import Work, kind_of
from triosim.hardware.kinds import bare_name
from triosim.trace.convolution import convolution
from triosim.trace.model import Operator
from triosim.trace.products import attention, matrix_product
from triosim.trace.sizes import AS_TRACED, Sizes, compute_dtype

# These change the shape of a tensor and touch no memory, unless they take time: then they copied.
_VIEWS = frozenset({
    "view", "_unsafe_view", "reshape", "_reshape_alias", "as_strided", "t", "transpose", "permute",
    "expand", "squeeze", "unsqueeze", "select", "slice", "narrow", "detach", "alias", "flatten",
    "unflatten", "split", "split_with_sizes", "chunk", "unbind", "unfold", "diagonal", "view_as",
    "expand_as", "movedim", "swapaxes", "lift_fresh",
})  # fmt: skip
_INDEX_BYTES = 8
# Lists that a foreach operator reads, of which it writes the first.
_LISTS = {"lerp": 2, "addcmul": 3, "addcdiv": 3}


def work_of(
    operator: Operator, *, partner: Operator | None = None, sizes: Sizes = AS_TRACED
) -> Work | None:
    """The work of one operator; None where its tensors do not tell.

    `partner` is the forward operator of an autograd node, which often names none of the tensors
    that it needs. `sizes` gives the tensors another batch.
    """
    name, kind = bare_name(operator.name), kind_of(operator.name)
    if name in _VIEWS and not operator.time_s:
        return Work(kind="other", flops=0, bytes=0, dtype="fp32", kernels=0)
    try:
        found = _FORMULAS.get(kind, _moving)(operator, partner, sizes)
    except (IndexError, ValueError, ZeroDivisionError):
        found = None  # fewer tensors or dimensions than an operator of this name has
    return found or _from_columns(operator, kind, sizes)


def _from_columns(operator: Operator, kind: str, sizes: Sizes) -> Work | None:
    """The trace's own figures, where the tensors do not tell."""
    if operator.bytes is None or (operator.flops is None and kind in ("gemm", "conv", "attention")):
        return None
    share = 1.0 if operator.phase == "optimizer" else sizes.share
    return Work(
        kind=kind,
        flops=(operator.flops or 0.0) * share,
        bytes=operator.bytes * share,
        dtype=compute_dtype(operator),
    )


def _moving(operator: Operator, partner: Operator | None, sizes: Sizes) -> Work | None:
    """Inputs read once, outputs written once; the trace's own count of bytes wins."""
    if not operator.inputs and not operator.outputs:
        return None
    read = list({t.id: t for t in operator.inputs}.values())
    written = operator.outputs or (operator.inputs[:1] if operator.name.endswith("_") else ())
    size = sizes.bytes([*read, *written])
    if operator.bytes is not None and size:
        size *= operator.bytes / AS_TRACED.bytes([*read, *written])
    return _memory_bound(kind_of(operator.name), size, operator)


def _memory_bound(kind: str, size: float, operator: Operator) -> Work:
    return Work(kind=kind, flops=0, bytes=size, dtype=compute_dtype(operator))


def _optimizer(operator: Operator, partner: Operator | None, sizes: Sizes) -> Work | None:
    """foreach operators read lists laid end to end and write the first, or a new one."""
    if not operator.inputs:
        return None
    distinct = {t.id: t for t in operator.inputs}
    size = float(sum(t.bytes for t in (*distinct.values(), *operator.outputs)))
    if not operator.outputs and "fused" in operator.name:
        size += sum(t.bytes for t in distinct.values()) * 3 / 4  # all but the gradients
    elif not operator.outputs:
        count = len(operator.inputs) // _lists(operator)
        size += sum(t.bytes for t in operator.inputs[:count])
    return _memory_bound("optimizer", size, operator)


def _lists(operator: Operator) -> int:
    """How many lists of tensors an operator's inputs are."""
    for name, lists in _LISTS.items():
        if name in operator.name:
            return lists
    half, odd = divmod(len(operator.inputs), 2)
    sizes = [t.numel for t in operator.inputs]
    return 2 if not odd and half > 1 and sizes[:half] == sizes[half:] else 1


def _norm(operator: Operator, partner: Operator | None, sizes: Sizes) -> Work | None:
    """Statistics take a pass of their own over the inputs where a row does not fit on the chip.

    Batch norm: one processor per channel reads its inputs twice. Gradients of a layer norm's weight
    take a second pass.
    """
    big = max(t.numel for t in operator.inputs)
    rows = [t for t in operator.inputs if t.numel == big]
    made = [t for t in operator.outputs if t.numel == big]
    batch_norm = "batch" in operator.name.lower() or "instance" in operator.name.lower()
    backward = "backward" in operator.name.lower()
    passes = 2 if batch_norm or backward else 1
    size = passes * sizes.bytes(rows) + sizes.bytes(made or rows[:1])
    work = _memory_bound("norm", size, operator)
    if not batch_norm or len(rows[0].shape) < 2:
        return work
    channels = rows[0].shape[1]
    samples = max(1, round(big / channels * sizes.of(rows[0])))
    return replace(work, shape=(samples, channels, 1))


def _pool(operator: Operator, partner: Operator | None, sizes: Sizes) -> Work | None:
    """Max pooling writes an index per output; its backward clears the gradient it scatters into.

    The backward names its input, which it does not read: as large as what it clears.
    """
    tensors = [*operator.inputs, *operator.outputs]
    size = sizes.bytes(tensors)
    backward = "backward" in operator.name.lower()
    if not backward and "max" in operator.name and len(operator.outputs) == 1:
        out = operator.outputs[0]
        size += out.numel * _INDEX_BYTES * sizes.of(out)
    return _memory_bound("pool_backward" if backward else "pool", size, operator)


def _embedding(operator: Operator, partner: Operator | None, sizes: Sizes) -> Work | None:
    """A look-up reads as much of its table as it gives out; the gradient is a whole table."""
    out = operator.outputs[0]
    if "backward" in operator.name.lower():
        return _moving(operator, partner, sizes)
    written = out.bytes * sizes.of(out)
    read = sum(min(t.bytes * sizes.of(t), written) for t in operator.inputs)
    return _memory_bound("embedding", read + written, operator)


_Formula = Callable[[Operator, "Operator | None", Sizes], "Work | None"]
_FORMULAS: dict[str, _Formula] = {
    "gemm": matrix_product,
    "conv": convolution,
    "attention": attention,
    "norm": _norm,
    "pool": _pool,
    "embedding": _embedding,
    "optimizer": _optimizer,
}
