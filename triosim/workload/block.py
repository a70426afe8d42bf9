"""One part of a transformer as operators of one rank, forward and backward: made once, used often.

126 identical layers are one `Block` used 126 times: `block_of` is cached by everything it depends
on, and a block's module paths have a place for the layer's number.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from triosim.errors import ConfigError
from triosim.hardware import Gpu, Work, predict_s
from triosim.workload.layers import FLASH, Build
from triosim.workload.layout import WHOLE, Layout
from triosim.workload.model import Transformer
from triosim.workload.parts import BUILDERS, PARTS, entry_shape
from triosim.workload.tape import Call, Kernel, Tape, Value

# How a block is run: as `transformers` does, with eager attention or torch's fused operator in its
# unfused ("math") or its flash form ("sdpa"); and as training stacks do, with fused kernels around
# unfused (Megatron of 2021) or flash attention. "torchtitan" is "sdpa" with its model's own code:
# rotary positions as products of complex numbers, KV heads copied for every query head.
IMPLEMENTATIONS = ("eager", "math", "sdpa", "torchtitan", "megatron", "flash")
ELEMENT_BYTES = {"fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2}


@dataclass(frozen=True, kw_only=True, slots=True)
class Op:
    """One kernel or communication of a block.

    `module` has a place for the layer's number. `call` numbers what a trace shows as one operator:
    a product's backward is one operator and two or three of these, told apart by `part` ("dgrad",
    "wgrad", "bias", "accumulate"). `split` is a rule of `layout.SPLITS`; sizes are one rank's.
    `saved_bytes` is what the operator keeps for backward that nobody kept before. `origin` is the
    forward operator that one of backward belongs to.
    """

    name: str
    origin: str
    module: str
    phase: str
    split: str
    call: int
    kernel: Kernel
    saved_bytes: int
    outputs: tuple[Value, ...]

    @property
    def work(self) -> Work:
        return self.kernel.work

    @property
    def kind(self) -> str:
        return self.kernel.work.kind

    @property
    def part(self) -> str:
        return self.kernel.part

    @property
    def flops(self) -> float:
        return self.kernel.work.flops

    @property
    def bytes(self) -> int:
        return self.kernel.read_bytes + self.kernel.written_bytes

    @property
    def collective(self) -> str:
        """all_reduce, all_gather, reduce_scatter, all_to_all, or "" for a kernel."""
        return self.kernel.collective

    @property
    def axis(self) -> str:
        """What a collective runs over: "tp" or "ep"."""
        return self.kernel.axis

    @property
    def message_bytes(self) -> int:
        """Of a collective the whole array; of an all-to-all what one rank sends, also to itself."""
        return self.kernel.message_bytes


@dataclass(frozen=True, kw_only=True, eq=False)
class Block:
    """The operators of one part in order of execution, forward then backward.

    `entry` and `exit` are the tensors that it hands on, `entry_gradient` and `exit_gradient` their
    gradients (None at the ends of the model); `parameters` are one rank's. An entry that backward
    needs counts in `saved_bytes` here. `tied` is the table that embedding and head share, the
    embedding's parameter; its gradient comes from the head and is completed by the embedding.
    """

    part: str
    ops: tuple[Op, ...]
    parameters: tuple[Value, ...]
    gradients: tuple[Value, ...]
    entry: Value | None
    exit: Value
    entry_gradient: Value | None
    exit_gradient: Value
    tied: Value | None = None
    tied_gradient: Value | None = None
    _times: dict[int, tuple[Gpu, tuple[float, ...]]] = field(default_factory=dict, repr=False)

    @cached_property
    def forward(self) -> tuple[Op, ...]:
        return tuple(op for op in self.ops if op.phase == "forward")

    @cached_property
    def backward(self) -> tuple[Op, ...]:
        return tuple(op for op in self.ops if op.phase == "backward")

    @cached_property
    def forward_flops(self) -> float:
        return sum(op.flops for op in self.forward)

    @cached_property
    def backward_flops(self) -> float:
        return sum(op.flops for op in self.backward)

    @cached_property
    def saved_bytes(self) -> int:
        return sum(op.saved_bytes for op in self.ops)

    @cached_property
    def parameter_count(self) -> int:
        return sum(value.numel for value in self.parameters)

    def times_s(self, gpu: Gpu) -> tuple[float, ...]:
        """Seconds of every operator by the roofline; a communication takes none here."""
        known = self._times.get(id(gpu))
        if known is None:
            times = tuple(predict_s(gpu, op.work) for op in self.ops)
            known = self._times[id(gpu)] = (gpu, times)  # with the GPU, so that its id stays taken
        return known[1]


@lru_cache(maxsize=128)
def block_of(
    model: Transformer,
    part: str,
    *,
    batch: int,
    seq: int,
    dtype: str = "bf16",
    implementation: str = "sdpa",
    layout: Layout = WHOLE,
    causal_half: bool | None = None,
) -> Block:
    """One part of `PARTS` on one rank, for a micro-batch of `batch` samples of `seq` tokens.

    `causal_half`: attention computes only the half that its mask leaves; by default where it is
    flash attention. Raises `ConfigError` for what the model cannot do or be divided into.
    """
    _check(model, part, batch, seq, dtype, implementation, layout)
    cast_kind = "elementwise" if implementation == "torchtitan" else "copy"
    tape = Tape(dtype, ELEMENT_BYTES[dtype], cast_kind)
    build = Build(
        tape=tape,
        model=model,
        layout=layout,
        batch=batch,
        seq=seq // layout.cp,
        full_seq=seq,
        kind=implementation,
        causal_half=implementation in FLASH if causal_half is None else causal_half,
    )
    entry = None if part == "embedding" else tape.new(entry_shape(build, part))
    exit_ = BUILDERS[part](build, entry)
    exit_gradient = tape.new(exit_.shape, like=exit_, kind="grad_output")
    tied, known = _tied(tape, model, part), {exit_: exit_gradient}
    if tied is not None and part == "embedding":
        known[tied] = tape.new(tied.shape, kind="grad_output")
    tied_gradient = known.get(tied) if tied is not None else None
    tape.run_backward(known)
    if tied is not None and part == "head":
        tied_gradient = tape.gradients[tied]
    return Block(
        part=part,
        ops=tuple(op for number, call in enumerate(tape.calls) for op in _ops(number, call)),
        parameters=tuple(tape.parameters),
        gradients=tuple(tape.gradients[value] for value in tape.parameters),
        entry=entry,
        exit=exit_,
        entry_gradient=None if entry is None else tape.gradients[entry],
        exit_gradient=exit_gradient,
        tied=tied,
        tied_gradient=tied_gradient,
    )


def _tied(tape: Tape, model: Transformer, part: str) -> Value | None:
    """The table that embedding and head share."""
    if not model.tied or part not in ("embedding", "head"):
        return None
    return next(v for v in (*tape.parameters, *tape.shared) if v.path.endswith(".weight"))


def parts_of(model: Transformer) -> tuple[str, ...]:
    """The parts of the whole model in order, one entry per layer."""
    layers = ("dense",) * (model.layers - model.moe_layers) + ("moe",) * model.moe_layers
    return ("embedding", *layers, "norm", "head", "loss")


def _check(
    model: Transformer, part: str, batch: int, seq: int, dtype: str, implementation: str,
    layout: Layout,
) -> None:  # fmt: skip
    for name, count in (("batch", batch), ("seq_len", seq)):
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ConfigError(name, count, "must be a whole number from 1")
    for name, value, legal in (
        ("part", part, PARTS),
        ("dtype", dtype, tuple(ELEMENT_BYTES)),
        ("implementation", implementation, IMPLEMENTATIONS),
    ):
        if value not in legal:
            raise ConfigError(name, value, f"must be {', '.join(legal[:-1])} or {legal[-1]}")
    if model.positions == "learned" and seq > model.seq_len:
        raise ConfigError("seq_len", seq, f"{model.name} has positions for {model.seq_len} tokens")
    if part == "moe" and not model.experts:
        raise ConfigError("part", part, f"{model.name} has no experts")
    layout.check(model, seq)


def _ops(number: int, call: Call) -> list[Op]:
    return [
        Op(
            name=call.name,
            origin=call.origin,
            module=call.module,
            phase=call.phase,
            split=call.split,
            call=number,
            kernel=kernel,
            saved_bytes=call.saved_bytes if i == 0 else 0,
            outputs=call.outputs,
        )
        for i, kernel in enumerate(call.kernels)
    ]
