"""Writes down a computation on tensors without values, then differentiates it as autograd does.

`triosim.workload.functions` calls a `Tape` once per operator: which kernels it runs, what it keeps
for backward, and how to make gradients. Backward runs nodes in the reverse order of their making
(autograd's order in a graph of one device). Where a second gradient of a tensor arrives, the sum
belongs to the node that made the second one, as autograd has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod

from triosim.hardware import Work

FP32_BYTES = 4
_NODES = {
    "Mean": "MeanBackward1",
    "MulScalar": "MulBackward1",
}  # torch numbers the forms of one operator


@dataclass(eq=False, slots=True)
class Storage:
    """One piece of memory. `kept` lives anyway (parameters, tables) or is already counted.

    `shard` is what backward keeps in this one's place and gathers again.
    """

    bytes: int
    kept: bool = False
    shard: Storage | None = None


@dataclass(eq=False, slots=True)
class Value:
    """A tensor: shape, bytes per element, memory. `kind` as in a trace ("weight", "output", ...).

    `path` is the parameter's name within its block, "" for all else.
    """

    shape: tuple[int, ...]
    element_bytes: int
    storage: Storage
    kind: str = "output"
    differentiable: bool = True
    path: str = ""

    @property
    def numel(self) -> int:
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.numel * self.element_bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Kernel:
    """One kernel of an operator, or one communication.

    `part`: "dgrad", "wgrad" and "bias" of a product's backward, "accumulate" for the sum with an
    earlier gradient, "regather" for a second gather in backward, else "". `work` is what a roofline
    takes; `read_bytes` and `written_bytes` are each operand once. A communication has a
    `collective` ("all_reduce", "all_gather", "reduce_scatter", "all_to_all"), the `axis` it runs
    over ("tp" or "ep") and `message_bytes`, the size of the whole array (of an all-to-all what one
    rank sends, its own part included).
    """

    work: Work
    read_bytes: int = 0
    written_bytes: int = 0
    reads: tuple[Value, ...] = ()
    writes: tuple[Value, ...] = ()
    part: str = ""
    collective: str = ""
    axis: str = ""
    message_bytes: int = 0


@dataclass(slots=True)
class Call:
    """What a trace has as one operator; `origin` is the forward operator that it belongs to."""

    name: str
    phase: str
    module: str
    split: str
    origin: str
    kernels: list[Kernel] = field(default_factory=list)
    outputs: tuple[Value, ...] = ()
    saved_bytes: int = 0


@dataclass(slots=True)
class _Node:
    call: Call
    outputs: tuple[Value, ...]
    backward: Callable[..., None]


class Tape:
    """Records one block. `element_bytes` and `dtype` are those of weights and activations.

    `cast_kind` is what a cast counts as: "copy", as traces have it, or "elementwise": each element
    stays where it lies.
    """

    def __init__(self, dtype: str, element_bytes: int, cast_kind: str = "copy") -> None:
        self.cast_kind = cast_kind
        self.dtype = dtype
        self.element_bytes = element_bytes
        self.calls: list[Call] = []
        self.parameters: list[Value] = []
        self.shared: list[Value] = []
        self.gradients: dict[Value, Value] = {}
        self._nodes: list[_Node] = []
        self._module, self._split = "", "replicated"
        self._open = Call("", "", "", "", "")
        self._whole = False

    @contextmanager
    def at(self, module: str, split: str | None = None) -> Iterator[None]:
        """Operators inside run in a submodule, and divide by a rule of `layout.SPLITS`."""
        before = self._module, self._split
        self._module = f"{self._module}.{module}".strip(".") if module else self._module
        self._split = split or self._split
        try:
            yield
        finally:
            self._module, self._split = before

    def new(self, shape: Sequence[int], like: Value | None = None, kind: str = "output") -> Value:
        """Fresh memory, of the tape's type or another tensor's."""
        size = self.element_bytes if like is None else like.element_bytes
        return self.sized(shape, size, kind)

    @staticmethod
    def sized(shape: Sequence[int], element_bytes: int, kind: str = "output") -> Value:
        return Value(tuple(shape), element_bytes, Storage(prod(shape) * element_bytes), kind)

    def given(self, shape: Sequence[int], element_bytes: int, kind: str) -> Value:
        """A constant from outside, which needs no gradient and lives anyway."""
        value = self.sized(shape, element_bytes, kind)
        value.storage.kept, value.differentiable = True, False
        return value

    def parameter(self, name: str, shape: Sequence[int], *, shared: bool = False) -> Value:
        """A trained tensor of the current module; a `shared` one belongs to another block."""
        value = self.new(shape, kind="bias" if name == "bias" else "weight")
        value.storage.kept = True
        value.path = f"{self._module}.{name}"
        (self.shared if shared else self.parameters).append(value)
        return value

    def start(self, name: str) -> None:
        """Open an operator: kernels go under it until `done`."""
        if self._whole:
            return
        full = f"aten::{name}"
        self._open = Call(full, "forward", self._module, self._split, full)

    def kernel(
        self,
        kind: str,
        flops: float,
        reads: Sequence[Value],
        writes: Sequence[Value],
        *,
        shape: tuple[int, int, int] | None = None,
        part: str = "",
        read_bytes: int | None = None,
        written_bytes: int | None = None,
        moved_bytes: float | None = None,
    ) -> None:
        """One kernel of the open operator, which reads and writes each operand once.

        `moved_bytes` is for kernels that pass over operands more often than that.
        """
        read = sum(v.bytes for v in reads) if read_bytes is None else read_bytes
        written = sum(v.bytes for v in writes) if written_bytes is None else written_bytes
        work = Work(
            kind=kind,
            flops=flops,
            bytes=read + written if moved_bytes is None else moved_bytes,
            dtype=self._dtype(kind, (*reads, *writes)),
            shape=shape,
        )
        self._open.kernels.append(
            Kernel(
                work=work,
                read_bytes=read,
                written_bytes=written,
                reads=tuple(reads),
                writes=tuple(writes),
                part=part,
            )
        )

    def _dtype(self, kind: str, values: Sequence[Value]) -> str:
        """The type of the largest operand with a fraction; sums in half precision run in fp32."""
        floats = [v for v in values if v.element_bytes in (2, FP32_BYTES)]
        largest = max(floats, key=lambda v: v.numel, default=None)
        if largest is None or largest.element_bytes != self.element_bytes:
            return "fp32"
        if self.dtype == "tf32":
            return "tf32" if kind in ("gemm", "attention") else "fp32"
        return self.dtype

    def communicate(
        self, collective: str, axis: str, message_bytes: int, reads: Value, writes: Value,
        part: str = "",
    ) -> None:  # fmt: skip
        """A collective of the open operator; its time is the network's."""
        work = Work(kind="other", flops=0, bytes=0, dtype=self.dtype, kernels=0)
        self._open.kernels.append(
            Kernel(
                work=work,
                reads=(reads,),
                writes=(writes,),
                part=part,
                collective=collective,
                axis=axis,
                message_bytes=message_bytes,
            )
        )

    def done(
        self,
        *outputs: Value,
        node: str,
        backward: Callable[..., None] | None,
        saves: Sequence[Value] = (),
    ) -> None:
        """Close the operator; `backward(*gradients)` makes the gradients of what it read."""
        call = self._open
        if not self._whole:
            self._close(outputs)
        if backward is None:
            for value in outputs:
                value.differentiable = False
            return
        call.saved_bytes += sum(_save(value.storage) for value in saves)
        self.node(node, outputs, backward)

    def _close(self, outputs: tuple[Value, ...]) -> None:
        self._open.outputs = outputs
        if self._open.kernels:
            self.calls.append(self._open)

    def whole(self, name: str, compute: Callable[[], Value]) -> Value:
        """One operator that is made of others, as torch's composite ones: their kernels are its."""
        self.start(name)
        self._whole = True
        out = compute()
        self._whole = False
        self._close((out,))
        return out

    def node(self, name: str, outputs: tuple[Value, ...], backward: Callable[..., None]) -> None:
        """A step of backward: given the gradients of `outputs` it gives those of what made them."""
        full = f"autograd::engine::evaluate_function: {_NODES.get(name, name + 'Backward0')}"
        call = Call(full, "backward", self._module, self._split, self._open.name)
        self._nodes.append(_Node(call, outputs, backward))

    def keep(self, value: Value) -> None:
        """Backward of other blocks keeps this: counted with the operator that ended last."""
        self.calls[-1].saved_bytes += _save(value.storage)

    def give(self, value: Value, gradient: Value) -> None:
        """A gradient of a tensor that the running node made."""
        if not value.differentiable:
            return
        gradient.kind = "grad_output"
        earlier = self.gradients.get(value)
        if earlier is not None:
            total = self.new(value.shape, like=value, kind="grad_output")
            self.kernel(
                "elementwise", value.numel, (earlier, gradient), (total,), part="accumulate"
            )
            gradient = total
        self.gradients[value] = gradient

    def run_backward(self, known: Mapping[Value, Value]) -> None:
        """Every node once, the last made first, from known gradients of tensors."""
        self.gradients.update(known)
        for node in reversed(self._nodes):
            incoming = [self.gradients.pop(value, None) for value in node.outputs]
            if all(gradient is None for gradient in incoming):
                continue
            self._open = node.call
            node.backward(*incoming)
            if node.call.kernels:
                self.calls.append(node.call)


def _save(storage: Storage) -> int:
    """Bytes that backward keeps alive and nobody has counted yet."""
    root = storage.shard or storage
    if root.kept:
        return 0
    root.kept = True
    return root.bytes
