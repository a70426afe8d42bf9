"""Operators and tensors of one training step on one GPU: reading, writing, checking, scaling."""

from triosim.trace.digest import Stamp, trace_digest, trace_stamp
from triosim.trace.model import PHASES, PROVENANCES, Operator, Tensor, Trace
from triosim.trace.read import load_trace, read_trace
from triosim.trace.scale import on_gpu, scaled, shard_times, times_at
from triosim.trace.write import write_trace

__all__ = [
    "PHASES",
    "PROVENANCES",
    "Operator",
    "Stamp",
    "Tensor",
    "Trace",
    "load_trace",
    "on_gpu",
    "read_trace",
    "scaled",
    "shard_times",
    "times_at",
    "trace_digest",
    "trace_stamp",
    "write_trace",
]
