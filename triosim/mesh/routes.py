"""Which placements a redistribution passes through: torch 2.13's choice, followed exactly.

Several sequences lead from one layout to another. torch walks the mesh axes in a fixed order (it
does not look for the cheapest way) unless strided shards take part; then it searches for the way
that its estimate of the cost likes best. Collectives on several axes are not merged into one:
torch does that only where the program has flattened those axes itself.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from triosim.errors import ConfigError
from triosim.mesh.device_mesh import DeviceMesh
from triosim.mesh.placements import (
    AnyShard,
    Partial,
    Placement,
    Placements,
    Replicate,
    Shard,
    StridedShard,
    format_placements,
)
from triosim.mesh.shards import blocks
from triosim.mesh.torch_cost import GIB, axis_links, transition_us

Orders = tuple[tuple[int, ...], ...]
"""For each dim of the tensor the axes that cut it, the outermost cut first."""


@dataclass(frozen=True, slots=True)
class Move:
    """Another placement on one axis of the mesh."""

    axis: int
    after: Placement


def left_to_right(placements: Placements, ndim: int) -> Orders:
    """The order in which placements cut each dim, as they are read."""
    cuts = list(enumerate(placements))
    return tuple(
        tuple(axis for axis, p in cuts if isinstance(p, AnyShard) and p.dim == dim)
        for dim in range(ndim)
    )


def fixed_route(source: Placements, target: Placements, shape: Sequence[int]) -> list[Move]:
    """From the innermost axis to the outermost; then outwards in what had to be replicated first.

    A dim that is to stay cut by an inner axis, while outer axes cut it differently than before, is
    put together first.
    """
    now, moves = list(source), []
    cut = [size for p, size in zip(source, shape, strict=True) if isinstance(p, AnyShard)]
    if math.prod(cut) > 1:
        for axis in reversed(range(len(now))):
            after = target[axis]
            if isinstance(after, Shard):
                dim = Shard(after.dim)
                cuts_now = [outer == dim for outer in now[:axis]]
                if cuts_now != [outer == dim for outer in target[:axis]]:
                    after = Replicate()
            if now[axis] != after:
                moves.append(Move(axis, after))
                now[axis] = after
    for axis, after in enumerate(target):
        if now[axis] != after:
            moves.append(Move(axis, after))
    return moves


def order_of_cuts(placements: Placements, mesh: DeviceMesh, global_shape: Sequence[int]) -> Orders:
    """The order of plain cuts that strided shards stand for.

    Raises `ConfigError` where there is none, or where uneven chunks make ranks hold other indices
    than plain cuts in that order would: DTensor cannot redistribute those correctly.
    """
    orders: list[list[int]] = [[] for _ in global_shape]
    for axis, placement in reversed(list(enumerate(placements))):
        if not isinstance(placement, AnyShard):
            continue
        factor = placement.split_factor if isinstance(placement, StridedShard) else 1
        order = orders[placement.dim]
        # Cuts that come first although they stand further right multiply to the split factor.
        before = [
            math.prod(mesh.shape[outer] for outer in order[:i]) for i in range(len(order) + 1)
        ]
        if factor not in before:
            legal = ", ".join(str(size) for size in dict.fromkeys(before))
            problem = f"on axis {mesh.names[axis]} the split factor can be {legal} here"
            raise ConfigError("placements", format_placements(placements), problem)
        order.insert(before.index(factor), axis)
    for dim, order in enumerate(orders):
        if any(isinstance(placements[axis], StridedShard) for axis in order):
            _check_rows(placements, mesh, dim, order, global_shape[dim])
    return tuple(tuple(order) for order in orders)


def cheapest_route(
    source: Placements,
    target: Placements,
    mesh: DeviceMesh,
    global_shape: Sequence[int],
    element_bytes: float,
    gpus_per_host: int,
) -> list[Move]:
    """The cheapest sequence of single steps, by torch's estimate, for strided shards.

    Strided shards become plain ones with an order of cuts. Of equally cheap ways the one found
    first is taken, so that states are generated in torch's order.
    """
    orders = [order_of_cuts(side, mesh, global_shape) for side in (source, target)]
    start = _State(_plain(source), orders[0])
    goal = _State(_plain(target), orders[1])
    pending = {p.op: None for p in (*source, *target) if isinstance(p, Partial)}
    links = axis_links(mesh.shape, gpus_per_host)
    whole = element_bytes * math.prod(global_shape)
    found = itertools.count()
    queue: list[tuple[float, int, _State, list[Move]]] = [(0.0, next(found), start, [])]
    done = set()
    while queue:
        cost, _, state, moves = heapq.heappop(queue)
        if state == goal:
            return moves
        if state in done:
            continue
        done.add(state)
        shards = math.prod(mesh.shape[axis] for order in state.orders for axis in order)
        gib = whole / shards / GIB
        for move in state.moves(list(pending)):
            after = state.moved(move)
            if after not in done:
                before = state.placements[move.axis]
                step, _ = transition_us(before, move.after, links[move.axis], gib)
                heapq.heappush(queue, (cost + step, next(found), after, [*moves, move]))
    raise AssertionError("every layout can be reached through a replicated one")


@dataclass(frozen=True, slots=True)
class _State:
    placements: Placements
    orders: Orders

    def moved(self, move: Move) -> _State:
        orders = [tuple(axis for axis in order if axis != move.axis) for order in self.orders]
        if isinstance(move.after, AnyShard):
            orders[move.after.dim] += (move.axis,)
        placements = list(self.placements)
        placements[move.axis] = move.after
        return _State(tuple(placements), tuple(orders))

    def moves(self, pending: list[str]) -> Iterator[Move]:
        """Single steps from here. Of the axes that cut a dim only the innermost can change."""
        dims = range(len(self.orders))
        innermost = [(dim, order[-1]) for dim, order in enumerate(self.orders) if order]
        axes = list(enumerate(self.placements))
        for dim, axis in innermost:
            yield from (Move(axis, Shard(to)) for to in dims if to != dim)
        for _, axis in innermost:
            yield Move(axis, Replicate())
        summed = [axis for axis, p in axes if isinstance(p, Partial)]
        same = [axis for axis, p in axes if isinstance(p, Replicate)]
        yield from (Move(axis, Replicate()) for axis in summed)
        for axis in same + summed:
            yield from (Move(axis, Shard(dim)) for dim in dims)
        kinds = {p.op for p in self.placements if isinstance(p, Partial)}
        for axis in same:
            for op in pending:
                if len(kinds | {op}) == 1 or kinds | {op} == {"sum", "avg"}:
                    yield Move(axis, Partial(op))


def _plain(placements: Placements) -> Placements:
    return tuple(Shard(p.dim) if isinstance(p, StridedShard) else p for p in placements)


def _check_rows(
    placements: Placements, mesh: DeviceMesh, dim: int, order: Sequence[int], length: int
) -> None:
    step = math.prod(mesh.shape[axis] for axis in order)
    if length % step == 0:
        return
    as_read = sorted(order)
    here = mesh.sub_mesh([mesh.names[axis] for axis in as_read])
    cuts = [placements[axis] for axis in as_read]
    strided = [
        StridedShard(0, cut.split_factor) if isinstance(cut, StridedShard) else Shard(0)
        for cut in cuts
    ]
    nested = here.sub_mesh([mesh.names[axis] for axis in order])
    if blocks((length,), here, strided) != blocks((length,), nested, [Shard(0)] * len(order)):
        low, high = length // step * step, -(-length // step) * step
        nearest = f"{low:,} or {high:,}" if low else f"{high:,}"
        problem = f"dim {dim} is too uneven to redistribute from or to strided shards"
        raise ConfigError("global_shape", f"{length:,}", f"{problem}; nearest: {nearest}")
