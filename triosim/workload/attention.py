"""Attention on a tape: grouped queries, one product for all, and DeepSeek's latent form."""

from __future__ import annotations

from triosim.workload import functions as f
from triosim.workload import products
from triosim.workload.layers import Build, linear, norm, rotate
from triosim.workload.tape import FP32_BYTES, Value

SOFTMAX_HEADS = 4  # Megatron's fused softmax works on so many heads at once


def attention(b: Build, x: Value, tables: tuple[Value, Value] | None, mask: Value | None) -> Value:
    """From the norm's output to the projection's; `tables` are cosines and sines."""
    model, names = b.model, b.names
    make = _latent if model.kv_lora is not None else _fused if model.fused_qkv else _grouped
    with b.tape.at("", "heads"):
        q, k, v = make(b, x, tables)
        if b.kind == "math":
            core = _math(b, q, k, v)
        else:
            core = _flash(b, q, k, v) if b.flash else _scores(b, q, k, v, mask)
    return linear(b, names.out, core, model.hidden, bias=model.out_bias, split="row")


def attended_pairs(queries: int, keys: int, *, half: bool, window: int | None = None) -> float:
    """Pairs of query and key in one head, of `queries` that lie evenly among `keys`.

    `half`: what a causal mask leaves out is not computed: half of all pairs, the diagonal's own
    half included. A window leaves each query its last `window` keys: q w, of which the first w
    queries lack half.
    """
    span = keys if window is None else min(window, keys)
    pairs = float(queries * span)
    return pairs - queries / keys * span * span / 2 if half else pairs


