"""Data parallel training: every GPU runs the whole model on its own batch.

Alone (case 0): no communication. Standard (case 1): one all-reduce of all gradients after the last
backward operator. Distributed (case 2): gradients are reduced in buckets while backward goes on, as
PyTorch's DistributedDataParallel does; buckets fill in the order in which gradients become ready.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from triosim.engine.program import Program
from triosim.network.interconnect import Network
from triosim.parallel.plan import Plan, split_step
from triosim.parallel.work import Work, lay_out, scaled_run
from triosim.trace.model import Trace
from triosim.trace.parameters import find_parameters


@dataclass(frozen=True, slots=True)
class Bucket:
    """Gradients reduced together, ready once operator `ready_after` has ended."""

    bytes: int
    ready_after: int


def fill_buckets(trace: Trace, bucket_bytes: float) -> list[Bucket]:
    """A bucket closes with the gradient that makes it reach `bucket_bytes`.

    Gradients come in the order of their producers, of equals the later parameter first.
    """
    parameters = find_parameters(trace)
    if not parameters.tensors:
        return []
    end = split_step(trace).before[-1]
    ready = [
        (end if g.producer is None else g.producer, -g.parameter) for g in parameters.gradients
    ]
    buckets: list[Bucket] = []
    size = 0
    for operator, negated in sorted(ready):
        size += parameters.tensors[-negated].bytes
        if size >= bucket_bytes:
            buckets.append(Bucket(size, operator))
            size = 0
    if size:
        buckets.append(Bucket(size, sorted(ready)[-1][0]))
    return buckets


def one_bucket(trace: Trace) -> list[Bucket]:
    """All gradients at once, after the last backward operator."""
    size = find_parameters(trace).bytes
    return [Bucket(size, split_step(trace).before[-1])] if size else []


@dataclass(frozen=True, kw_only=True, slots=True)
class _Step:
    """The work of every rank: the slots before the optimizer, and where the last batch's are.

    `position` maps an operator to its slot in the last batch.
    """

    work: Work
    before: int
    position: Mapping[int, int]


@lru_cache(maxsize=32)
def _step(trace: Trace, batch_sizes: tuple[int, ...]) -> _Step:
    """All batches one after the other, then what runs once a step."""
    split = split_step(trace)
    last = len(batch_sizes) - 1
    runs = [
        scaled_run(trace, i, copy, batch_sizes[copy])
        for copy in range(last + 1)
        for i in split.before
        if copy == 0 or trace.operators[i].phase != "optimizer"
    ]
    before = len(runs)
    position = {run.operator: k for k, run in enumerate(runs)}  # the last batch's overwrite
    runs += [scaled_run(trace, i, last, batch_sizes[last]) for i in split.after]
    return _Step(work=lay_out(trace, runs), before=before, position=position)


def write_data_parallel(
    plan: Plan, program: Program, network: Network, buckets: Sequence[Bucket]
) -> None:
    """Every class's batches, the buckets' all-reduces beside the last one, then the optimizer."""
    step = _step(plan.trace, plan.batch_sizes)
    writers = plan.writers(program, step.work)
    for writer in writers:
        for _ in range(step.before):
            writer.compute()
    reduced: list[int] = []
    if plan.gpus > 1:
        for number, bucket in enumerate(buckets):
            slot = step.position[bucket.ready_after]
            reduced = program.communicate(
                [(writer.rank_class, "collective", "all-reduce") for writer in writers],
                _bucket_name(number, len(buckets)),
                "gradients",
                bucket.bytes,
                network.all_reduce(bucket.bytes),
                [[writer.task[slot]] for writer in writers],
            )
    for i, writer in enumerate(writers):
        for k in range(step.before, len(step.work.slots)):
            writer.compute([reduced[i]] if k == step.before and reduced else ())


def _bucket_name(number: int, count: int) -> str:
    if count == 1:
        return "all-reduce of all gradients"
    return f"all-reduce of bucket {number + 1} of {count}"
