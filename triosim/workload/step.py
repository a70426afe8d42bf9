"""A whole training step of a transformer as an ordinary trace, on one GPU, by the roofline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import prod
from typing import Any

from triosim.hardware import Gpu, load_gpu, predict_s
from triosim.trace import Operator, Tensor, Trace
from triosim.workload.block import ELEMENT_BYTES, Block, Op, block_of, parts_of
from triosim.workload.model import Transformer
from triosim.workload.optimizer import optimizer_steps
from triosim.workload.parameters import count_parameters
from triosim.workload.tape import Storage, Value

# Made once by the embedding's block and read by every layer.
_SHARED = ("cos", "sin", "attn_mask")
# What TrioSim's case 3 splits, by the forward operator's name.
_SPLIT_BY_CASE_3 = (
    "aten::linear", "aten::addmm", "aten::embedding", "aten::matmul", "aten::_grouped_mm",
)  # fmt: skip


def trace_of(
    model: Transformer,
    *,
    batch: int,
    seq: int,
    gpu: str | Gpu,
    dtype: str = "bf16",
    implementation: str = "sdpa",
    optimizer: str = "adamw",
    causal_half: bool | None = None,
) -> Trace:
    """One step of `batch` samples of `seq` tokens: operators, tensors and times.

    With "sdpa", "math" or "eager" the same operators as `tracer/synthesize.py` derives from the
    modules of `transformers`, but for the whole numbers that prepare positions, masks and labels.
    Raises `ConfigError` for what the model cannot do.
    """
    device = load_gpu(gpu) if isinstance(gpu, str) else gpu
    uses = []
    for number, part in enumerate(parts_of(model)):
        block = block_of(
            model, part, batch=batch, seq=seq, dtype=dtype, implementation=implementation,
            causal_half=causal_half,
        )  # fmt: skip
        uses.append(_Use(block, number - 1))
    step = _Step(device)
    step.connect(uses)
    operators = [*step.forward(uses), *step.backward(uses)]
    operators += step.optimize(uses, optimizer, dtype)
    return Trace(
        name=model.name,
        operators=tuple(
            Operator(id=number, **fields) for number, fields in enumerate(operators, start=1)
        ),
        batch_size=batch,
        gpu=device,
        meta={
            "source": "derived", "model": model.name, "gpu": device.name, "dtype": dtype,
            "optimizer": optimizer, "attention": implementation, "seq_len": seq,
            "parameters": count_parameters(model).total,
            "notes": ["Operators and times are computed from the model's description."],
        },
    )  # fmt: skip


@dataclass(eq=False)
class _Use:
    """A block at one place of the model; `layer` is its number where it is a layer."""

    block: Block
    layer: int


class _Step:
    """Gives every tensor of every use of a block a number of its own."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._next = 1
        self._tensors: dict[tuple[_Use | None, Value], Tensor] = {}
        self._storages: dict[tuple[_Use | None, Storage], int] = {}
        self._shared: dict[str, Tensor] = {}
        self._found: dict[Block, list[_CallShape]] = {}

    def connect(self, uses: Sequence[_Use]) -> None:
        """What one block hands on is what the next one takes; so are gradients, the other way."""
        for before, after in pairwise(uses):
            assert after.block.entry is not None
            assert after.block.entry_gradient is not None
            self._same((before, before.block.exit), (after, after.block.entry))
            self._same((after, after.block.entry_gradient), (before, before.block.exit_gradient))
        first, head = uses[0], uses[-2]
        if first.block.tied is not None and head.block.tied is not None:
            self._same((first, first.block.tied), (head, head.block.tied))
            assert first.block.tied_gradient is not None
            assert head.block.tied_gradient is not None
            self._same((head, head.block.tied_gradient), (first, first.block.tied_gradient))

    def _same(self, known: tuple[_Use, Value], other: tuple[_Use, Value]) -> None:
        tensor = self.tensor(*known)
        self._tensors[other] = tensor
        self._storages[other[0], other[1].storage] = tensor.storage

    def tensor(self, use: _Use, value: Value) -> Tensor:
        key = (use, value)
        if key not in self._tensors:
            self._tensors[key] = self._describe(use, value)
        return self._tensors[key]

    def _describe(self, use: _Use, value: Value) -> Tensor:
        if value.kind in self._shared:
            return self._shared[value.kind]
        storage = (use, value.storage)
        if storage not in self._storages:
            self._storages[storage] = self._number()
        tensor = Tensor(
            id=self._number(),
            storage=self._storages[storage],
            shape=value.shape,
            numel=prod(value.shape),
            element_bytes=value.element_bytes,
            kind=value.kind,
        )
        if value.kind in _SHARED:
            self._shared[value.kind] = tensor
        return tensor

    def _number(self) -> int:
        self._next += 1
        return self._next - 1

    def forward(self, uses: Sequence[_Use]) -> Iterator[dict[str, Any]]:
        for use in uses:
            for call in self._calls(use.block, "forward"):
                yield self._operator(use, call)

    def backward(self, uses: Sequence[_Use]) -> Iterator[dict[str, Any]]:
        for use in reversed(uses):
            for call in self._calls(use.block, "backward"):
                yield self._operator(use, call)

    def _calls(self, block: Block, phase: str) -> list[_CallShape]:
        """The operators of one phase of a block, found once for all its uses."""
        if block not in self._found:
            self._found[block] = list(_calls(block, self._gpu))
        return [call for call in self._found[block] if call.ops[0].phase == phase]

    def _operator(self, use: _Use, call: _CallShape) -> dict[str, Any]:
        ops, first, times = call.ops, call.ops[0], call.times_s
        return {
            "name": first.name,
            "phase": first.phase,
            "time_s": _rounded(sum(times)),
            "inputs": tuple(self.tensor(use, value) for value in call.inputs),
            "outputs": tuple(self.tensor(use, value) for value in call.outputs),
            "tensor_parallel": first.origin.startswith(_SPLIT_BY_CASE_3),
            "module": first.module.format(use.layer),
            "flops": round(sum(op.flops for op in ops)),
            "bytes": sum(op.bytes for op in ops),
            "dtype": ops[times.index(max(times))].work.dtype,
            "saved_bytes": first.saved_bytes or None,
            "provenance": "roofline",
        }

    def optimize(
        self, uses: Sequence[_Use], optimizer: str, dtype: str
    ) -> Iterator[dict[str, Any]]:
        """The foreach operators over all parameters, whose state has the parameters' type."""
        owned = [
            (use, weight, gradient)
            for use in uses
            for weight, gradient in zip(use.block.parameters, use.block.gradients, strict=True)
        ]
        lists = {
            "p": [self.tensor(use, weight) for use, weight, _ in owned],
            "g": [self.tensor(use, gradient) for use, _, gradient in owned],
        }
        for name in "mvt":
            lists[name] = [self._state(tensor) for tensor in lists["p"]]
        sizes = [tensor.numel for tensor in lists["p"]]
        steps = optimizer_steps(sizes, optimizer, dtype=dtype, element_bytes=ELEMENT_BYTES[dtype])
        for step in steps:
            yield {
                "name": f"aten::{step.name}",
                "phase": "optimizer",
                "time_s": _rounded(predict_s(self._gpu, step.work)),
                "inputs": tuple(tensor for name in step.lists for tensor in lists[name]),
                "outputs": () if step.name.endswith("_") else tuple(lists["t"]),
                "tensor_parallel": False,
                "flops": round(step.work.flops),
                "bytes": round(step.work.bytes),
                "dtype": step.work.dtype,
                "provenance": "roofline",
            }

    def _state(self, parameter: Tensor) -> Tensor:
        return Tensor(
            id=self._number(),
            storage=self._number(),
            shape=parameter.shape,
            numel=parameter.numel,
            element_bytes=parameter.element_bytes,
            kind="state",
        )


