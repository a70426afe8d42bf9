"""The parts of a transformer on a tape: embedding, norms, attention, MLP, experts, head, loss.

Written twice where it matters: as the modules of `transformers` run it (a kernel per step), and
`fused` as training stacks do (one kernel per norm, rotation and activation).
"""

from __future__ import annotations

from dataclasses import dataclass

from triosim.workload import functions as f
from triosim.workload import products
from triosim.workload.layout import Layout
from triosim.workload.model import Transformer
from triosim.workload.names import Names, names_of
from triosim.workload.tape import FP32_BYTES, Tape, Value

INDEX_BYTES = 8
FLASH = ("sdpa", "torchtitan", "flash")


@dataclass(frozen=True, kw_only=True)
class Build:
    """What is built: `seq` tokens of each sample on this rank of all `full_seq`.

    `kind` is one of `block.IMPLEMENTATIONS`.
    """

    tape: Tape
    model: Transformer
    layout: Layout
    batch: int
    seq: int
    full_seq: int
    kind: str
    causal_half: bool

    @property
    def fused(self) -> bool:
        """One kernel per norm, rotation and activation."""
        return self.kind in ("megatron", "flash")

    @property
    def flash(self) -> bool:
        """Attention that never stores the scores."""
        return self.kind in FLASH

    @property
    def names(self) -> Names:
        return names_of(self.model)

    @property
    def whole(self) -> tuple[int, int, int]:
        """Activations that every tensor-parallel rank has whole."""
        return self.batch, self.seq, self.model.hidden

    @property
    def shard(self) -> tuple[int, int, int]:
        """Activations between the products: divided by tokens under sequence parallelism."""
        ways = self.layout.tp if self.layout.sequence_parallel else 1
        return self.batch, self.seq // ways, self.model.hidden


def enter(b: Build, x: Value) -> Value:
    """Into a region divided by features: gather the tokens; or, on the way back, sum gradients."""
    t, tp = b.tape, b.layout.tp
    if tp == 1:
        return x
    size = b.batch * b.seq * x.shape[-1] * x.element_bytes
    out = t.new((b.batch, b.seq, x.shape[-1]), like=x)
    sequence = b.layout.sequence_parallel
    if not sequence:
        out.storage = x.storage
    elif not b.layout.keep_gathered:
        out.storage.shard = x.storage

    def backward(g: Value) -> None:
        back = t.new(x.shape, like=x)
        t.communicate("reduce_scatter" if sequence else "all_reduce", "tp", size, g, back)
        t.give(x, back)

    t.start("all_gather")
    if sequence:
        t.communicate("all_gather", "tp", size, x, out)
    t.done(out, node="AllGather", backward=backward)
    return out


def leave(b: Build, x: Value) -> Value:
    """Out of it: the ranks' parts of a sum are added, and the tokens divided again."""
    t, tp = b.tape, b.layout.tp
    if tp == 1:
        return x
    out = t.new(b.shard, like=x)
    sequence = b.layout.sequence_parallel

    def backward(g: Value) -> None:
        back = t.new(x.shape, like=x) if sequence else g
        if sequence:
            t.communicate("all_gather", "tp", x.bytes, g, back)
        t.give(x, back)

    t.start("reduce_scatter" if sequence else "all_reduce")
    t.communicate("reduce_scatter" if sequence else "all_reduce", "tp", x.bytes, x, out)
    t.done(out, node="AllReduce", backward=backward)
    return out


def norm(b: Build, name: str, x: Value) -> Value:
    """Layer norm, or root mean square as `transformers` computes it: in float32, by steps."""
    t = b.tape
    with t.at(name):
        weight = t.parameter("weight", (x.shape[-1],))
        if b.model.norm == "layer":
            stats = FP32_BYTES if b.fused else x.element_bytes
            bias = t.parameter("bias", (x.shape[-1],))
            return f.layer_norm(t, x, weight, bias, statistics_bytes=stats)
        if b.fused:
            return f.rms_norm(t, x, weight)
        wide = f.cast(t, x, FP32_BYTES)
        scale = f.rsqrt(t, f.add_number(t, f.mean(t, f.power(t, wide))))
        return f.mul(t, weight, f.cast(t, f.mul(t, wide, scale), x.element_bytes))


