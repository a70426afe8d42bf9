"""Bytes per parameter, and the optimizer's kernels over what a rank owns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from triosim.hardware import Work
from triosim.train.blocks import Blocks
from triosim.train.owned import Owned, held_by_first, padded, ways_of
from triosim.train.plan import Plan, Unit
from triosim.workload import optimizer_steps

_FULL_BYTES = 4
_ADAM_STATES, _SGD_STATES = 2, 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Sizes:
    """Bytes per parameter of weights, gradients, optimizer state (with master copies), and of a
    gradient on the wire; `state`: of one number of the state. ORACLES Z1: 16 in all with 2-byte
    gradients, 18 with 4-byte ones."""

    parameter: int
    gradient: int
    optimizer: int
    reduced: int
    state: int

    @property
    def master(self) -> bool:
        return self.parameter < _FULL_BYTES


def sizes_of(plan: Plan) -> Sizes:
    """As the stack keeps them in mixed precision; all of 4 bytes in float32.

    A state in bf16 has half the bytes in either case.
    """
    stack, scenario = plan.stack, plan.scenario
    states = _SGD_STATES if scenario.optimizer == "sgd" else _ADAM_STATES
    each = 2 if scenario.optimizer_state == "bf16" else _FULL_BYTES
    if plan.element_bytes == _FULL_BYTES:
        return Sizes(parameter=4, gradient=4, optimizer=each * states, reduced=4, state=each)
    copies = stack.optimizer_bytes - _FULL_BYTES * _ADAM_STATES
    return Sizes(
        parameter=stack.parameter_bytes,
        gradient=stack.gradient_bytes,
        optimizer=copies + each * states,
        reduced=stack.reduce_bytes,
        state=each,
    )


class State:
    """What each stage owns, by how it is divided."""

    def __init__(self, blocks: Blocks) -> None:
        self.blocks = blocks
        self.plan = blocks.plan
        self.sizes = sizes_of(blocks.plan)

    @cached_property
    def ways(self) -> int:
        """Over how many ranks a parameter's optimizer state is divided."""
        return ways_of(self.plan)[0]

    def _owned(self, stage: int) -> list[Owned]:
        return [self.blocks.owned(unit) for unit in self.plan.units(stage)]

    def elements(self, unit: Unit) -> int:
        """Parameters of a unit before sharding."""
        owned = self.blocks.owned(unit)
        return owned.dense_count + owned.expert_count

    def shard(self, unit: Unit) -> float:
        """Parameters of a unit whose optimizer state one rank holds; of unequal shards the first.

        ZeRO-1 and 2 divide a stage's parameters as one, so that a unit's share is no whole number.
        """
        counts = padded(self.plan, self.blocks.owned(unit))
        return sum(n / ways for n, ways in zip(counts, ways_of(self.plan), strict=True))

    def count(self, stage: int) -> int:
        return sum(owned.dense_count + owned.expert_count for owned in self._owned(stage))

    def dense_count(self, stage: int) -> int:
        """Elements of a stage that all ranks of its data-parallel groups share."""
        return sum(owned.dense_count for owned in self._owned(stage))

    def reduced_experts(self, stage: int) -> int:
        """Elements of a stage's experts where more than one rank holds them."""
        replicas = self.plan.sizes["dp_replicate"] * self.plan.shards // self.plan.sizes["ep"]
        return sum(owned.expert_count for owned in self._owned(stage)) if replicas > 1 else 0

    def sharded(self, stage: int) -> float:
        """Elements of a stage whose optimizer state one rank holds."""
        shards: dict[tuple[str, ...], float] = {}
        total = 0.0
        for unit in self.plan.units(stage):
            if unit.parts not in shards:
                shards[unit.parts] = self.shard(unit)
            total += shards[unit.parts]
        return total

    def resident(self, stage: int) -> dict[str, int]:
        """Bytes that a rank of a stage holds over the whole step."""
        sizes, zero = self.sizes, self.plan.zero
        framework = {"framework": round(self.plan.stack.overhead_gib.value * 2**30)}
        if self.plan.scenario.prefill:
            count = self.sharded(stage) if zero == 3 else self.count(stage)
            weights = self.plan.element_bytes * count
            return {"parameters": round(weights), **framework}
        whole, part = self.count(stage), self.sharded(stage)
        held = {
            "parameters": sizes.parameter * (part if zero == 3 else whole),
            "optimizer": sizes.optimizer * part,
        }
        if self.plan.stack.persistent_gradients:
            held["gradients"] = sizes.gradient * (part if zero >= 2 else whole)
        if self.plan.stack.receive_buffers:
            held["communication"] = self._receives(stage) * self.blocks.handed_bytes
        return {**{category: round(size) for category, size in held.items()}, **framework}

    def _receives(self, stage: int) -> int:
        """Micro-batches that come in from other stages, or whose gradients do."""
        schedule = self.plan.schedule
        each = schedule.microbatches // len(schedule.routes)
        crossed = [
            (here.stage, there.stage)
            for route in schedule.routes
            for here, there in pairwise(route)
            if here.stage != there.stage
        ]
        return each * sum(stage in ends for ends in crossed)

    def optimizer_s(self, stage: int) -> float:
        """Clipping by the norm of all gradients, then the update of a rank's shard."""
        own = [
            n
            for owned in self._owned(stage)
            for tensors in held_by_first(self.plan, owned)
            for n in tensors
        ]
        return self._clip_s(own) + self._update_s(own)

    def _update_s(self, own: Sequence[int]) -> float:
        sizes = self.sizes
        steps = optimizer_steps(
            own,
            self.plan.scenario.optimizer,
            dtype=self.plan.dtype,
            element_bytes=sizes.parameter,
            gradient_bytes=sizes.gradient,
            state_bytes=sizes.state,
            master=sizes.master,
            fused=self._fused,
        )
        return sum(self.blocks.costs.kernel_s(step.work) for step in steps)

    @property
    def _fused(self) -> bool:
        """As chosen, else as the stack has it."""
        chosen = self.plan.scenario.fused_optimizer
        return self.plan.stack.fused_optimizer if chosen is None else chosen

    def _clip_s(self, own: Sequence[int]) -> float:
        """One pass that reads all gradients, one that reads and writes them.

        In fp16 one more before them takes the loss's scale off and looks for infinities.
        """
        size = sum(own) * self.sizes.gradient
        costs, dtype = self.blocks.costs, self.plan.dtype
        norm = Work(kind="reduction", flops=2 * sum(own), bytes=size, dtype=dtype)
        scale = Work(kind="elementwise", flops=sum(own), bytes=2 * size, dtype=dtype)
        scales = 2 if self.plan.scenario.precision == "fp16" else 1
        return costs.kernel_s(norm) + scales * costs.kernel_s(scale) if size else 0.0
