"""What the tracer recorded: one training step on one GPU.

A trace is plain data. What its tensors mean to each other (which share memory, which are trained,
which backward operator belongs to which forward operator) is derived in `triosim.trace.memory`,
`triosim.trace.parameters` and `triosim.trace.partners`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

from triosim.hardware import Gpu

PHASES = ("forward", "backward", "optimizer")
PROVENANCES = ("measured", "scaled", "roofline")


@dataclass(frozen=True, kw_only=True, slots=True)
class Tensor:
    """One tensor of the step.

    `storage` is the address of its memory: several tensors may share it, and the allocator may give
    it to another tensor later in the step.
    """

    id: int
    storage: int
    shape: tuple[int, ...]
    numel: int
    element_bytes: int
    kind: str = ""

    @property
    def bytes(self) -> int:
        return self.numel * self.element_bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Operator:
    """One operator in the order of execution; `time_s` is its GPU time without overlaps.

    `tensor_parallel` is the trace's tpflag: whether TrioSim's case 3 splits the operator over the
    GPUs; None where the trace does not say. The rest is known for some traces only: the path of the
    module that ran it, floating-point operations and bytes moved, the type it computes in, what it
    saves for backward, and where its time comes from ("measured", "scaled" or "roofline").
    """

    id: int
    name: str
    phase: str
    time_s: float
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    tensor_parallel: bool | None = None
    busy_time_s: float | None = None
    module: str = ""
    flops: float | None = None
    bytes: float | None = None
    dtype: str = ""
    saved_bytes: int | None = None
    provenance: str = "measured"


@dataclass(frozen=True, kw_only=True)
class Trace:
    """The operators of one step in execution order.

    `batch_size` is what the trace says about itself (see `triosim.trace.read`); `gpu` is what its
    times are for, None where unknown (see `triosim.trace.scale`). Equality is identity: a trace is
    loaded once and shared.
    """

    name: str
    operators: tuple[Operator, ...]
    batch_size: int
    meta: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    gpu: Gpu | None = None

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    def phase(self, phase: str) -> Sequence[int]:
        """Indices of the operators of one phase, in execution order."""
        return self._by_phase[phase]

    @cached_property
    def _by_phase(self) -> dict[str, tuple[int, ...]]:
        found: dict[str, list[int]] = {phase: [] for phase in PHASES}
        for i, op in enumerate(self.operators):
            found[op.phase].append(i)
        return {phase: tuple(indices) for phase, indices in found.items()}

    @property
    def total_s(self) -> float:
        return sum(op.time_s for op in self.operators)

    def at_batch(self, batch_size: int) -> Trace:
        """The same trace, said to be taken at another batch size."""
        return _at_batch(self, batch_size)


@lru_cache(maxsize=64)
def _at_batch(trace: Trace, batch_size: int) -> Trace:
    return replace(trace, batch_size=batch_size)
