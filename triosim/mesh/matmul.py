"""Which layouts a matrix product can be computed in without sending anything, as DTensor has it.

On every axis of the mesh one rule has to hold for A (m x k), B (k x n) and the output (m x n). If
none does, torch redistributes the inputs first, to the layouts that its estimate likes best.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from triosim.errors import ConfigError
from triosim.mesh.device_mesh import DeviceMesh, checked_shape
from triosim.mesh.placements import (
    AnyShard,
    Partial,
    Placement,
    Placements,
    Replicate,
    Shard,
    StridedShard,
    check_placements,
)
from triosim.mesh.redistribute import Step, redistribute
from triosim.mesh.routes import fixed_route
from triosim.mesh.torch_cost import GIB, AxisLink, axis_links, transition_us


@dataclass(frozen=True, slots=True)
class Rule:
    """Placements on one axis with which every rank multiplies what it holds."""

    a: Placement
    b: Placement
    out: Placement
    why: str


_ROWS, _COLUMNS, _SAME = Shard(0), Shard(1), Replicate()
RULES = (
    Rule(_SAME, _SAME, _SAME, "every rank computes all of it"),
    Rule(_COLUMNS, _ROWS, Partial(), "every rank has a part of k: its product is an addend"),
    Rule(_ROWS, _SAME, _ROWS, "rows of A give rows of the output"),
    Rule(_SAME, _COLUMNS, _COLUMNS, "columns of B give columns of the output"),
    *(
        rule
        for op in ("sum", "avg")
        for rule in (
            Rule(Partial(op), _SAME, Partial(op), "the product is linear in A"),
            Rule(_SAME, Partial(op), Partial(op), "the product is linear in B"),
        )
    ),
)
"""In torch's order, which decides between equally good ones."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MatmulPlan:
    """Layouts in which a product is computed, and what has to happen to the inputs before."""

    a: Placements
    b: Placements
    out: Placements
    a_steps: tuple[Step, ...]
    b_steps: tuple[Step, ...]

    @property
    def direct(self) -> bool:
        """Whether the inputs can stay as they are."""
        return not self.a_steps and not self.b_steps


def matmul_strategies(
    a_shape: Sequence[int], b_shape: Sequence[int], axis_size: int
) -> tuple[Rule, ...]:
    """The rules that hold on an axis of this size: a dim with fewer indices cannot be sharded."""
    shapes = _shapes(a_shape, b_shape)
    return tuple(
        rule
        for rule in RULES
        if all(
            not isinstance(placement, Shard) or shape[placement.dim] >= axis_size
            for placement, shape in zip((rule.a, rule.b), shapes, strict=True)
        )
    )


def matmul_plan(
    a_shape: Sequence[int],
    b_shape: Sequence[int],
    mesh: DeviceMesh,
    a: Sequence[Placement],
    b: Sequence[Placement],
    *,
    element_bytes: int = 2,
    gpus_per_host: int = 8,
) -> MatmulPlan:
    """The output's placements of A @ B for inputs as they are placed.

    Where no rule fits, the inputs are redistributed to the layouts with the least estimated cost
    (torch's estimate, see `torch_cost`; ties go to the first rule).
    """
    shapes = _shapes(a_shape, b_shape)
    given = [check_placements(p, mesh, 2) for p in (a, b)]
    links = axis_links(mesh.shape, gpus_per_host)
    estimates: dict[tuple[int, Placements], float] = {}
    chosen: tuple[float, tuple[Placements, ...]] | None = None
    for rules in itertools.product(_rules_for(given), repeat=mesh.ndim):
        wanted = [tuple(rule.a for rule in rules), tuple(rule.b for rule in rules)]
        out = tuple(rule.out for rule in rules)
        if any(_mixed(p) for p in (*wanted, out)):
            continue
        if not all(_shardable(*both, mesh.shape) for both in zip(wanted, shapes, strict=True)):
            continue
        if wanted == given:
            chosen = (0.0, (*wanted, out))
            break
        for side in range(2):
            key = (side, wanted[side])
            if key not in estimates:
                gib = element_bytes * math.prod(shapes[side]) / GIB
                estimates[key] = _estimate_us(given[side], wanted[side], links, gib)
        cost = estimates[0, wanted[0]] + estimates[1, wanted[1]]
        if chosen is None or cost < chosen[0]:
            chosen = (cost, (*wanted, out))
    assert chosen is not None  # all replicated is always possible
    a_after, b_after, out = chosen[1]
    steps = [
        redistribute(shape, element_bytes, mesh, before, after, gpus_per_host=gpus_per_host)
        for shape, before, after in zip(shapes, given, (a_after, b_after), strict=True)
    ]
    return MatmulPlan(a=a_after, b=b_after, out=out, a_steps=steps[0], b_steps=steps[1])


def _shapes(a_shape: Sequence[int], b_shape: Sequence[int]) -> list[tuple[int, ...]]:
    shapes = [checked_shape("a_shape", a_shape), checked_shape("b_shape", b_shape)]
    if len(shapes[0]) != 2 or len(shapes[1]) != 2 or shapes[0][1] != shapes[1][0]:
        problem = f"must be (k, n) where A is (m, k), and A is {shapes[0]}"
        raise ConfigError("b_shape", shapes[1], problem)
    return shapes


def _rules_for(given: Sequence[Placements]) -> list[Rule]:
    """The rules with the kinds of shards that the inputs have: plain, or strided by some factor."""
    shards = [p for placements in given for p in placements if isinstance(p, AnyShard)]
    factors = dict.fromkeys(p.split_factor if isinstance(p, StridedShard) else 1 for p in shards)
    rules = []
    for rule in RULES:
        if any(isinstance(p, Shard) for p in (rule.a, rule.b)):
            rules += [_strided(rule, factor) for factor in sorted(factors)]
        else:
            rules.append(rule)
    return rules


def _strided(rule: Rule, factor: int) -> Rule:
    def swap(placement: Placement) -> Placement:
        if factor == 1 or not isinstance(placement, Shard):
            return placement
        return StridedShard(placement.dim, factor)

    return replace(rule, a=swap(rule.a), b=swap(rule.b), out=swap(rule.out))


def _mixed(placements: Placements) -> bool:
    kinds = {p.op for p in placements if isinstance(p, Partial)}
    return len(kinds) > 1 and kinds != {"sum", "avg"}


def _shardable(placements: Placements, shape: Sequence[int], sizes: Sequence[int]) -> bool:
    """Whether every rank could hold something of the dims that are cut."""
    parts = [1] * len(shape)
    for placement, size in zip(placements, sizes, strict=True):
        if isinstance(placement, AnyShard):
            parts[placement.dim] *= size
            factor = placement.split_factor if isinstance(placement, StridedShard) else 1
            if shape[placement.dim] < parts[placement.dim] * factor:
                return False
    return True


def _estimate_us(
    before: Placements, after: Placements, links: Sequence[AxisLink], gib: float
) -> float:
    """torch's estimate of a redistribution; strided shards count as out of reach."""
    if before == after or all(p == Replicate() for p in before):
        return 0.0
    if any(isinstance(p, StridedShard) for p in (*before, *after)):
        return math.inf
    sizes = [link.size for link in links]
    shards = math.prod(
        size for p, size in zip(before, sizes, strict=True) if isinstance(p, AnyShard)
    )
    now, cost, held = list(before), 0.0, gib / shards
    for move in fixed_route(before, after, sizes):
        step, held = transition_us(now[move.axis], move.after, links[move.axis], held)
        if math.isinf(step):
            return math.inf
        now[move.axis] = move.after
        cost += step
    return cost
