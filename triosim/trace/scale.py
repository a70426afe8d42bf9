"""A trace at another batch or on another GPU: measured times, scaled by a ratio of predictions.

An operator takes measured x predicted(new batch, new GPU) / predicted(trace's batch, trace's GPU):
what the roofline misses on both sides alike cancels. Where the GPU is unknown, or the tensors do
not tell what an operator does, times grow in proportion to the batch, and from GPU to GPU as memory
gets faster. The optimizer does not grow with the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from triosim.errors import ConfigError
from triosim.hardware import Gpu, Work, gpu_names, load_gpu, predict_s
from triosim.trace.cost import work_of
from triosim.trace.memory import find_memory
from triosim.trace.model import Operator, Tensor, Trace
from triosim.trace.partners import find_partners
from triosim.trace.sizes import AS_TRACED, Sizes


def scaled(
    trace: Trace,
    *,
    batch_size: int | None = None,
    gpu: str | None = None,
    trace_gpu: str | None = None,
) -> Trace:
    """The trace as it would be at another batch, on another GPU, or both.

    `trace_gpu` is the GPU it was taken on, by default what its meta.json says. Raises `ConfigError`
    where that is unknown and `gpu` is given.
    """
    moved = on_gpu(trace, gpu, trace_gpu)
    if batch_size is None or batch_size == trace.batch_size:
        return moved
    return _at_batch(moved, batch_size)


def on_gpu(trace: Trace, gpu: str | None = None, trace_gpu: str | None = None) -> Trace:
    """The trace with the GPU that its times are for, and its times on that one."""
    source = known_gpu(trace, trace_gpu)
    if gpu is None:
        return trace if source is None else _with_gpu(trace, source, source)
    if source is None:
        raise ConfigError(
            "trace_gpu",
            trace.meta.get("gpu", "(not given)"),
            f"to scale to another GPU, name the one that the trace was taken on; known are "
            f"{', '.join(gpu_names())}",
        )
    return _with_gpu(trace, source, load_gpu(gpu).name)


def known_gpu(trace: Trace, trace_gpu: str | None = None) -> str | None:
    """The GPU that a trace was taken on, if the catalogue has it."""
    if trace_gpu is not None:
        return load_gpu(trace_gpu).name
    try:
        return load_gpu(str(trace.meta.get("gpu"))).name
    except ConfigError:
        return None


@lru_cache(maxsize=64)
def _with_gpu(trace: Trace, source: str, target: str) -> Trace:
    old, new = load_gpu(source), load_gpu(target)
    if source == target:
        return replace(trace, gpu=new)
    operators = tuple(
        _slower(op, _gpu_ratio(work, old, new))
        for op, work in zip(trace.operators, works_of(trace), strict=True)
    )
    return replace(trace, operators=operators, gpu=new)


def _gpu_ratio(work: Work | None, old: Gpu, new: Gpu) -> float:
    before_s = predict_s(old, work) if work is not None else 0.0
    if work is None or before_s == 0:
        return old.memory_bytes_per_s / new.memory_bytes_per_s
    return predict_s(new, work) / before_s


def _slower(operator: Operator, ratio: float) -> Operator:
    """An operator with its time multiplied; what a roofline gave remains a roofline's."""
    if ratio == 1.0:
        return operator
    busy_s = operator.busy_time_s
    return replace(
        operator,
        time_s=operator.time_s * ratio,
        busy_time_s=None if busy_s is None else busy_s * ratio,
        provenance="scaled" if operator.provenance == "measured" else operator.provenance,
    )


@lru_cache(maxsize=256)
def times_at(trace: Trace, batch_size: int) -> Sequence[float]:
    """Every operator's seconds at a batch size, on the GPU that the trace's times are for."""
    ratios = batch_ratios(trace, batch_size)
    return [op.time_s * ratio for op, ratio in zip(trace.operators, ratios, strict=True)]


@lru_cache(maxsize=256)
def batch_ratios(trace: Trace, batch_size: int) -> Sequence[float]:
    """What a batch makes of every operator's time: a ratio of predictions, else of batches."""
    share = batch_size / trace.batch_size
    gpu = trace.gpu
    linear = [1.0 if op.phase == "optimizer" else share for op in trace.operators]
    if gpu is None or share == 1.0:
        return linear
    pairs = zip(works_of(trace), works_of(trace, batch_size), linear, strict=True)
    return [_batch_ratio(gpu, old, new, default) for old, new, default in pairs]


