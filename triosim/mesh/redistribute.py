"""From one layout of a tensor to another: the collectives, in order, with their bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

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
    format_placements,
)
from triosim.mesh.routes import (
    Move,
    Orders,
    cheapest_route,
    fixed_route,
    left_to_right,
    order_of_cuts,
)
from triosim.mesh.shards import chunk_size

ALL_GATHER = "all-gather"
REDUCE_SCATTER = "reduce-scatter"
ALL_REDUCE = "all-reduce"
ALL_TO_ALL = "all-to-all"
SLICE = "local slice"
DIVIDE = "local division"
SENDING = (ALL_GATHER, REDUCE_SCATTER, ALL_REDUCE, ALL_TO_ALL)

_NOT_DIVIDED = ("product", "band", "bor", "bxor")


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One collective on every group along `axis` at once, or a local change that sends nothing.

    `array_bytes` is the array of one group as nccl-tests counts it: what each rank has after an
    all-gather or before a reduce-scatter, each rank's buffer in an all-reduce or all-to-all.
    `padding_bytes` of it are filler: collectives need chunks of one size, so torch pads uneven
    shards to the longest. A ring sends `sent_bytes` from each rank. `placements` hold afterwards.
    """

    axis: str
    operation: str
    before: Placement
    after: Placement
    group_size: int
    array_bytes: int
    padding_bytes: int
    placements: Placements

    @property
    def sends(self) -> bool:
        return self.operation in SENDING

    @property
    def sent_bytes(self) -> float:
        """(n-1)/n of the array, twice that in an all-reduce."""
        if not self.sends:
            return 0.0
        passes = 2 if self.operation == ALL_REDUCE else 1
        return passes * (self.group_size - 1) / self.group_size * self.array_bytes


def redistribute(
    global_shape: Sequence[int],
    element_bytes: int,
    mesh: DeviceMesh,
    source: Sequence[Placement],
    target: Sequence[Placement],
    *,
    coordinate: Sequence[int] | None = None,
    gpus_per_host: int = 8,
) -> tuple[Step, ...]:
    """What torch 2.13 does to bring a tensor from one layout to another.

    Bytes are those of the group that the rank at `coordinate` is in: by default the first rank's,
    which has the most to send where shards are uneven. Axes of one rank change without a step.
    `gpus_per_host` matters only for strided shards, whose path torch chooses by cost.

    Raises `ConfigError` where torch has no way: from a shard to a pending sum, from one reduction
    to another, or strided shards that stand for no order of cuts.
    """
    shape = checked_shape("global_shape", global_shape)
    if element_bytes < 1:
        raise ConfigError("element_bytes", element_bytes, "must be at least 1")
    start = _simplest(check_placements(source, mesh, len(shape)))
    goal = _simplest(check_placements(target, mesh, len(shape)))
    place = (0,) * mesh.ndim if coordinate is None else mesh.checked_coordinate(coordinate)
    strided = any(isinstance(placement, StridedShard) for placement in (*start, *goal))
    if start == goal:
        return ()
    if strided and mesh.ndim > 1:
        moves = cheapest_route(start, goal, mesh, shape, element_bytes, gpus_per_host)
        orders = order_of_cuts(start, mesh, shape)
    else:
        moves, orders = fixed_route(start, goal, mesh.shape), left_to_right(start, len(shape))
    layout = _Layout(shape, element_bytes, mesh, place, start, orders)
    return tuple(step for move in moves for step in layout.apply(move))


def _simplest(placements: Placements) -> Placements:
    """A shard strided by one piece is a plain shard."""
    return tuple(
        Shard(p.dim) if isinstance(p, StridedShard) and p.split_factor == 1 else p
        for p in placements
    )


