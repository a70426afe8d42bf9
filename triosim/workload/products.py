"""Matrix products and attention on a tape.

A product of m x k and k x n takes 2mnk operations; fused attention two products of all pairs
forward, five backward, of which one is computed again. Bytes are each operand once.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from triosim.workload.functions import copied, pointwise, view
from triosim.workload.tape import FP32_BYTES, Tape, Value

SEED_BYTES = 16  # a flash kernel with dropout draws its random numbers again from a seed


def linear(t: Tape, x: Value, weight: Value, bias: Value | None = None, *, conv: bool) -> Value:
    """x times a weight of k x n (`conv`, as GPT-2 stores it) or n x k.

    The two gradients and the bias's are kernels of their own, so that a schedule can part them.
    """
    k = x.shape[-1]
    m, n = x.numel // k, weight.numel // k
    name = "addmm" if conv else "linear"
    flat = view(t, x, (m, k), name="view" if conv else name)
    out = t.new((m, n), like=x)
    t.start(name)
    operands = (flat, weight) if bias is None else (bias, flat, weight)
    t.kernel("gemm", 2.0 * m * n * k, operands, (out,), shape=(m, n, k))

    def backward(g: Value) -> None:
        _regather(t, x)
        wgrad, dgrad = t.new(weight.shape, like=x), t.new((m, k), like=x)
        halves = [
            ("wgrad", wgrad, (g, flat), (k, n, m) if conv else (n, k, m), weight),
            ("dgrad", dgrad, (g, weight), (m, k, n), flat),
        ]
        for part, made, reads, shape, target in reversed(halves) if bias is not None else halves:
            if target.differentiable:
                t.kernel("gemm", 2.0 * m * n * k, reads, (made,), shape=shape, part=part)
        if bias is not None:
            total = t.new(bias.shape, like=x)
            t.kernel("reduction", g.numel, (g,), (total,), part="bias")
            t.give(bias, total)
        t.give(weight, wgrad)
        t.give(flat, dgrad)

    node = "Mm" if bias is None else "Addmm"
    t.done(out, node=node, backward=backward, saves=(flat,))
    return view(t, out, (*x.shape[:-1], n))


def _regather(t: Tape, x: Value) -> None:
    """Under sequence parallelism backward gathers a product's input once more."""
    shard = x.storage.shard
    if shard is not None:
        t.communicate("all_gather", "tp", x.bytes, x, x, part="regather")
        x.storage.shard = None


def batched_product(
    t: Tape, x: Value, y: Value, shape: Sequence[int], inner: int, clones: Sequence[Value] = ()
) -> Value:
    """Products side by side; `clones` are operands that lie otherwise and are copied first."""
    t.start("matmul")
    kept = {}
    for value in (x, y):
        kept[value] = value
        if value in clones:
            kept[value] = t.new(value.shape, like=value)
            copied(t, value, kept[value])
    left, right = kept[x], kept[y]
    out = t.new(shape, like=x)
    m, n = shape[-2:]
    count = prod(shape[:-2])
    flops = 2.0 * count * m * n * inner
    t.kernel("gemm", flops, (left, right), (out,), shape=(m, n, inner))

    def backward(g: Value) -> None:
        second, first = t.new(y.shape, like=y), t.new(x.shape, like=x)
        t.kernel("gemm", flops, (left, g), (second,), shape=(inner, n, m), part="dgrad")
        t.kernel("gemm", flops, (g, right), (first,), shape=(m, inner, n), part="dgrad")
        t.give(x, first)
        t.give(y, second)

    t.done(out, node="Bmm", backward=backward, saves=(left, right))
    return out


def repeated(t: Tape, x: Value, shape: Sequence[int]) -> Value:
    """Each head of keys or values copied for every head of queries that reads it."""
    out = t.new(shape, like=x)
    t.start("reshape")
    copied(t, x, out)

    def backward(g: Value) -> None:
        back = t.new(x.shape, like=x)
        pointwise(t, (g,), back, "reduction")
        t.give(x, back)

    t.done(out, node="Expand", backward=backward)
    return out


def flash_attention(
    t: Tape, q: Value, k: Value, v: Value, pairs: float, *, dropout: bool = False
) -> Value:
    """Fused attention on (batch, heads, length, width) over `pairs` of query and key in all heads.

    Keeps its operands, its result and the logarithm of each row's sum; never the scores.
    """
    width, v_width = q.shape[-1], v.shape[-1]
    out = t.new((*q.shape[:-1], v_width), like=q)
    sums = t.sized(q.shape[:-1], FP32_BYTES, "logsumexp")
    t.start("scaled_dot_product_attention")
    t.kernel("attention", pairs * 2 * (width + v_width), (q, k, v), (out, sums))

    def backward(g: Value) -> None:
        made = tuple(t.new(x.shape, like=x) for x in (q, k, v))
        flops = pairs * 2 * (3 * width + 2 * v_width)
        t.kernel("attention", flops, (g, q, k, v, out, sums), made)
        for x, gradient in zip((q, k, v), made, strict=True):
            t.give(x, gradient)

    seed = t.sized((SEED_BYTES,) if dropout else (0,), 1, "seed")
    saves = (q, k, v, out, sums, seed)
    kernel = "Flash" if q.element_bytes < FP32_BYTES else "Efficient"  # there is no flash in fp32
    node = f"ScaledDotProduct{kernel}Attention"
    t.done(out, node=node, backward=backward, saves=saves)
    return out
