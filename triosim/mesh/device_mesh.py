"""Ranks as an n-dimensional array with named axes, and the groups that its axes make.

"Axis" is one of the mesh, "dim" one of a tensor. Groups are plain arrays of ranks, which the
network's planner takes as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from triosim.errors import ConfigError, counted

Ints = NDArray[np.int64]
MAX_RANKS = 2**24


class DeviceMesh:
    """Ranks in an array of `shape`, one name for each axis.

    Neighbours along the last axis have consecutive ranks (row-major, as torch numbers them) unless
    `order` lists the axes in another way, outermost first. `ranks` places given ranks instead: a
    part of a larger mesh. Meshes are equal where names and ranks are.
    """

    __slots__ = ("names", "ranks")

    names: tuple[str, ...]
    ranks: Ints
    """Read-only, of the mesh's shape."""

    def __init__(
        self,
        shape: Sequence[int],
        names: Sequence[str],
        *,
        order: Sequence[str] | None = None,
        ranks: Any = None,
    ) -> None:
        sizes = checked_shape("shape", shape, least=1)
        axes = (names,) if isinstance(names, str) else tuple(names)
        if len(axes) != len(sizes):
            raise ConfigError("names", axes, f"must be {len(sizes)}, one for each axis of {sizes}")
        if len(set(axes)) != len(axes) or not all(axes):
            raise ConfigError("names", axes, "must differ from each other")
        if math.prod(sizes) > MAX_RANKS:
            raise ConfigError("shape", sizes, f"at most {MAX_RANKS:,} ranks are possible")
        self.names = axes
        self.ranks = _ordered(sizes, axes, order) if ranks is None else _given(sizes, ranks)
        self.ranks.flags.writeable = False

    @property
    def shape(self) -> tuple[int, ...]:
        return self.ranks.shape

    @property
    def ndim(self) -> int:
        return self.ranks.ndim

    @property
    def size(self) -> int:
        """How many ranks there are."""
        return self.ranks.size

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DeviceMesh):
            return NotImplemented
        return self.names == other.names and np.array_equal(self.ranks, other.ranks)

    def __hash__(self) -> int:
        return hash((self.names, self.shape, self.ranks.tobytes()))

    def __repr__(self) -> str:
        axes = zip(self.names, self.shape, strict=True)
        return f"DeviceMesh({', '.join(f'{name}={size}' for name, size in axes)})"

    def axis(self, name: str) -> int:
        """The position of an axis."""
        if name not in self.names:
            raise ConfigError("axis", name, f"this mesh has {', '.join(self.names)}")
        return self.names.index(name)

    def axis_size(self, name: str) -> int:
        return self.shape[self.axis(name)]

    def coordinates(self, rank: int | Sequence[int] | Ints | None = None) -> Ints:
        """Where ranks stand: shape (..., axes); of all ranks in the mesh's order by default."""
        if rank is None:
            return np.stack(np.unravel_index(np.arange(self.size), self.shape), axis=-1)
        wanted = np.asarray(rank)
        flat = self.ranks.ravel()
        by_rank = np.argsort(flat)
        at = np.minimum(np.searchsorted(flat, wanted, sorter=by_rank), self.size - 1)
        place = by_rank[at]
        missing = flat[place] != wanted
        if missing.any():
            lost = wanted[missing].flat[0] if wanted.ndim else wanted
            raise ConfigError("rank", lost, f"{self!r} has {_span(flat)}")
        return np.stack(np.unravel_index(place, self.shape), axis=-1)

    def checked_coordinate(self, coordinate: Sequence[int]) -> tuple[int, ...]:
        place = checked_shape("coordinate", coordinate)
        if len(place) != self.ndim or not (np.array(place) < self.shape).all():
            raise ConfigError("coordinate", coordinate, f"must lie in a mesh of {self.shape}")
        return place

    def groups(self, axes: str | Sequence[str]) -> Ints:
        """The groups along one axis, or along several flattened: shape (groups, members).

        Members are in the order of the axes as given, the last one fastest; groups in that of the
        other axes.
        """
        inside = self._positions(axes)
        outside = [axis for axis in range(self.ndim) if axis not in inside]
        members = math.prod(self.shape[axis] for axis in inside)
        return self.ranks.transpose(outside + inside).reshape(-1, members)

    def sub_mesh(self, axes: str | Sequence[str], rank: int | None = None) -> DeviceMesh:
        """The mesh of these axes that `rank` (by default the first one) is in."""
        inside = self._positions(axes)
        place = (0,) * self.ndim if rank is None else tuple(self.coordinates(rank))
        kept = [slice(None) if axis in inside else place[axis] for axis in range(self.ndim)]
        left = sorted(inside)
        ranks = self.ranks[tuple(kept)].transpose([left.index(axis) for axis in inside])
        return DeviceMesh(ranks.shape, [self.names[axis] for axis in inside], ranks=ranks)

    def flatten(self, axes: Sequence[str], name: str) -> DeviceMesh:
        """The same ranks with several axes as one, which stands where the first of them stood."""
        inside = self._positions(axes)
        outside = [axis for axis in range(self.ndim) if axis not in inside]
        at = sum(axis < inside[0] for axis in outside)
        order = outside[:at] + inside + outside[at:]
        names = [self.names[axis] for axis in outside]
        shape = [self.shape[axis] for axis in outside]
        shape.insert(at, math.prod(self.shape[axis] for axis in inside))
        names.insert(at, name)
        return DeviceMesh(shape, names, ranks=self.ranks.transpose(order).reshape(shape))

    def split(self, axis: str, into: Mapping[str, int]) -> DeviceMesh:
        """The same ranks with one axis as several, outermost first: another factorisation."""
        at, size = self.axis(axis), self.axis_size(axis)
        for name, part in into.items():
            if not _is_whole(part) or part < 1 or size % part:
                raise ConfigError(name, part, f"must divide {axis} {size:,}{nearest(part, size)}")
        if math.prod(into.values()) != size:
            raise ConfigError("into", dict(into), f"must multiply to {axis} {size:,}")
        shape = (*self.shape[:at], *into.values(), *self.shape[at + 1 :])
        names = (*self.names[:at], *into, *self.names[at + 1 :])
        return DeviceMesh(shape, names, ranks=self.ranks.reshape(shape))

    def hosts_per_group(self, axes: str | Sequence[str], gpus_per_host: int) -> int:
        """How many hosts the widest group along the axes touches: 1 where it stays inside.

        Ranks fill one host after the other.
        """
        hosts = np.sort(self.groups(axes) // gpus_per_host, axis=1)
        return 1 + int((np.diff(hosts, axis=1) != 0).sum(axis=1).max())

    def _positions(self, axes: str | Sequence[str]) -> list[int]:
        names = [axes] if isinstance(axes, str) else list(axes)
        if not names or len(set(names)) != len(names):
            raise ConfigError("axes", names, f"must be one or more of {', '.join(self.names)}")
        return [self.axis(name) for name in names]


def nearest(value: object, total: int) -> str:
    """The tail of a sentence: which divisors of `total` are nearest to a value that is none."""
    if not isinstance(value, (int, np.integer)) or value < 1:
        return ""
    low = next((size for size in range(min(int(value), total), 0, -1) if total % size == 0), 1)
    high = next((size for size in range(int(value), total + 1) if total % size == 0), low)
    return f"; nearest: {low:,}" + (f" or {high:,}" if high != low else "")


def checked_shape(field: str, shape: Sequence[int], *, least: int = 0) -> tuple[int, ...]:
    """Sizes as plain whole numbers of at least `least`."""
    sizes = tuple(shape) if isinstance(shape, Iterable) else (None,)
    if not all(_is_whole(size) and size >= least for size in sizes):
        raise ConfigError(field, shape, f"must be whole numbers of at least {least}, as in (2, 4)")
    return tuple(int(size) for size in sizes)


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _ordered(sizes: tuple[int, ...], names: tuple[str, ...], order: Sequence[str] | None) -> Ints:
    outermost_first = names if order is None else tuple(order)
    if sorted(outermost_first) != sorted(names):
        raise ConfigError("order", outermost_first, f"must list each of {', '.join(names)} once")
    nested = [names.index(name) for name in outermost_first]
    ranks = np.arange(math.prod(sizes), dtype=np.int64).reshape([sizes[axis] for axis in nested])
    return ranks.transpose(np.argsort(nested)) if nested else ranks


def _given(sizes: tuple[int, ...], ranks: Any) -> Ints:
    array = np.array(ranks)
    if not np.issubdtype(array.dtype, np.integer) or array.size != math.prod(sizes):
        raise ConfigError("ranks", ranks, f"must be {counted(math.prod(sizes), 'whole number')}")
    ascending = np.sort(array, axis=None)
    if ascending[0] < 0 or not (np.diff(ascending) > 0).all():
        raise ConfigError("ranks", ranks, "each rank can stand in one place only, from 0 up")
    return array.reshape(sizes).astype(np.int64)


def _span(flat: Ints) -> str:
    if len(flat) <= 8:
        return f"ranks {', '.join(str(rank) for rank in flat)}"
    return f"{len(flat):,} ranks from {flat.min():,} to {flat.max():,}"