def linear(b: Build, name: str, x: Value, n: int, *, bias: bool, split: str) -> Value:
    """A product with n features on this rank."""
    t = b.tape
    conv = b.names.conv
    with t.at(name, split):
        k = x.shape[-1]
        weight = t.parameter("weight", (k, n) if conv else (n, k))
        return products.linear(t, x, weight, t.parameter("bias", (n,)) if bias else None, conv=conv)


def rotate(b: Build, x: Value, cos: Value, sin: Value) -> Value:
    """Rotary positions on (batch, heads, length, width)."""
    t = b.tape
    if b.fused:
        return _rotate_fused(t, x, cos)
    if b.kind == "torchtitan":
        return _rotate_complex(t, x, cos)
    straight = f.mul(t, x, cos)
    first, second = f.half(t, x), f.half(t, x)
    turned = f.concatenate(t, (f.unary(t, "neg", second), first), x.shape)
    return f.add(t, straight, f.mul(t, turned, sin))


def _rotate_complex(t: Tape, x: Value, table: Value) -> Value:
    """In float32, pairs of numbers times complex ones; Inductor leaves the product to torch."""
    wide = f.cast(t, x, FP32_BYTES)
    out = t.new(wide.shape, like=wide)
    t.start("complex_mul")
    t.kernel("elementwise", 3 * wide.numel, (wide, table), (out,))

    def backward(g: Value) -> None:
        back = t.new(wide.shape, like=wide)
        t.kernel("elementwise", 3 * wide.numel, (g, table), (back,))
        t.give(wide, back)

    t.done(out, node="ComplexMul", backward=backward)
    return f.cast(t, out, x.element_bytes)


def _rotate_fused(t: Tape, x: Value, table: Value) -> Value:
    out = t.new(x.shape, like=x)
    t.start("rotary")
    t.kernel("elementwise", x.numel, (x, table), (out,))

    def backward(g: Value) -> None:
        back = t.new(x.shape, like=x)
        t.kernel("elementwise", x.numel, (g, table), (back,))
        t.give(x, back)

    t.done(out, node="Rotary", backward=backward)
    return out


def activate(b: Build, x: Value) -> Value:
    """The MLP's activation."""
    t, name = b.tape, b.model.activation
    with t.at("act_fn" if b.model.norm == "rms" else "act"):
        if name == "gelu_new" and not b.fused:
            return _gelu_new(t, x)
        keeps = "output" if name == "relu" else "input"
        return f.unary(t, name.removesuffix("_new"), x, keeps=keeps)


def _gated_fused(t: Tape, x: Value, gate: Value) -> Value:
    """One kernel each way; the activation is computed again in backward instead of kept."""
    out = t.new(x.shape, like=x)
    t.start("swiglu")
    t.kernel("elementwise", 2 * x.numel, (gate, x), (out,))

    def backward(g: Value) -> None:
        made = t.new(x.shape, like=x), t.new(x.shape, like=x)
        t.kernel("elementwise", 4 * x.numel, (g, gate, x), made)
        t.give(gate, made[0])
        t.give(x, made[1])

    t.done(out, node="SwiGLU", backward=backward, saves=(gate, x))
    return out


def _gelu_new(t: Tape, x: Value) -> Value:
    """0.5 x (1 + tanh(c (x + 0.044715 x^3))), a kernel per step."""
    scaled = f.unary(t, "mul", x)
    cubic = f.unary(t, "mul", f.power(t, x))
    inner = f.unary(t, "mul", f.add(t, x, cubic))
    return f.mul(t, scaled, f.add_number(t, f.unary(t, "tanh", inner, keeps="output")))


def mlp(b: Build, x: Value, ffn: int) -> Value:
    """Two or three products with the activation between; `ffn` features on this rank."""
    t, model, names = b.tape, b.model, b.names
    bias = model.mlp_bias
    if model.gated:
        gate = linear(b, names.gate, x, ffn, bias=bias, split="column")
    with t.at("", "column"):
        if not model.gated:
            inner = activate(b, linear(b, names.up, x, ffn, bias=bias, split="column"))
        elif b.fused:
            up = linear(b, names.up, x, ffn, bias=bias, split="column")
            inner = _gated_fused(t, up, gate)
        else:
            active = activate(b, gate)
            inner = f.mul(t, active, linear(b, names.up, x, ffn, bias=bias, split="column"))
    return linear(b, names.down, inner, model.hidden, bias=bias, split="row")
