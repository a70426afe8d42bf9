"""The parts that a transformer is made of, each on a tape of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil

from triosim.workload import functions as f
from triosim.workload import products
from triosim.workload.attention import attention
from triosim.workload.experts import experts
from triosim.workload.layers import INDEX_BYTES, Build, enter, leave, mlp, norm
from triosim.workload.losses import parallel_cross_entropy
from triosim.workload.tape import FP32_BYTES, Value

PARTS = ("embedding", "dense", "moe", "norm", "head", "loss")


def entry_shape(b: Build, part: str) -> tuple[int, ...]:
    if part == "loss":
        local = b.layout.tp if b.layout.loss_parallel else 1
        return b.batch, b.seq, ceil(b.model.vocab / local)
    return b.shard


def _embedding(b: Build, _: Value | None) -> Value:
    """Tokens, positions or the tables of rotations; vocabulary rows are divided over tp."""
    t, model, names = b.tape, b.model, b.names
    tokens = t.sized((b.batch, b.seq), INDEX_BYTES, "indices")
    with t.at(names.embedding, "vocab"):
        table = t.parameter("weight", (ceil(model.vocab / b.layout.tp), model.hidden))
        x = leave(b, f.embedding(t, table, tokens, b.whole))
    with t.at(names.root, "replicated"):
        positions = t.sized((1, b.seq), INDEX_BYTES, "indices")
        t.start("arange")
        t.kernel("copy", 0, (), (positions,))
        t.done(positions, node="Arange", backward=None)
        if b.kind == "eager":
            _causal_mask(b)
        if model.positions == "rotary" and b.kind != "torchtitan":
            _rotary_tables(b, positions)
    if model.positions == "learned":
        with t.at(names.positions, "sequence"):
            table = t.parameter("weight", (model.seq_len, model.hidden))
            rows = f.embedding(t, table, positions, (1, *b.shard[1:]))
        with t.at(names.root, "sequence"):
            x = f.add(t, x, rows)
    if model.dropout:
        with t.at(f"{names.root}.drop", "sequence"):
            x = f.dropout(t, x)
    return x


def _rotary_tables(b: Build, positions: Value) -> None:
    """Cosines and sines of every position, computed once a step; backward keeps both."""
    t = b.tape
    width = b.model.rope_dim or b.model.width
    with t.at("rotary_emb"):
        wide = t.sized(positions.shape, FP32_BYTES)
        t.start("to")
        f.copied(t, positions, wide)
        t.done(wide, node="ToCopy", backward=None)
        inverse = t.given((width // 2,), FP32_BYTES, "inv_freq")
        angles = t.sized((1, b.seq, width // 2), FP32_BYTES)
        t.start("mul")
        f.pointwise(t, (wide, inverse), angles)
        t.done(angles, node="Mul", backward=None)
        both = f.concatenate(t, (angles, angles), (1, b.seq, width))
        tables = []
        for name in ("cos", "sin"):
            table = t.sized(both.shape, FP32_BYTES)
            for step, source in ((name, both), ("mul", table)):
                t.start(step)
                f.pointwise(t, (source,), table)
                t.done(table, node="", backward=None)
            tables.append(table)
        for name, table in zip(("cos", "sin"), tables, strict=True):
            last = f.cast(t, table, t.element_bytes)
            last.kind = name
            t.keep(last)


def _causal_mask(b: Build) -> None:
    """Which keys each query sees, as numbers to add to its scores."""
    t = b.tape
    allowed = t.sized((1, 1, b.seq, b.full_seq), 1, "mask")
    added = t.new((b.batch, 1, b.seq, b.full_seq), kind="attn_mask")
    t.start("le")
    f.pointwise(t, (), allowed)
    t.done(allowed, node="", backward=None)
    t.start("where")
    t.kernel("elementwise", added.numel, (allowed,), (added,))
    t.done(added, node="", backward=None)


def _layer(b: Build, entry: Value | None, *, moe: bool) -> Value:
    """Norm, attention, sum, norm, MLP or experts, sum."""
    assert entry is not None
    t, model, names = b.tape, b.model, b.names
    tables, mask = _given_tables(b)
    with t.at(names.layer, "sequence"):
        first = norm(b, names.first_norm, entry)
        with t.at(names.attention):
            x = leave(b, attention(b, enter(b, first), tables, mask))
        middle = _joined(b, entry, x, names.attention, "resid_dropout")
        second = norm(b, names.second_norm, entry if model.parallel else middle)
        with t.at(names.mlp):
            inside = enter(b, second)
            x = experts(b, inside) if moe else mlp(b, inside, model.ffn // b.layout.tp)
            x = leave(b, x)
        return _joined(b, middle, x, names.mlp, "dropout")


def _joined(b: Build, residual: Value, x: Value, part: str, name: str) -> Value:
    """The residual stream with a part's result, in one kernel with its dropout where fused."""
    t, dropout = b.tape, b.model.dropout
    if dropout and b.fused:
        return f.dropout_add(t, x, residual)
    if dropout:
        with t.at(part), t.at(name):
            x = f.dropout(t, x)
    return f.add(t, residual, x)


def _given_tables(b: Build) -> tuple[tuple[Value, Value] | None, Value | None]:
    """What the embedding's block made for all layers: rotations, and the mask of unfused scores."""
    t, tables, mask = b.tape, None, None
    if b.model.positions == "rotary":
        shape = (1, 1, b.seq, b.model.rope_dim or b.model.width)
        size = FP32_BYTES if b.kind == "torchtitan" else t.element_bytes
        tables = (t.given(shape, size, "cos"), t.given(shape, size, "sin"))
    if b.kind == "eager":
        mask = t.given((b.batch, 1, b.seq, b.full_seq), t.element_bytes, "attn_mask")
    return tables, mask


def _final_norm(b: Build, entry: Value | None) -> Value:
    assert entry is not None
    with b.tape.at("", "sequence"):
        return norm(b, b.names.final_norm, entry)


def _head(b: Build, entry: Value | None) -> Value:
    """Logits: divided by vocabulary over tp, and gathered unless the loss takes the parts."""
    assert entry is not None
    t, model, layout = b.tape, b.model, b.layout
    with t.at(b.names.head, "vocab"):
        x = enter(b, entry)
        shape = (ceil(model.vocab / layout.tp), model.hidden)
        weight = t.parameter("weight", shape, shared=model.tied)
        logits = products.linear(t, x, weight, conv=False)
        if layout.tp == 1 or layout.loss_parallel:
            return logits
        whole = t.new((b.batch, b.seq, model.vocab))
        t.start("all_gather")
        t.communicate("all_gather", "tp", whole.bytes, logits, whole)
        t.done(
            whole, node="AllGather", backward=lambda g: t.give(logits, t.new(logits.shape, like=g))
        )
        return whole


def _loss(b: Build, entry: Value | None) -> Value:
    """Cross-entropy in float32."""
    assert entry is not None
    t = b.tape
    split = "vocab" if b.layout.loss_parallel else "replicated"
    with t.at("", split):
        logits = f.cast(t, entry, FP32_BYTES)
        targets = t.sized((b.batch * b.seq,), INDEX_BYTES, "target")
        if b.layout.loss_parallel and b.layout.tp > 1:
            return parallel_cross_entropy(t, logits, targets)
        return f.cross_entropy(t, logits, targets)


BUILDERS: Mapping[str, Callable[[Build, Value | None], Value]] = {
    "embedding": _embedding,
    "dense": lambda b, x: _layer(b, x, moe=False),
    "moe": lambda b, x: _layer(b, x, moe=True),
    "norm": _final_norm,
    "head": _head,
    "loss": _loss,
}