def _rounded(seconds: float) -> float:
    """A profiler's nanoseconds, and as they are read back from a file."""
    return round(seconds * 1e6, 3) * 1e-6


@dataclass(frozen=True, slots=True)
class _CallShape:
    """The operators that a trace shows as one, what they read from outside and leave behind."""

    ops: tuple[Op, ...]
    times_s: tuple[float, ...]
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]


def _calls(block: Block, gpu: Gpu) -> Iterator[_CallShape]:
    later = _last_reads(block)
    timed = zip(block.ops, block.times_s(gpu), strict=True)
    for number, group in groupby(timed, key=lambda pair: pair[0].call):
        ops, times_s = zip(*group, strict=True)
        yield _shape(ops, times_s, number, later)


def _shape(
    ops: tuple[Op, ...], times_s: tuple[float, ...], number: int, later: dict[Storage, int]
) -> _CallShape:
    """A memory counts once, as it was first read or last written."""
    read: dict[Storage, Value] = {}
    made: dict[Storage, Value] = {}
    for op in ops:
        for value in op.kernel.reads:
            if value.storage not in made:
                read.setdefault(value.storage, value)
        for value in op.kernel.writes:
            made[value.storage] = value
    outputs = ops[0].outputs
    if not outputs:
        kept = [value for value in made.values() if later.get(value.storage, -1) > number]
        outputs = tuple(kept or made.values())
    return _CallShape(ops, times_s, tuple(read.values()), outputs)


def _last_reads(block: Block) -> dict[Storage, int]:
    """The last call that reads each memory; gradients that leave the block are read after it."""
    last = {value.storage: op.call for op in block.ops for value in op.kernel.reads}
    leaving = [*block.gradients, block.entry_gradient, block.tied_gradient]
    end = len(block.ops)
    return {**last, **{value.storage: end for value in leaving if value is not None}}
