"""Scaled dot product attention as a GPU runs it, seen through the CPU's kernels.

Fake CPU tensors take the CPU's flash kernel where a GPU takes its own, with the same operands and
results. The CPU has none with dropout, so attention is then run without it: a flash kernel keeps no
mask anyway, it draws the same random numbers again in backward from a seed and an offset.
"""

from __future__ import annotations

from typing import Any

import torch

from tracer.derive.tensors import arguments

aten = torch.ops.aten
SEED_BYTES = 16  # Philox seed and offset, two int64, which a flash kernel keeps for backward
KINDS = ("flash", "math")


def run_attention(
    func: torch._ops.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], kind: str
) -> tuple[Any, bool]:
    """Attention's result, and whether dropout was left out."""
    dropout = args[4] if len(args) > 4 else kwargs.get("dropout_p", 0.0)
    if kind == "math":
        return _math(args, kwargs), False
    if not dropout:
        return func(*args, **kwargs), False
    if len(args) > 4:
        return func(*args[:4], 0.0, *args[5:], **kwargs), True
    return func(*args, **{**kwargs, "dropout_p": 0.0}), True


def _math(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    with sdpa_kernel(SDPBackend.MATH):
        return aten.scaled_dot_product_attention(*args, **kwargs)


def attention_flops(
    func: torch._ops.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> float:
    """Two products forward; five backward, of which one is computed again.

    With a causal mask a kernel skips the half that is masked: torch's own counter does not, and
    says twice as much.
    """
    given = {argument.name: value for argument, value in arguments(func, args, kwargs)}
    query, key, value = given["query"], given["key"], given["value"]
    backward = "grad_out" in given or "grad_out_" in given
    batch, heads, length, width = query.shape
    pairs = batch * heads * length * key.shape[2] * (0.5 if given.get("is_causal") else 1.0)
    products = 2 * width * (3 if backward else 1) + 2 * value.shape[3] * (2 if backward else 1)
    return float(pairs * products)
