"""Operators and tensors of one training step on one GPU: reading, writing, checking, scaling."""

from triosim.trace.model import PHASES, PROVENANCES, Operator, Tensor, Trace
from triosim.trace.read import load_trace, read_trace
from triosim.trace.write import write_trace

__all__ = [
    "PHASES",
    "PROVENANCES",
    "Operator",
    "Tensor",
    "Trace",
    "load_trace",
    "read_trace",
    "write_trace",
]