class _Layout:
    """The layout as the steps change it, seen from one rank."""

    def __init__(
        self,
        shape: Sequence[int],
        element_bytes: int,
        mesh: DeviceMesh,
        place: Sequence[int],
        placements: Placements,
        orders: Orders,
    ) -> None:
        self.shape, self.element_bytes, self.mesh, self.place = shape, element_bytes, mesh, place
        self.orders = [list(order) for order in orders]
        # With one axis a strided shard is an end in itself, otherwise an order of plain cuts.
        plain = mesh.ndim > 1
        self.now = [
            Shard(p.dim) if plain and isinstance(p, StridedShard) else p for p in placements
        ]

    def apply(self, move: Move) -> list[Step]:
        before, after = self.now[move.axis], move.after
        if self.mesh.shape[move.axis] == 1:
            self._set(move)
            return []
        match before, after:
            case (Shard() | StridedShard(), Replicate()):
                size = self._local(before.dim, without=move.axis)
                return self._step(move, ALL_GATHER, *self._padded(before, size, move.axis))
            case (Shard(), Shard()):
                return self._step(move, ALL_TO_ALL, *self._exchanged(before, after, move.axis))
            case (Partial(), Replicate()):
                return self._step(move, ALL_REDUCE, self._elements(), 0)
            case (Partial(), Shard()):
                size = self._local(after.dim)
                return self._step(move, REDUCE_SCATTER, *self._padded(after, size, move.axis))
            case (Replicate(), Shard() | StridedShard()):
                return self._step(move, SLICE, 0, 0)
            case (Replicate(), Partial()) if after.op not in _NOT_DIVIDED:
                return self._step(move, DIVIDE, 0, 0)
            case (_, StridedShard()) | (StridedShard(), Shard()):
                return self.apply(Move(move.axis, Replicate())) + self.apply(move)
        problem = f"torch has no way to {after} on axis {self.mesh.names[move.axis]}"
        raise ConfigError("placements", format_placements(self.now), problem)

    def _step(self, move: Move, operation: str, elements: int, padding: int) -> list[Step]:
        before = self._written()[move.axis]
        self._set(move)
        placements = self._written()
        step = Step(
            axis=self.mesh.names[move.axis],
            operation=operation,
            before=before,
            after=placements[move.axis],
            group_size=self.mesh.shape[move.axis],
            array_bytes=elements * self.element_bytes,
            padding_bytes=padding * self.element_bytes,
            placements=placements,
        )
        return [step]

    def _set(self, move: Move) -> None:
        for order in self.orders:
            if move.axis in order:
                order.remove(move.axis)
        if isinstance(move.after, AnyShard):
            self.orders[move.after.dim].append(move.axis)
        self.now[move.axis] = move.after

    def _written(self) -> Placements:
        """Placements that mean this layout when they are read from left to right."""
        if self.mesh.ndim == 1:
            return tuple(self.now)
        written = list(self.now)
        for dim, order in enumerate(self.orders):
            for at, axis in enumerate(order):
                outer = [self.mesh.shape[cut] for cut in order[:at] if cut > axis]
                factor = math.prod(outer)
                written[axis] = Shard(dim) if factor == 1 else StridedShard(dim, factor)
        return tuple(written)

    def _local(self, dim: int, without: int | None = None) -> int:
        """How long `dim` is here, or would be without the cut of one axis."""
        length = self.shape[dim]
        for axis in self.orders[dim]:
            placement = self.now[axis]
            if axis != without and isinstance(placement, AnyShard):
                length = chunk_size(placement, length, self.mesh.shape[axis], self.place[axis])
        return length

    def _elements(self, *without: int) -> int:
        """Elements here, the dims `without` left out."""
        dims = [dim for dim in range(len(self.shape)) if dim not in without]
        return math.prod(self._local(dim) for dim in dims)

    def _padded(self, placement: AnyShard, length: int, axis: int) -> tuple[int, int]:
        """Elements of all chunks along a dim at the longest one's size, and how many are filler."""
        parts, rest = self.mesh.shape[axis], self._elements(placement.dim)
        padded = parts * chunk_size(placement, length, parts)
        return padded * rest, (padded - length) * rest

    def _exchanged(self, before: Shard, after: Shard, axis: int) -> tuple[int, int]:
        """Elements of a rank's buffer when another dim is cut, and how many are filler."""
        parts, rest = self.mesh.shape[axis], self._elements(before.dim, after.dim)
        whole, across = self._local(before.dim, without=axis), self._local(after.dim)
        held = self._local(before.dim) * across
        buffer = chunk_size(before, whole, parts) * parts * chunk_size(after, across, parts)
        return buffer * rest, (buffer - held) * rest
