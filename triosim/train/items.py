"""Operators of a block as the steps of a pass, with what parallelism puts between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile

from triosim.train.context import around_attention, around_scores
from triosim.train.passes import Step
from triosim.train.plan import Plan
from triosim.train.steps import Collective, Gathering, Kernels, ProductBackward, Scattering
from triosim.workload import Op

_SCORES = "aten::matmul"  # the products of unfused attention


def items(plan: Plan, ops: Sequence[Op], phase: str) -> Iterator[Step]:
    """Operators in order; `phase` is what their time counts as."""
    scores = [i for i, op in enumerate(ops) if op.origin == _SCORES]
    divided = plan.sizes["cp"] > 1
    i = 0
    while i < len(ops):
        overlapped, count = _overlapped(plan, ops, i, phase)
        if not count and plan.stack.async_input_gradients:
            overlapped, count = _product_backward(plan, ops, i, phase)
        if count:
            yield from overlapped
            i += count
            continue
        op = ops[i]
        if op.kind == "attention" and divided:
            yield from around_attention(plan, op, phase)
        elif divided and i in (*scores[:1], *scores[-1:]):
            yield from around_scores(plan, _item(plan, op, phase), op, first=i == scores[0])
        else:
            yield _item(plan, op, phase)
        i += 1


def collective(plan: Plan, op: Op) -> Collective:
    """A transfer of a block; the busiest expert-parallel rank has more of it."""
    times = plan.scenario.expert_skew if op.axis == "ep" else 1.0
    return Collective(
        operation=op.collective.replace("_", "-"),
        axis=op.axis,
        size_bytes=op.message_bytes * times,
        free=op.part == "regather",
    )


def _product_backward(plan: Plan, ops: Sequence[Op], i: int, phase: str) -> tuple[list[Step], int]:
    """A product's backward at i, if its input gradient is summed over ranks, and its length."""
    own = list(takewhile(lambda op: op.call == ops[i].call, ops[i:]))
    after = ops[i + len(own)] if i + len(own) < len(ops) else None
    if ops[i].phase != "backward" or after is None or after.axis != "tp":
        return [], 0
    if after.collective not in ("all_reduce", "reduce_scatter"):
        return [], 0
    gathers = [op for op in own if op.part == "regather"]
    if [op for op in own if op.collective] != gathers[:1]:
        return [], 0
    kernels = [op for op in own if not op.collective]
    inputs, weights = (
        tuple(_item(plan, op, phase) for op in kernels if (op.part in ("wgrad", "bias")) == late)
        for late in (False, True)
    )
    gather = collective(plan, gathers[0]) if gathers else None
    total = collective(plan, after)
    steps = ProductBackward(gather=gather, inputs=inputs, total=total, weights=weights)
    return [steps], len(own) + 1


def _item(plan: Plan, op: Op, phase: str) -> Step:
    if op.collective:
        return collective(plan, op)
    times = plan.scenario.expert_skew if op.split == "expert" else 1.0
    return Kernels(op=op, phase=phase, times=times)


def _overlapped(plan: Plan, ops: Sequence[Op], i: int, phase: str) -> tuple[list[Step], int]:
    """What async tensor parallelism makes of the operators from i on, and of how many.

    As PyTorch's pass has it: a gather beside all products that it feeds, and a reduce-scatter
    beside the one product that makes what it carries. The sum of several products' input gradients
    is not overlapped.
    """
    if not plan.scenario.async_tp or plan.sizes["tp"] == 1:
        return [], 0
    op = ops[i]
    if op.collective == "all_gather" and op.axis == "tp":
        end = i + 1
        while end < len(ops) and ops[end].kind == "gemm":
            end += 1
        fed = ops[i + 1 : end]
        now, later = (tuple(k for k in fed if (k.part == "wgrad") == w) for w in (False, True))
        beside = Gathering(axis="tp", size_bytes=op.message_bytes, ops=now, phase=phase)
        steps: list[Step] = [beside, *(Kernels(op=k, phase=phase) for k in later)]
        return steps, (end - i if fed else 0)
    after = ops[i + 1] if i + 1 < len(ops) else op
    if op.kind == "gemm" and after.collective == "reduce_scatter" and after.axis == "tp":
        size = after.message_bytes
        return [Scattering(axis="tp", size_bytes=size, op=op, phase=phase)], 2
    return [], 0
