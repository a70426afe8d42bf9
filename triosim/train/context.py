"""Context parallelism: attention over a sequence that several ranks hold parts of.

A ring passes keys and values on while attention is computed with those at hand; Ulysses exchanges
tokens for heads around attention; or all keys and values are gathered first (also where attention
is not one kernel). Backward sends keys, values and their gradients.
"""

from __future__ import annotations

from collections.abc import Iterator

from triosim.train.passes import Step
from triosim.train.plan import Plan
from triosim.train.steps import Collective, Kernels, RingAttention
from triosim.workload import Op


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
        yield _ring(plan, op, phase, ring, hops=2 if back else 1)
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


def _ring(plan: Plan, op: Op, phase: str, ranks: int, *, hops: int) -> RingAttention:
    """`hops` times the local keys and values in every message.

    Zig-zag gives every rank the mean of the causal work. Of contiguous parts the last rank is the
    slowest: its own half block, and whole ones of all ranks before it (ORACLES X3).
    """
    rest = 2.0 if plan.scenario.context == "ring" else 1.0
    return RingAttention(
        op=op,
        phase=phase,
        axis="ring",
        message_bytes=hops * keys_bytes(plan) / plan.sizes["cp"],
        shares=(1.0 / ranks, *(rest / ranks,) * (ranks - 1)),
    )


def _exchange(sizes: tuple[float, ...]) -> Iterator[Step]:
    for size in sizes:
        yield Collective(operation="all-to-all", axis="ulysses", size_bytes=size)


def _keys(plan: Plan, operation: str) -> Collective:
    return Collective(operation=operation, axis="cp", size_bytes=keys_bytes(plan))
