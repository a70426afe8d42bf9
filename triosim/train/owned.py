"""The parameters of a unit on one rank, and what ZeRO-3 makes of them: equal shards, padded.

FSDP1 lays a unit's parameters end to end and pads the flat tensor to a multiple of the ranks that
share it (arXiv 2304.11277). FSDP2 divides each parameter by the rows of its first dimension, as
DTensor's Shard(0): the last ranks may hold fewer rows than the first, or none, and are padded to as
many for the all-gather. Experts that are fewer than ranks are divided by their second dimension, as
torchtitan does. Under ZeRO-1 and 2 nothing is padded here: those buffers span a whole stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod

from triosim.train.plan import Plan

Shape = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Owned:
    """Shapes of a unit's parameters on one tensor-parallel rank before any sharding."""

    dense: tuple[Shape, ...]
    experts: tuple[Shape, ...]

    @cached_property
    def dense_count(self) -> int:
        return sum(map(prod, self.dense))

    @cached_property
    def expert_count(self) -> int:
        return sum(map(prod, self.experts))


def ways_of(plan: Plan) -> tuple[int, int]:
    """Over how many ranks the optimizer state is divided, of dense parameters and of experts."""
    return (plan.shards, plan.shards // plan.sizes["ep"]) if plan.zero else (1, 1)


def held_by_first(plan: Plan, owned: Owned) -> tuple[list[int], list[int]]:
    """Elements of each tensor that the optimizer of a rank has, dense ones and experts.

    Of the first rank, which has most; as one flat tensor each under FSDP1. Not to be changed.
    """
    return _held(owned, ways_of(plan), plan.zero, plan.scenario.fsdp)


@lru_cache(maxsize=256)
def _held(owned: Owned, ways: tuple[int, int], zero: int, fsdp: int) -> tuple[list[int], list[int]]:
    """NOTE: layers are alike; dividing each one's parameters took a tenth of a deep model's run."""
    dense_ways, expert_ways = ways
    dense = [_part(prod(shape), dense_ways) for shape in owned.dense]
    experts = [_part(prod(shape), expert_ways) for shape in owned.experts]
    if zero < 3:
        return dense, experts
    if fsdp == 1:
        return _flat(owned.dense_count, dense_ways), _flat(owned.expert_count, expert_ways)
    dense = [_rows(shape, dense_ways, 0) for shape in owned.dense]
    return dense, [_rows(s, expert_ways, int(s[0] < expert_ways)) for s in owned.experts]


def padded(plan: Plan, owned: Owned) -> tuple[int, int]:
    """Elements that travel when a unit is gathered or reduced, dense ones and experts."""
    if plan.zero < 3:
        return owned.dense_count, owned.expert_count
    dense, experts = held_by_first(plan, owned)
    dense_ways, expert_ways = ways_of(plan)
    return dense_ways * sum(dense), expert_ways * sum(experts)


def _flat(count: int, ways: int) -> list[int]:
    return [_part(count, ways)] if count else []


def _rows(shape: Sequence[int], ways: int, dim: int) -> int:
    """Elements of the largest part where a dimension is cut."""
    return _part(shape[dim], ways) * prod(shape) // shape[dim]


def _part(count: int, ways: int) -> int:
    return -(-count // ways)