def _grouped(b: Build, x: Value, tables: tuple[Value, Value] | None) -> tuple[Value, Value, Value]:
    """Three products, norms on queries and keys where the model has them, rotation."""
    t, model = b.tape, b.model
    heads = (model.heads // b.layout.tp, b.layout.kv_heads(model), b.layout.kv_heads(model))
    made = []
    for name, count in zip("qkv", heads, strict=True):
        width = count * model.width
        y = linear(b, f"{name}_proj", x, width, bias=model.qkv_bias, split="column")
        copies = b.kind in ("eager", "math") or (b.kind == "sdpa" and name != "v")
        y = f.view(t, y, (b.batch, b.seq, count, model.width), copies=copies)
        if model.qk_norm and name != "v":
            y = norm(b, f"{name}_norm", y)
        made.append(f.view(t, y, (b.batch, count, b.seq, model.width)))
    q, k, v = made
    if tables is not None:
        q, k = rotate(b, q, *tables), rotate(b, k, *tables)
    if b.kind == "torchtitan" and heads[0] > heads[1]:
        k, v = (products.repeated(t, x, q.shape) for x in (k, v))
    return q, k, v


def _fused(b: Build, x: Value, tables: tuple[Value, Value] | None) -> tuple[Value, Value, Value]:
    """One product, split into three views."""
    t, model = b.tape, b.model
    counts = (model.heads // b.layout.tp, b.layout.kv_heads(model), b.layout.kv_heads(model))
    widths = [count * model.width for count in counts]
    y = linear(b, b.names.qkv, x, sum(widths), bias=model.qkv_bias, split="column")
    parts = [
        f.view(
            t, part, (b.batch, count, b.seq, model.width), copies=not (b.flash or b.fused or i == 1)
        )
        for i, (part, count) in enumerate(zip(f.split(t, y, widths), counts, strict=True))
    ]
    q, k, v = parts
    if tables is not None:
        q, k = rotate(b, q, *tables), rotate(b, k, *tables)
    return q, k, v


def _latent(b: Build, x: Value, tables: tuple[Value, Value] | None) -> tuple[Value, Value, Value]:
    """Keys and values from a latent that every rank has whole; one rotated key for all heads."""
    t, model = b.tape, b.model
    heads, rope = model.heads // b.layout.tp, model.rope_dim
    assert model.kv_lora is not None
    q = x
    if model.q_lora is not None:
        q = linear(b, "q_a_proj", x, model.q_lora, bias=False, split="replicated")
        q = norm(b, "q_a_layernorm", q)
    name = "q_proj" if model.q_lora is None else "q_b_proj"
    q = linear(b, name, q, heads * model.qk_width, bias=False, split="column")
    q = f.view(t, q, (b.batch, heads, b.seq, model.qk_width), copies=not b.fused)
    latent = linear(
        b, "kv_a_proj_with_mqa", x, model.kv_lora + rope, bias=False, split="replicated"
    )
    low, key_rope = f.split(t, latent, (model.kv_lora, rope))
    kv = linear(
        b, "kv_b_proj", norm(b, "kv_a_layernorm", low), heads * (model.width + model.v_width),
        bias=False, split="column",
    )  # fmt: skip
    kv = f.view(t, kv, (b.batch, heads, b.seq, model.width + model.v_width))
    k_plain, v = f.split(t, kv, (model.width, model.v_width))
    q_plain, q_rope = f.split(t, q, (model.width, rope))
    key_rope = f.view(t, key_rope, (b.batch, 1, b.seq, rope))
    if tables is not None:
        q_rope, key_rope = rotate(b, q_rope, *tables), rotate(b, key_rope, *tables)
    shape = (b.batch, heads, b.seq, model.qk_width)
    spread = products.repeated(t, key_rope, (b.batch, heads, b.seq, rope))
    q = f.concatenate(t, (q_plain, q_rope), shape)
    return q, f.concatenate(t, (k_plain, spread), shape), v


def _flash(b: Build, q: Value, k: Value, v: Value) -> Value:
    """Queries of this rank against all keys, which ring or gathered context parallelism brings."""
    t, model = b.tape, b.model
    pairs = attended_pairs(b.seq, b.full_seq, half=b.causal_half, window=model.sliding_window)
    k, v = _all_keys(b, k), _all_keys(b, v)
    pairs *= b.batch * q.shape[1]
    out = products.flash_attention(t, q, k, v, pairs, dropout=model.dropout)
    return f.view(t, out, (b.batch, b.seq, q.shape[1] * v.shape[-1]))


def _scores(b: Build, q: Value, k: Value, v: Value, mask: Value | None) -> Value:
    """Product, softmax, product: keeps the scores. `transformers` repeats KV heads first."""
    t, model = b.tape, b.model
    heads, keys = q.shape[1], b.full_seq
    k, v = _all_keys(b, k), _all_keys(b, v)
    repeats = heads // k.shape[1]
    if repeats > 1 and not b.fused:
        k, v = (products.repeated(t, x, (b.batch, heads, keys, x.shape[-1])) for x in (k, v))
    shape = (b.batch, heads, b.seq, keys)
    moved = () if b.fused else (q,) if repeats > 1 else (q, k)
    scores = products.batched_product(t, q, k, shape, model.qk_width, moved)
    if b.fused:
        shares = _masked_softmax(b, scores)
    else:
        scores = f.unary(t, "mul", scores)
        assert mask is not None
        scores = f.add(t, scores, mask)
        wide = FP32_BYTES if not b.names.conv else scores.element_bytes
        shares = f.cast(t, f.softmax(t, scores, wide), q.element_bytes)
    if model.dropout:
        shares = f.dropout(t, shares)
    moved = () if b.fused or repeats > 1 else (v,)
    out_shape = (b.batch, heads, b.seq, v.shape[-1])
    out = products.batched_product(t, shares, v, out_shape, keys, moved)
    out = f.view(t, out, out.shape, copies=True, name="matmul", node="UnsafeView")
    return _by_token(b, out, "reshape" if b.names.conv else "contiguous")


def _by_token(b: Build, x: Value, name: str) -> Value:
    """The heads of each token side by side, which is a copy after an unfused product."""
    flat = (b.batch, b.seq, x.shape[1] * x.shape[-1])
    return f.contiguous(b.tape, x, flat, name)


def _all_keys(b: Build, x: Value) -> Value:
    """Keys or values of the whole sequence, which the other context-parallel ranks send."""
    if x.shape[2] == b.full_seq:
        return x
    return f.view(b.tape, x, (*x.shape[:2], b.full_seq, x.shape[3]))


def _masked_softmax(b: Build, scores: Value) -> Value:
    """Scale, mask and softmax in one kernel, which writes all and reads what the mask leaves.

    Megatron's kernel takes heads of samples by fours; for other numbers there is one per step.
    """
    t = b.tape
    if (b.batch * scores.shape[1]) % SOFTMAX_HEADS:
        return _softmax_by_steps(b, scores)
    out = t.new(scores.shape, like=scores)
    share = attended_pairs(b.seq, b.full_seq, half=True) / (b.seq * b.full_seq)
    t.start("scaled_masked_softmax")
    moved = (1 + share) * out.bytes
    t.kernel("reduction", scores.numel, (scores,), (out,), moved_bytes=moved)

    def backward(g: Value) -> None:
        back = t.new(scores.shape, like=scores)
        moved = (1 + 2 * share) * back.bytes
        t.kernel("reduction", scores.numel, (g, out), (back,), moved_bytes=moved)
        t.give(scores, back)

    t.done(out, node="ScaledMaskedSoftmax", backward=backward, saves=(out,))
    return out


def _softmax_by_steps(b: Build, scores: Value) -> Value:
    """In float32: scaled, masked, then softmax."""
    t = b.tape
    x = f.unary(t, "mul", f.cast(t, scores, FP32_BYTES))
    x = f.unary(t, "masked_fill", x)
    return f.cast(t, f.softmax(t, x, FP32_BYTES), scores.element_bytes)


def _math(b: Build, q: Value, k: Value, v: Value) -> Value:
    """torch's own unfused form of its fused operator: float32 throughout, scaled on both sides."""
    t = b.tape
    out = t.whole("scaled_dot_product_attention", lambda: _math_core(b, q, k, v))
    return _by_token(b, out, "contiguous")


def _math_core(b: Build, q: Value, k: Value, v: Value) -> Value:
    t, heads, keys = b.tape, q.shape[1], b.full_seq
    size = q.element_bytes
    q, k, v = (f.cast(t, x, FP32_BYTES) for x in (q, _all_keys(b, k), _all_keys(b, v)))
    q = f.unary(t, "mul", q, node="MulScalar")
    mask = _triangle(b)
    repeats = heads // k.shape[1]
    if repeats > 1:
        k, v = (products.repeated(t, x, (b.batch, heads, keys, x.shape[-1])) for x in (k, v))
    k = f.unary(t, "mul", k, node="MulScalar")
    shape = (b.batch, heads, b.seq, keys)
    moved = (q,) if repeats > 1 else (q, k)
    scores = products.batched_product(t, q, k, shape, b.model.qk_width, moved)
    shares = f.softmax(t, f.add(t, scores, mask), FP32_BYTES, node="SafeSoftmax")
    if b.model.dropout:
        shares = _math_dropout(b, shares)
    if size != FP32_BYTES:  # the weights are a result too, which nobody reads
        f.copied(t, shares, t.sized(shares.shape, size))
    out_shape = (b.batch, heads, b.seq, v.shape[-1])
    out = products.batched_product(t, shares, v, out_shape, keys, () if repeats > 1 else (v,))
    return f.cast(t, f.view(t, out, out.shape, copies=True, node="UnsafeView"), size)


def _triangle(b: Build) -> Value:
    """The causal mask, made anew in every layer."""
    t, shape = b.tape, (b.seq, b.full_seq)
    allowed, low = t.sized(shape, 1, "mask"), t.sized(shape, 1, "mask")
    added = t.given(shape, FP32_BYTES, "attn_bias")
    t.kernel("copy", 0, (), (allowed,))
    f.pointwise(t, (allowed,), low)
    f.pointwise(t, (low,), added)
    return added


def _math_dropout(b: Build, x: Value) -> Value:
    """A mask of float32: drawn, scaled, multiplied."""
    t = b.tape
    mask = t.sized(x.shape, FP32_BYTES, "mask")
    mask.differentiable = False
    f.pointwise(t, (), mask)
    f.pointwise(t, (mask,), mask)
    return f.mul(t, x, mask)
