"""Operators on a tape: their kernels, what they keep for backward, and their gradients.

FLOPs are one per element of the largest operand. Bytes are each operand once. Matrix products and
fused attention are in `triosim.workload.products`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from triosim.workload.tape import FP32_BYTES, Tape, Value


def view(
    t: Tape,
    x: Value,
    shape: Sequence[int],
    *,
    copies: bool = False,
    name: str = "view",
    node: str = "View",
) -> Value:
    """The same memory in another shape; `copies`: its gradient lies otherwise and is copied.

    `name` is the operator that takes the view.
    """
    out = replace(x, shape=tuple(shape), kind="output", path="")

    def backward(g: Value) -> None:
        back = replace(g, shape=x.shape)
        if copies:
            back = t.new(x.shape, like=g)
            copied(t, g, back)
        t.give(x, back)

    t.start(name)
    t.done(out, node=node, backward=backward if x.differentiable else None)
    return out


def copied(t: Tape, source: Value, target: Value) -> None:
    """A kernel that moves every element."""
    t.kernel("copy", 0, (source,), (target,))


def converted(t: Tape, source: Value, target: Value) -> None:
    """Every element in another type."""
    t.kernel(t.cast_kind, 0, (source,), (target,))


def pointwise(t: Tape, reads: Sequence[Value], out: Value, kind: str = "elementwise") -> None:
    """A kernel with one operation per element of its largest operand."""
    t.kernel(kind, max(v.numel for v in (*reads, out)), reads, (out,))


def cast(t: Tape, x: Value, element_bytes: int) -> Value:
    """x.to(type): nothing where it has the type."""
    if x.element_bytes == element_bytes:
        return x
    out = t.sized(x.shape, element_bytes)
    t.start("to")
    converted(t, x, out)

    wanted = x.differentiable
    t.done(out, node="ToCopy", backward=(lambda g: _cast_back(t, g, x)) if wanted else None)
    return out


def unary(t: Tape, name: str, x: Value, *, keeps: str = "", node: str | None = None) -> Value:
    """neg, silu, tanh, ...: `keeps` is what backward reads besides the gradient: input or output.

    Without it (negation, multiplication by a number) backward is one kernel on the gradient.
    """
    out = t.new(x.shape, like=x)
    t.start(name)
    pointwise(t, (x,), out)
    kept = {"input": (x,), "output": (out,), "": ()}[keeps]

    def backward(g: Value) -> None:
        back = t.new(x.shape, like=x)
        pointwise(t, (g, *kept), back)
        t.give(x, back)

    t.done(out, node=node or name.title(), backward=backward, saves=kept)
    return out


def power(t: Tape, x: Value) -> Value:
    """x to a whole power: backward raises, multiplies by the exponent and by the gradient."""
    out = t.new(x.shape, like=x)
    t.start("pow")
    pointwise(t, (x,), out)

    def backward(g: Value) -> None:
        raised, scaled, back = (t.new(x.shape, like=x) for _ in range(3))
        pointwise(t, (x,), raised)
        pointwise(t, (raised,), scaled)
        pointwise(t, (g, scaled), back)
        t.give(x, back)

    t.done(out, node="Pow", backward=backward, saves=(x,))
    return out


def add_number(t: Tape, x: Value) -> Value:
    out = t.new(x.shape, like=x)
    t.start("add")
    pointwise(t, (x,), out)
    t.done(out, node="Add", backward=lambda g: t.give(x, g))
    return out


def add(t: Tape, x: Value, y: Value) -> Value:
    """A sum; the smaller operand is broadcast."""
    out = t.new(x.shape, like=x)
    t.start("add")
    pointwise(t, (x, y), out)

    def backward(g: Value) -> None:
        t.give(x, g)
        if y.differentiable:
            t.give(y, _summed_to(t, g, y))

    t.done(out, node="Add", backward=backward)
    return out


def mul(t: Tape, x: Value, y: Value) -> Value:
    """A product by element; the smaller operand is broadcast."""
    shape = x.shape if x.numel >= y.numel else y.shape
    out = t.new(shape, like=x)
    t.start("mul")
    pointwise(t, (x, y), out)

    def backward(g: Value) -> None:
        products = []
        for a, b in ((x, y), (y, x)):
            if a.differentiable:
                product = t.new(shape, like=g)
                pointwise(t, (g, b), product)
                products.append((a, product))
        for a, product in products:
            t.give(a, _summed_to(t, product, a))

    saves = [b for a, b in ((x, y), (y, x)) if a.differentiable]
    t.done(out, node="Mul", backward=backward, saves=saves)
    return out


def _summed_to(t: Tape, gradient: Value, target: Value) -> Value:
    """What broadcasting repeated is added up."""
    if gradient.numel == target.numel:
        return gradient
    total = t.new(target.shape, like=gradient)
    pointwise(t, (gradient,), total, "reduction")
    return total


def mean(t: Tape, x: Value) -> Value:
    """Over the last dimension."""
    out = t.new((*x.shape[:-1], 1), like=x)
    t.start("mean")
    pointwise(t, (x,), out, "reduction")

    def backward(g: Value) -> None:
        back = t.new(x.shape, like=x)
        pointwise(t, (g,), back)
        t.give(x, back)

    t.done(out, node="Mean", backward=backward)
    return out


def rsqrt(t: Tape, x: Value) -> Value:
    out = t.new(x.shape, like=x)
    t.start("rsqrt")
    pointwise(t, (x,), out)

    def backward(g: Value) -> None:
        cubed, scaled, back = (t.new(x.shape, like=x) for _ in range(3))
        pointwise(t, (out,), cubed)
        pointwise(t, (cubed,), scaled)
        pointwise(t, (g, scaled), back)
        t.give(x, back)

    t.done(out, node="Rsqrt", backward=backward, saves=(out,))
    return out


def half(t: Tape, x: Value) -> Value:
    """A half of the last dimension, as a view; its gradient is a whole tensor."""
    out = replace(x, shape=(*x.shape[:-1], x.shape[-1] // 2), kind="output")

    def backward(g: Value) -> None:
        back = t.new(x.shape, like=x)
        t.kernel(
            "other", back.numel, (g,), (back,),
            read_bytes=2 * g.bytes, written_bytes=back.bytes + g.bytes,
        )  # fmt: skip
        t.give(x, back)

    t.start("slice")
    t.done(out, node="Slice", backward=backward)
    return out


def concatenate(t: Tape, parts: Sequence[Value], shape: Sequence[int]) -> Value:
    out = t.new(shape, like=parts[0])
    t.start("cat")
    t.kernel("copy", 0, parts, (out,))

    def backward(g: Value) -> None:
        for part in parts:
            t.give(part, replace(g, shape=part.shape))

    wanted = any(part.differentiable for part in parts)
    t.done(out, node="Cat", backward=backward if wanted else None)
    return out


def split(t: Tape, x: Value, widths: Sequence[int]) -> tuple[Value, ...]:
    """Views of parts of the last dimension; their gradients are laid side by side."""
    parts = tuple(replace(x, shape=(*x.shape[:-1], width), kind="output") for width in widths)

    def backward(*gradients: Value) -> None:
        back = t.new(x.shape, like=x)
        t.kernel("copy", 0, gradients, (back,))
        t.give(x, back)

    t.start("split")
    t.done(*parts, node="Split", backward=backward)
    return parts


def dropout(t: Tape, x: Value) -> Value:
    """Keeps a mask of a byte per element."""
    out, mask = t.new(x.shape, like=x), t.sized(x.shape, 1, "mask")
    t.start("dropout")
    t.kernel("elementwise", out.numel + mask.numel, (x,), (out, mask))

    def backward(g: Value) -> None:
        back = t.new(x.shape, like=x)
        pointwise(t, (g, mask), back)
        t.give(x, back)

    t.done(out, node="NativeDropout", backward=backward, saves=(mask,))
    return out


def dropout_add(t: Tape, x: Value, residual: Value) -> Value:
    """Dropout and the sum with the residual stream in one kernel; keeps the mask."""
    out, mask = t.new(x.shape, like=x), t.sized(x.shape, 1, "mask")
    t.start("dropout_add")
    t.kernel("elementwise", 2 * out.numel + mask.numel, (x, residual), (out, mask))

    def backward(g: Value) -> None:
        back = t.new(x.shape, like=x)
        pointwise(t, (g, mask), back)
        t.give(x, back)
        t.give(residual, g)

    t.done(out, node="DropoutAdd", backward=backward, saves=(mask,))
    return out


def layer_norm(t: Tape, x: Value, weight: Value, bias: Value, *, statistics_bytes: int) -> Value:
    """Backward passes over gradient and input twice: for the input's and the weight's gradient."""
    out = t.new(x.shape, like=x)
    rows = (*x.shape[:-1], 1)
    stats = (t.sized(rows, statistics_bytes, "mean"), t.sized(rows, statistics_bytes, "rstd"))
    t.start("layer_norm")
    flops = out.numel + sum(s.numel for s in stats)
    t.kernel("norm", flops, (x, weight, bias), (out, *stats), moved_bytes=2 * x.bytes)

    def backward(g: Value) -> None:
        back = t.new(x.shape, like=x)
        made = (back, t.new(weight.shape, like=x), t.new(bias.shape, like=x))
        total = sum(v.numel for v in made)
        t.kernel("norm", total, (g, x, *stats, weight, bias), made, moved_bytes=5 * x.bytes)
        for value, gradient in zip((x, weight, bias), made, strict=True):
            t.give(value, gradient)

    t.done(out, node="NativeLayerNorm", backward=backward, saves=(x, *stats))
    return out


def rms_norm(t: Tape, x: Value, weight: Value) -> Value:
    """One fused kernel each way, which keeps the input and one number per row."""
    out = t.new(x.shape, like=x)
    rstd = t.sized((*x.shape[:-1], 1), FP32_BYTES, "rstd")
    t.start("rms_norm")
    t.kernel("norm", out.numel, (x, weight), (out, rstd), moved_bytes=2 * x.bytes)

    def backward(g: Value) -> None:
        back, weights = t.new(x.shape, like=x), t.new(weight.shape, like=x)
        t.kernel("norm", back.numel, (g, x, rstd, weight), (back, weights), moved_bytes=5 * x.bytes)
        t.give(x, back)
        t.give(weight, weights)

    t.done(out, node="FusedRmsNorm", backward=backward, saves=(x, rstd))
    return out


def embedding(t: Tape, table: Value, indices: Value, shape: Sequence[int]) -> Value:
    """A look-up reads as much of the table as it gives out; the gradient is a whole table."""
    out = t.new(shape)
    t.start("embedding")
    t.kernel("embedding", 0, (table, indices), (out,), read_bytes=out.bytes + indices.bytes)

    def backward(g: Value) -> None:
        back = t.new(table.shape, like=table)
        t.kernel(
            "embedding", 0, (g, indices), (back,),
            read_bytes=2 * g.bytes, written_bytes=back.bytes + g.bytes,
        )  # fmt: skip
        t.give(table, back)

    t.done(out, node="Embedding", backward=backward, saves=(indices,))
    return out


def softmax(t: Tape, x: Value, element_bytes: int, *, node: str = "Softmax") -> Value:
    """Over the last dimension, in the given type."""
    out = t.sized(x.shape, element_bytes)
    t.start("softmax")
    source = x
    if element_bytes != x.element_bytes:
        source = t.sized(x.shape, element_bytes)
        converted(t, x, source)
    pointwise(t, (source,), out, "reduction")

    def backward(g: Value) -> None:
        back = t.sized(x.shape, element_bytes)
        pointwise(t, (g, out), back, "reduction")
        t.give(wide, back)

    wide = x if source is x else replace(source)
    if wide is not x:
        t.node("ToCopy", (wide,), lambda g: _cast_back(t, g, x))
    t.done(out, node=node, backward=backward, saves=(out,))
    return out


def _cast_back(t: Tape, g: Value, x: Value) -> None:
    back = t.sized(x.shape, x.element_bytes)
    converted(t, g, back)
    t.give(x, back)


def contiguous(t: Tape, x: Value, shape: Sequence[int], name: str) -> Value:
    """A copy in the order of another shape; its gradient is a view."""
    out = t.new(shape, like=x)
    t.start(name)
    copied(t, x, out)
    t.done(out, node="Clone", backward=lambda g: t.give(x, replace(g, shape=x.shape)))
    return out


def cross_entropy(t: Tape, logits: Value, targets: Value) -> Value:
    """Keeps the logarithms of all probabilities."""
    rows = logits.numel // logits.shape[-1]
    logs = t.new((rows, logits.shape[-1]), like=logits)
    loss, weight = t.new((), like=logits), t.new((), like=logits, kind="total_weight")
    t.start("cross_entropy_loss")
    pointwise(t, (logits,), logs, "reduction")
    t.kernel("reduction", logs.numel, (logs, targets), (loss, weight), read_bytes=2 * targets.bytes)
    inner = replace(logs)

    def log_softmax_backward(g: Value) -> None:
        back = t.new(logits.shape, like=logits)
        pointwise(t, (g, logs), back, "reduction")
        t.give(logits, back)

    def backward(g: Value) -> None:
        back = t.new(logs.shape, like=logs)
        t.kernel(
            "reduction", logs.numel, (g, targets, weight), (back,),
            read_bytes=g.bytes + targets.bytes,
        )  # fmt: skip
        t.give(inner, back)

    t.node("LogSoftmax", (inner,), log_softmax_backward)
    t.done(loss, node="NllLoss", backward=backward, saves=(logs, targets, weight))
    return loss
