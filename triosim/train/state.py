"""Bytes per parameter, and the optimizer's kernels over what a rank owns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from triosim.hardware import Work
from triosim.train.blocks import Blocks
from triosim.train.plan import Plan, Unit
from triosim.workload import optimizer_steps

MASTER_BYTES = 4
_FULL_BYTES = 4
_ADAM_STATES, _SGD_STATES = 2, 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Sizes:
    """Bytes per parameter of weights, gradients, optimizer state (with master copies), and of a
    gradient on the wire. ORACLES Z1: 16 in all with 2-byte gradients, 18 with 4-byte ones."""

    parameter: int
    gradient: int
    optimizer: int
    reduced: int

    @property
    def master(self) -> bool:
        return self.parameter < _FULL_BYTES

    @property
    def state(self) -> int:
        """Bytes of one number of the optimizer's state."""
        return _FULL_BYTES


def sizes_of(plan: Plan) -> Sizes:
    """As the stack keeps them in mixed precision; all of 4 bytes in float32."""
    stack = plan.stack
    states = _SGD_STATES if plan.scenario.optimizer == "sgd" else _ADAM_STATES
    if plan.element_bytes == _FULL_BYTES:
        return Sizes(parameter=4, gradient=4, optimizer=_FULL_BYTES * states, reduced=4)
    spared = _FULL_BYTES * (_ADAM_STATES - states)
    return Sizes(
        parameter=stack.parameter_bytes,
        gradient=stack.gradient_bytes,
        optimizer=stack.optimizer_bytes - spared,
        reduced=stack.reduce_bytes,
    )


class State:
    """What each stage owns, by how it is divided."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self.plan = blocks.plan
        self.sizes = sizes_of(blocks.plan)

    @cached_property
    def ways(self) -> int:
        """Over how many ranks a parameter's optimizer state is divided."""
        return self.plan.shards if self.plan.zero else 1

    @cached_property
    def expert_ways(self) -> int:
        return self.plan.shards // self.plan.sizes["ep"] if self.plan.zero else 1

    def tensors(self, stage: int) -> tuple[list[int], list[int]]:
        """Elements of a stage's tensors, dense ones and experts, before sharding."""
        dense: list[int] = []
        experts: list[int] = []
        for unit in self.plan.units(stage):
            owned = self._blocks.owned(unit)
            dense += owned.dense
            experts += owned.experts
        return dense, experts

    def elements(self, unit: Unit) -> int:
        """Parameters of a unit before sharding."""
        owned = self._blocks.owned(unit)
        return owned.dense_count + owned.expert_count

    def shard(self, unit: Unit) -> float:
        """Parameters of a unit whose optimizer state one rank holds."""
        owned = self._blocks.owned(unit)
        return owned.dense_count / self.ways + owned.expert_count / self.expert_ways

    def count(self, stage: int) -> int:
        dense, experts = self.tensors(stage)
        return sum(dense) + sum(experts)

    def dense_count(self, stage: int) -> int:
        """Elements of a stage that all ranks of its data-parallel groups share."""
        return sum(self.tensors(stage)[0])

    def reduced_experts(self, stage: int) -> int:
        """Elements of a stage's experts where more than one rank holds them."""
        replicas = self.plan.sizes["dp_replicate"] * self.plan.shards // self.plan.sizes["ep"]
        return sum(self.tensors(stage)[1]) if replicas > 1 else 0

    def sharded(self, stage: int) -> float:
        """Elements of a stage whose optimizer state one rank holds."""
        dense, experts = self.tensors(stage)
        return sum(dense) / self.ways + sum(experts) / self.expert_ways

    def resident(self, stage: int) -> dict[str, int]:
        """Bytes that a rank of a stage holds over the whole step."""
        sizes, zero = self.sizes, self.plan.zero
        framework = {"framework": round(self.plan.stack.overhead_gib.value * 2**30)}
        if self.plan.scenario.prefill:
            shards = self.plan.shards if zero == 3 else 1
            weights = self.plan.element_bytes * self.count(stage) / shards
            return {"parameters": round(weights), **framework}
        whole, part = self.count(stage), self.sharded(stage)
        held = {
            "parameters": sizes.parameter * (part if zero == 3 else whole),
            "optimizer": sizes.optimizer * part,
        }
        if self.plan.stack.persistent_gradients:
            held["gradients"] = sizes.gradient * (part if zero >= 2 else whole)
        return {**{category: round(size) for category, size in held.items()}, **framework}

    def optimizer_s(self, stage: int) -> float:
        """Clipping by the norm of all gradients, then the update of a rank's shard."""
        dense, experts = self.tensors(stage)
        own = [_part(n, self.ways) for n in dense] + [_part(n, self.expert_ways) for n in experts]
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
            fused=sizes.master or self.plan.stack.fused_optimizer,
        )
        return sum(self._blocks.costs.kernel_s(step.work) for step in steps)

    def _clip_s(self, own: Sequence[int]) -> float:
        """One pass that reads all gradients, one that reads and writes them."""
        size = sum(own) * self.sizes.gradient
        costs, dtype = self._blocks.costs, self.plan.dtype
        norm = Work(kind="reduction", flops=2 * sum(own), bytes=size, dtype=dtype)
        scale = Work(kind="elementwise", flops=sum(own), bytes=2 * size, dtype=dtype)
        return costs.kernel_s(norm) + costs.kernel_s(scale) if size else 0.0


def _part(elements: int, ways: int) -> int:
    return -(-elements // ways)
