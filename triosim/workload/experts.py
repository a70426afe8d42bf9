"""A mixture of experts on a tape, with balanced routing.

Router, the tokens of each expert side by side, one grouped product per matrix, and the weighted sum
of what comes back. With expert parallelism tokens travel to their experts and back (ORACLES E1).
`transformers` reaches the same products through one of several implementations, whose copies
differ: their element-wise work is not claimed to the percent.
"""

from __future__ import annotations

from triosim.workload import functions as f
from triosim.workload import products
from triosim.workload.layers import INDEX_BYTES, Build, mlp
from triosim.workload.tape import FP32_BYTES, Tape, Value


def experts(b: Build, x: Value) -> Value:
    """The tokens' experts and the shared ones; the ranks' sums are parts, as an MLP's."""
    t, model = b.tape, b.model
    tokens = b.batch * b.seq
    flat = f.view(t, x, (tokens, model.hidden))
    weights = _route(b, flat)
    with t.at("experts", "expert"):
        rows = (tokens * model.top_k, model.hidden)
        picked = _pick(t, flat, rows)
        picked = _travel(b, picked)
        done = _travel(b, _grouped_mlp(b, picked))
        out = _weighted_sum(t, done, weights, (tokens, model.hidden))
    out = f.view(t, out, x.shape)
    if model.shared_experts:
        with t.at("shared_experts", "column"):
            width = model.shared_experts * model.moe_ffn // b.layout.tp
            out = f.add(t, out, mlp(b, x, width))
    return out


def _route(b: Build, x: Value) -> Value:
    """Scores of every expert, of which the best are kept: (tokens, top_k)."""
    t, model = b.tape, b.model
    with t.at("gate", "replicated"):
        weight = t.parameter("weight", (model.experts, model.hidden))
        shares = f.softmax(t, products.linear(t, x, weight, conv=False), FP32_BYTES)
        shape = (x.shape[0], model.top_k)
        best = t.sized(shape, FP32_BYTES)
        chosen = t.sized(shape, INDEX_BYTES, "indices")
        t.start("topk")
        t.kernel("reduction", shares.numel, (shares,), (best, chosen))

        def backward(g: Value) -> None:
            back = t.sized(shares.shape, FP32_BYTES)
            t.kernel("embedding", 0, (g, chosen), (back,))
            t.give(shares, back)

        t.done(best, node="Topk", backward=backward, saves=(chosen,))
    return f.cast(t, best, x.element_bytes)


def _pick(t: Tape, x: Value, shape: tuple[int, int]) -> Value:
    """Each token once per expert it goes to, in the experts' order."""
    out = t.new(shape, like=x)
    order = t.sized(shape[:1], INDEX_BYTES, "indices")
    t.start("index_select")
    t.kernel("embedding", 0, (x, order), (out,), read_bytes=out.bytes + order.bytes)

    def backward(g: Value) -> None:
        back = t.new(x.shape, like=x)
        t.kernel("embedding", g.numel, (g, order), (back,))
        t.give(x, back)

    t.done(out, node="IndexSelect", backward=backward, saves=(order,))
    return out


def _travel(b: Build, x: Value) -> Value:
    """All-to-all over the expert-parallel ranks; what a rank sends includes its own part."""
    t = b.tape
    if b.layout.ep == 1:
        return x
    out = t.new(x.shape, like=x)

    def backward(g: Value) -> None:
        back = t.new(x.shape, like=x)
        t.communicate("all_to_all", "ep", x.bytes, g, back)
        t.give(x, back)

    t.start("all_to_all")
    t.communicate("all_to_all", "ep", x.bytes, x, out)
    t.done(out, node="AllToAll", backward=backward)
    return out


def _grouped_mlp(b: Build, x: Value) -> Value:
    """Every local expert's MLP on its share of the rows."""
    t, model = b.tape, b.model
    width, local = model.moe_ffn // b.layout.tp, model.experts // b.layout.ep
    ups = 2 if model.gated else 1
    inner = _grouped_product(t, x, "gate_up_proj", (local, ups * width, model.hidden))
    if not model.gated:
        inner = f.unary(t, model.activation.removesuffix("_new"), inner, keeps="input")
    else:
        gate, up = f.split(t, inner, (width, width))
        name = model.activation.removesuffix("_new")
        inner = f.mul(t, f.unary(t, name, gate, keeps="input"), up)
    return _grouped_product(t, inner, "down_proj", (local, model.hidden, width))


def _grouped_product(t: Tape, x: Value, name: str, shape: tuple[int, int, int]) -> Value:
    """Rows in groups, each times its expert's matrix of n x k."""
    weight = t.parameter(name, shape)
    count, n, k = shape
    rows = x.shape[0]
    m = max(1, rows // count)
    flops = 2.0 * rows * n * k
    out = t.new((rows, n), like=x)
    t.start("_grouped_mm")
    t.kernel("gemm", flops, (x, weight), (out,), shape=(m, n, k))

    def backward(g: Value) -> None:
        wgrad, dgrad = t.new(shape, like=x), t.new(x.shape, like=x)
        t.kernel("gemm", flops, (g, x), (wgrad,), shape=(n, k, m), part="wgrad")
        t.kernel("gemm", flops, (g, weight), (dgrad,), shape=(m, k, n), part="dgrad")
        t.give(weight, wgrad)
        t.give(x, dgrad)

    t.done(out, node="GroupedMm", backward=backward, saves=(x,))
    return out


def _weighted_sum(t: Tape, x: Value, weights: Value, shape: tuple[int, int]) -> Value:
    """Results back in the tokens' order, each times its router weight, added up."""
    column = f.view(t, weights, (weights.numel, 1))
    scaled = f.mul(t, x, column)
    out = t.new(shape, like=x)
    t.start("index_add")
    t.kernel("embedding", scaled.numel, (scaled,), (out,))

    def backward(g: Value) -> None:
        back = t.new(scaled.shape, like=x)
        t.kernel("embedding", 0, (g,), (back,), read_bytes=back.bytes)
        t.give(scaled, back)

    t.done(out, node="IndexAdd", backward=backward)
    return out
