"""The sizes of an operator's tensors at another batch, and the type that it computes in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from triosim.trace.model import Operator, Tensor

_FP32_BYTES = 4


@dataclass(frozen=True, slots=True)
class Sizes:
    """`share`: the new batch as a part of the trace's; `fixed`: ids of what stays as it is."""

    share: float = 1.0
    fixed: frozenset[int] = frozenset()

    def of(self, tensor: Tensor) -> float:
        """The tensor's size as a part of what it was; scalars stay."""
        return 1.0 if tensor.id in self.fixed or not tensor.shape else self.share

    def grows(self, tensor: Tensor) -> bool:
        return tensor.id not in self.fixed

    def bytes(self, tensors: Iterable[Tensor]) -> float:
        return sum(tensor.bytes * self.of(tensor) for tensor in tensors)


AS_TRACED = Sizes()


def compute_dtype(operator: Operator) -> str:
    """The operator's own column, else by the size of its elements."""
    if operator.dtype:
        return operator.dtype
    tensors = (*operator.inputs, *operator.outputs)
    size = next((t.element_bytes for t in tensors if t.shape), _FP32_BYTES)
    return {2: "bf16", 1: "fp8"}.get(size, "fp32")


def is_node(operator: Operator) -> bool:
    """Whether this is a node of autograd's graph, which makes all the gradients of its operator."""
    return "Backward" in operator.name


def is_backward(operator: Operator) -> bool:
    return "backward" in operator.name.rsplit("::", 1)[-1].lower()