def _batch_ratio(gpu: Gpu, old: Work | None, new: Work | None, default: float) -> float:
    if old is None or new is None:
        return default
    before_s = predict_s(gpu, old)
    return predict_s(gpu, new) / before_s if before_s else default


@lru_cache(maxsize=64)
def shard_times(trace: Trace, ways: int) -> Sequence[float]:
    """Every operator's seconds where `ways` ranks split its work, on the trace's GPU.

    Products are split by columns, so a small one takes more than 1/ways of its time; in proportion
    where the GPU or the shapes are unknown. (Case 3 keeps TrioSim's rule, 1/n.)
    """
    works = [None] * len(trace.operators) if trace.gpu is None else works_of(trace)
    return [
        operator.time_s * _shard_ratio(trace.gpu, work, ways)
        for operator, work in zip(trace.operators, works, strict=True)
    ]


def _shard_ratio(gpu: Gpu | None, work: Work | None, ways: int) -> float:
    whole_s = 0.0 if gpu is None or work is None else predict_s(gpu, work)
    if gpu is None or work is None or whole_s == 0:
        return 1 / ways
    return predict_s(gpu, work.shard(ways)) / whole_s


@lru_cache(maxsize=256)
def works_of(trace: Trace, batch_size: int | None = None) -> tuple[Work | None, ...]:
    """The work of every operator, at another batch if one is given; None where unknown."""
    share = 1.0 if batch_size is None else batch_size / trace.batch_size
    partners = find_partners(trace)
    found = []
    for i, operator in enumerate(trace.operators):
        partner = partners.get(i)
        sizes = AS_TRACED if share == 1.0 else _sizes(trace, share, i, partner)
        other = None if partner is None else trace.operators[partner]
        found.append(work_of(operator, partner=other, sizes=sizes))
    return tuple(found)


def _sizes(trace: Trace, share: float, operator: int, partner: int | None) -> Sizes:
    """The optimizer sees nothing of the batch; elsewhere parameters and their gradients do not."""
    if trace.operators[operator].phase == "optimizer":
        return AS_TRACED
    fixed = _fixed(trace)
    return Sizes(share, fixed[operator] | (fixed[partner] if partner is not None else frozenset()))


@lru_cache(maxsize=32)
def _fixed(trace: Trace) -> tuple[frozenset[int], ...]:
    """For each operator, the ids of the tensors that do not grow with the batch."""
    memory = find_memory(trace)
    stays: list[frozenset[int]] = [
        frozenset() if buffer.scales else frozenset(t.id for t in buffer.tensors)
        for buffer in memory.buffers
    ]
    return tuple(
        frozenset[int]().union(*(stays[b] for b in (*used, *created)))
        for used, created in zip(memory.uses, memory.creates, strict=True)
    )


@lru_cache(maxsize=32)
def _at_batch(trace: Trace, batch_size: int) -> Trace:
    """Times and tensors of another batch."""
    ratios, fixed = batch_ratios(trace, batch_size), _fixed(trace)
    operators = []
    for operator, ratio, stays in zip(trace.operators, ratios, fixed, strict=True):
        share = batch_size / trace.batch_size if operator.phase != "optimizer" else 1.0
        sizes = Sizes(share, stays)
        operators.append(
            replace(
                _slower(operator, ratio),
                inputs=_resized(operator.inputs, sizes, trace.batch_size),
                outputs=_resized(operator.outputs, sizes, trace.batch_size),
                flops=None if operator.flops is None else operator.flops * share,
                bytes=None if operator.bytes is None else operator.bytes * share,
                saved_bytes=None
                if operator.saved_bytes is None
                else round(operator.saved_bytes * share),
            )
        )
    return replace(trace, operators=tuple(operators), batch_size=batch_size)


def _resized(tensors: Sequence[Tensor], sizes: Sizes, batch: int) -> tuple[Tensor, ...]:
    return tuple(_resize(tensor, sizes.of(tensor), batch) for tensor in tensors)


def _resize(tensor: Tensor, share: float, batch: int) -> Tensor:
    """The first dimension that holds whole batches grows; without one the shape is unknown."""
    if share == 1.0:
        return tensor
    numel = round(tensor.numel * share)
    for position, size in enumerate(tensor.shape):
        if size and size % batch == 0:
            shape = list(tensor.shape)
            shape[position] = round(size * share)
            return replace(tensor, shape=tuple(shape), numel=numel)
    return replace(tensor, shape=(numel,), numel=numel)
