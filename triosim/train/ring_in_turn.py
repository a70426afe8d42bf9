"""Ring attention as PyTorch's context parallelism runs it under torch.compile.

KV heads are repeated for every query head first. All keys and values are gathered; attention is
called once for each rank's part and its results are merged in float32; in backward float32
gradients of keys and values take one hop after each call. Nothing computes meanwhile: a compiled
graph waits where a transfer stands (recalled: torch.distributed.tensor.experimental of 2024-12).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from triosim.hardware import Work
from triosim.train.costs import Costs
from triosim.train.network import Wires
from triosim.train.passes import PassWriter, Step
from triosim.train.plan import Plan
from triosim.train.steps import PURPOSES, Collective, Kernels, Plain
from triosim.workload import Op

AXIS = "ring"
_WIDE = 4  # bytes of a float32


@dataclass(frozen=True, kw_only=True, eq=False)
class Hop:
    """A message to the next rank that what follows waits for."""

    size_bytes: float

    def write(self, writer: PassWriter, costs: Costs, wires: Wires) -> None:
        size = self.size_bytes
        writer.transfer(
            "send", "send/recv", PURPOSES[AXIS], wires.planned("send", AXIS, size).time_s,
            size_bytes=size, sent_bytes=size,
        )  # fmt: skip


def attention_in_turn(plan: Plan, op: Op, phase: str, shares: Sequence[float]) -> Iterator[Step]:
    """`shares` are the calls' parts of the mean work."""
    rows, model = _rows(plan), plan.model
    keys, results = rows * (model.qk_width + model.v_width), rows * model.v_width
    half = plan.element_bytes
    yield _moves(plan, phase, "lay keys side by side", 2 * half * keys)
    yield Collective(operation="all-gather", axis=AXIS, size_bytes=half * keys * len(shares))
    for share in shares:
        yield Kernels(op=op, phase=phase, times=share)
        if op.phase == "forward":
            yield _moves(plan, phase, "merge results", (2 * _WIDE + half) * results)
            continue
        added = rows * model.qk_width + keys
        yield _moves(plan, phase, "add gradients", (2 * _WIDE + half) * added)
        yield _moves(plan, phase, "lay gradients side by side", 2 * _WIDE * keys)
        yield Hop(size_bytes=_WIDE * keys)


def held_bytes(plan: Plan, *, back: bool) -> float:
    """Gathered keys and values, sums in float32, and gradients that leave and arrive."""
    rows, model = _rows(plan), plan.model
    keys = rows * (model.qk_width + model.v_width)
    gathered = plan.element_bytes * keys * plan.sizes["cp"]
    if not back:
        return gathered + _WIDE * rows * model.v_width
    return gathered + _WIDE * (rows * model.qk_width + 3 * keys)


def _rows(plan: Plan) -> float:
    """Tokens of a rank times the query heads that it has of each."""
    tokens = plan.scenario.micro_batch_size * plan.seq / plan.sizes["cp"]
    return tokens * plan.model.heads / plan.sizes["tp"]


def _moves(plan: Plan, phase: str, name: str, size_bytes: float) -> Plain:
    work = Work(kind="elementwise", flops=size_bytes, bytes=size_bytes, dtype=plan.dtype)
    return Plain(name=name, phase=phase, work=work)
