"""Tensor parallel as TrioSim's case 3 defines it.

An operator with tpflag 1 takes 1/n of its time, then the ranks all-reduce 1/n of its output bytes;
the others run whole on every GPU. Parameters of flagged operators, their gradients and optimizer
state are held to 1/n. (Column-parallel layers would gather n/2 times more; the training mode uses
that rule.)
"""

from __future__ import annotations

from functools import lru_cache

from triosim.engine.program import Program
from triosim.errors import TraceFormatError
from triosim.network.interconnect import Network
from triosim.parallel.plan import Plan
from triosim.parallel.work import Work, lay_out, scaled_run
from triosim.trace.memory import find_memory
from triosim.trace.model import Trace
from triosim.trace.parameters import find_parameters


def write_tensor_parallel(plan: Plan, program: Program, network: Network) -> None:
    """Operator by operator over all classes, since a flagged one joins them."""
    trace, n = plan.trace, plan.gpus
    (batch_size,) = plan.batch_sizes
    writers = plan.writers(program, _work(trace, n, batch_size))
    reduced: list[list[int]] = [[] for _ in writers]
    for op in trace.operators:
        for writer, waits in zip(writers, reduced, strict=True):
            writer.compute(waits)
        size = sum(tensor.bytes for tensor in op.outputs) * plan.batch_share(0) / n
        if not op.tensor_parallel or n == 1 or size == 0:
            reduced = [[] for _ in writers]
            continue
        tasks = program.communicate(
            [(writer.rank_class, "collective", "all-reduce") for writer in writers],
            f"all-reduce after {op.name}",
            "outputs of split operators",
            size,
            network.all_reduce(size),
            [[writer.task[-1]] for writer in writers],
        )
        reduced = [[task] for task in tasks]


@lru_cache(maxsize=32)
def _work(trace: Trace, n: int, batch_size: int) -> Work:
    _check_flags(trace)
    runs = [
        scaled_run(trace, i, 0, batch_size, 1 / n if op.tensor_parallel else 1.0)
        for i, op in enumerate(trace.operators)
    ]
    return lay_out(trace, runs, shards=_shards(trace, n))


def _check_flags(trace: Trace) -> None:
    for op in trace.operators:
        if op.tensor_parallel is None:
            raise TraceFormatError(
                f"trace.csv: operator {op.id} ({op.name}) has no tpflag; case 3 needs the column "
                "tpflag to know which operators are split."
            )


def _shards(trace: Trace, n: int) -> dict[int, float]:
    """Buffers that belong to the parameters of flagged operators."""
    index = find_parameters(trace).index
    split = {
        index[tensor.id]
        for op in trace.operators
        if op.tensor_parallel and op.phase == "forward"
        for tensor in op.inputs
        if tensor.id in index
    }
    return {b.index: 1 / n for b in find_memory(trace).buffers if b.parameter in split}
