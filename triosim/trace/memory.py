"""Which tensors of a trace are the same memory, and from when to when it is in use.

A storage id is an address, and the allocator reuses addresses. A *buffer* is one life of a storage:
it ends when an operator writes a new tensor into that storage, that is an output whose storage none
of the operator's inputs has (an output that shares an input's storage is a view or an in-place
update). A buffer is as large as its largest tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache

from triosim.trace.model import Tensor, Trace
from triosim.trace.parameters import Parameters, find_parameters


class Origin(StrEnum):
    """Where a buffer comes from."""

    EXISTING = "existing"  # first seen as an input of a forward or optimizer operator
    SAVED = "saved"  # first seen as an input of a backward operator: this step's forward made it
    PRODUCED = "produced"  # written by an operator of this step


class Role(StrEnum):
    """What a buffer is for; the categories of the memory curve."""

    PARAMETERS = "parameters"
    GRADIENTS = "gradients"
    OPTIMIZER = "optimizer"
    INPUTS = "inputs"
    ACTIVATIONS = "activations"


@dataclass(slots=True)
class Buffer:
    """One life of a storage. `uses` are the operators that read, update or write it, ascending;
    `tensors` are in the order of first use."""

    index: int
    origin: Origin
    bytes: int
    tensors: dict[Tensor, None]
    uses: list[int] = field(default_factory=list)
    role: Role = Role.ACTIVATIONS
    scales: bool = True
    parameter: int | None = None
    dirty: bool = False

    def touch(self, operator: int, tensor: Tensor) -> None:
        self.bytes = max(self.bytes, tensor.bytes)
        self.tensors[tensor] = None
        if not self.uses or self.uses[-1] != operator:
            self.uses.append(operator)


@dataclass(frozen=True, kw_only=True, slots=True)
class Memory:
    """The buffers of a trace, and for each operator those it uses and those it creates.

    `uses[i]` holds the buffers that operator i reads or updates, `creates[i]` those it allocates.
    """

    buffers: Sequence[Buffer]
    uses: Sequence[Sequence[int]]
    creates: Sequence[Sequence[int]]


@lru_cache(maxsize=32)
def find_memory(trace: Trace) -> Memory:
    """Walk the operators once and follow every storage."""
    buffers: list[Buffer] = []
    current: dict[int, Buffer] = {}
    uses: list[list[int]] = []
    creates: list[list[int]] = []

    def begin(operator: int, tensor: Tensor, origin: Origin) -> Buffer:
        buffer = Buffer(len(buffers), origin, tensor.bytes, {})
        buffers.append(buffer)
        current[tensor.storage] = buffer
        buffer.touch(operator, tensor)
        return buffer

    for i, op in enumerate(trace.operators):
        used: dict[int, None] = {}
        created: dict[int, None] = {}
        for tensor in op.inputs:
            buffer = current.get(tensor.storage)
            if buffer is None:
                saved = op.phase == "backward"
                buffer = begin(i, tensor, Origin.SAVED if saved else Origin.EXISTING)
            buffer.touch(i, tensor)
            buffer.dirty |= op.phase == "optimizer"
            used[buffer.index] = None
        held = {tensor.storage for tensor in op.inputs}
        for tensor in op.outputs:
            if tensor.storage in held:
                buffer = current[tensor.storage]
                buffer.touch(i, tensor)
                buffer.dirty = True
            else:
                buffer = begin(i, tensor, Origin.PRODUCED)
                buffer.dirty = True
                held.add(tensor.storage)
                created[buffer.index] = None
        uses.append([b for b in used if b not in created])
        creates.append(list(created))
    _assign_roles(trace, buffers, find_parameters(trace))
    return Memory(buffers=buffers, uses=uses, creates=creates)


def _assign_roles(trace: Trace, buffers: Sequence[Buffer], parameters: Parameters) -> None:
    gradients = {g.output for g in parameters.gradients if g.output is not None}
    for buffer in buffers:
        ids = {tensor.id for tensor in buffer.tensors}
        first = trace.operators[buffer.uses[0]].phase
        owners = [parameters.aligned[i] for i in ids if i in parameters.aligned]
        buffer.parameter = min(owners, default=None)
        if any(i in parameters.index for i in ids):
            buffer.role = Role.PARAMETERS
        elif any((use, i) in gradients for use in buffer.uses[:1] for i in ids):
            buffer.role = Role.GRADIENTS
        elif first == "optimizer":
            # Gradients that no backward operator names look like state: the trace cannot tell.
            buffer.role = Role.OPTIMIZER
        elif buffer.origin is Origin.EXISTING:
            buffer.role = Role.INPUTS if _is_input(buffer, trace) else Role.PARAMETERS
        buffer.scales = buffer.role in (Role.INPUTS, Role.ACTIVATIONS)


_WEIGHT_KINDS = ("weight", "bias", "running_")


def _is_input(buffer: Buffer, trace: Trace) -> bool:
    """Samples and labels grow with the batch; frozen weights and running statistics do not."""
    tensor = next(iter(buffer.tensors))
    batch_like = bool(tensor.shape) and tensor.shape[0] % trace.batch_size == 0
    return batch_like and not tensor.kind.startswith(_WEIGHT_KINDS)
