"""Context parallelism: attention over a sequence that several ranks hold parts of.

A ring passes keys and values on while attention is computed with those at hand, or queries, whose
results then have to come home; Ulysses exchanges tokens for heads around attention; or all keys and
values are gathered first (also where attention is not one kernel).

Keys go round with their gradients in backward, which take one hop more, to where they belong.
Queries are passed as in arXiv 2411.01783: a rank computes what visiting queries make of its own
keys, and after the last step one all-to-all brings every rank the partial results of its queries,
each with the logarithm of its rows' sums, to be added up with their weights. That paper is on
inference. Backward here mirrors it: queries go round with the gradients of their results and two
sums a row, and the partial gradients of queries return by an all-to-all.
"""

from __future__ import annotations

from collections.abc import Iterator

from triosim.hardware import Work
from triosim.train.passes import Step
from triosim.train.plan import Plan
from triosim.train.ring_in_turn import attention_in_turn, held_bytes
from triosim.train.steps import Collective, Kernels, Plain, RingAttention
from triosim.workload import Op

_SUM_BYTES = 4  # sums of rows are float32


def around_attention(plan: Plan, op: Op, phase: str) -> Iterator[Step]:
    """One kernel of attention with the transfers that its context needs."""
    back = op.phase == "backward"
    if plan.scenario.context == "allgather":
        yield _keys(plan, "all-gather")
        yield Kernels(op=op, phase=phase)
        if back:
            yield _keys(plan, "reduce-scatter")
        return
    before, after = exchanged_bytes(plan) if plan.ulysses > 1 else ((), ())
    yield from _exchange(after if back else before)
    ring = plan.sizes["cp"] // plan.ulysses
    if ring > 1:
        yield from _ring(plan, op, phase, ring)
    else:
        yield Kernels(op=op, phase=phase)
    yield from _exchange(before if back else after)


def around_scores(plan: Plan, step: Step, op: Op, *, first: bool) -> Iterator[Step]:
    """The first or last product of unfused attention: keys and values come, gradients go."""
    if first:
        yield _keys(plan, "all-gather")
    yield step
    if not first and op.phase == "backward":
        yield _keys(plan, "reduce-scatter")


def exchanged_bytes(plan: Plan) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """What Ulysses' all-to-alls carry before (queries, keys, values) and after (the result).

    Where a rank has fewer KV heads than there are ranks, each still receives a whole head.
    """
    model, layout = plan.model, plan.layout
    row = plan.scenario.micro_batch_size * plan.seq // layout.cp * plan.element_bytes
    heads, kv = model.heads // layout.tp, max(layout.kv_heads(model), plan.ulysses)
    q, k, v = row * heads * model.qk_width, row * kv * model.qk_width, row * kv * model.v_width
    return (q, k, v), (row * heads * model.v_width,)


def keys_bytes(plan: Plan) -> float:
    """Keys and values of the whole sequence on one tensor-parallel rank."""
    model = plan.model
    widths = plan.layout.kv_heads(model) * (model.qk_width + model.v_width)
    return plan.scenario.micro_batch_size * plan.seq * widths * plan.element_bytes


def query_bytes(plan: Plan, *, back: bool) -> tuple[float, float]:
    """Of one rank's queries: what visits the others, and what each of these sends back."""
    model, tp = plan.model, plan.layout.tp
    tokens = plan.scenario.micro_batch_size * plan.seq // plan.layout.cp
    rows = tokens * model.heads // tp
    queries, results = (rows * w * plan.element_bytes for w in (model.qk_width, model.v_width))
    sums = rows * _SUM_BYTES
    return (queries + results + 2 * sums, queries) if back else (queries, results + sums)


def buffer_bytes(plan: Plan, *, back: bool) -> float:
    """What a rank holds of other ranks' tensors while it computes one layer's attention.

    Of a ring one visitor and the next one arriving; partial results until they are sent home.
    """
    cp, keys = plan.sizes["cp"], keys_bytes(plan) * (2 if back else 1)
    if cp == 1:
        return 0.0
    if plan.scenario.context == "allgather":
        return keys
    ring = cp // plan.ulysses
    if ring > 1 and plan.rings_in_turn:
        return held_bytes(plan, back=back)
    exchanged = sum(exchanged_bytes(plan)[0]) if plan.ulysses > 1 else 0.0
    if ring > 1 and plan.passes_queries:
        visiting, returned = query_bytes(plan, back=back)
        return 2 * visiting + ring * returned
    return exchanged + (2 * keys / cp if ring > 1 else 0.0)


def _ring(plan: Plan, op: Op, phase: str, ranks: int) -> Iterator[Step]:
    """Attention in as many steps as ranks.

    Zig-zag gives every rank the mean of the causal work. Of contiguous parts one rank is the
    slowest, that with the last queries, or the first keys where queries are passed: its own half
    block, and whole ones of all other ranks (ORACLES X3).
    """
    back = op.phase == "backward"
    rest = 2.0 if plan.contiguous else 1.0
    shares = (1.0 / ranks, *(rest / ranks,) * (ranks - 1))
    if plan.rings_in_turn:
        yield from attention_in_turn(plan, op, phase, shares)
        return
    if not plan.passes_queries:
        keys = keys_bytes(plan) / plan.sizes["cp"]
        size, home = (2 * keys, keys) if back else (keys, 0.0)
        yield RingAttention(
            op=op, phase=phase, axis="ring", message_bytes=size, home_bytes=home, shares=shares
        )
        return
    size, returned = query_bytes(plan, back=back)
    yield RingAttention(op=op, phase=phase, axis="ring", message_bytes=size, shares=shares)
    yield Collective(operation="all-to-all", axis="ring", size_bytes=ranks * returned)
    merged = ranks * returned + returned
    flops = 2 * ranks * returned / plan.element_bytes
    work = Work(kind="elementwise", flops=flops, bytes=merged, dtype=plan.dtype)
    yield Plain(name="add up partial results", phase=phase, work=work)


def _exchange(sizes: tuple[float, ...]) -> Iterator[Step]:
    for size in sizes:
        yield Collective(operation="all-to-all", axis="ulysses", size_bytes=size)


def _keys(plan: Plan, operation: str) -> Collective:
    return Collective(operation=operation, axis="cp", size_bytes=keys_bytes(plan))
