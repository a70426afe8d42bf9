"""Which part of a tensor each rank holds: shapes, offsets and index ranges.

Placements apply from left to right; each cuts what the one before has left. A chunk is
ceil(length / parts) long, so the last ones may be short or empty (`torch.chunk`). A strided shard
holds several ranges of one dim. All of it is computed for every coordinate of the mesh at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from triosim.mesh.device_mesh import DeviceMesh, Ints, checked_shape
from triosim.mesh.placements import AnyShard, Placement, Shard, check_placements

Interval = tuple[int, int]
"""First index and the one after the last."""
Block = tuple[tuple[Interval, ...], ...]
"""For each dim the ranges that a rank holds, ascending; none where it holds nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class _Cut:
    """One placement that cuts a dim: over `parts` ranks, of which those at `index` are asked for.

    The indices of a dim's cuts broadcast against each other.
    """

    placement: AnyShard
    parts: int
    index: Ints


@dataclass(frozen=True, slots=True, eq=False)
class _Pieces:
    """Ranges of one dim in order: arrays of starts and lengths, shape (..., pieces)."""

    start: Ints
    length: Ints

    def cut(self, cut: _Cut) -> _Pieces:
        """What the ranks of a cut hold of the concatenated pieces."""
        total = self.length.sum(axis=-1)
        if isinstance(cut.placement, Shard):
            low, high = _chunk(total, cut.parts, cut.index)
            low, high = low[..., None], high[..., None]
        else:
            factor = cut.placement.split_factor
            first, last = _chunk(total[..., None], factor, np.arange(factor))
            low, high = _chunk(last - first, cut.parts, cut.index[..., None])
            low, high = first + low, first + high
        ends = self.length.cumsum(axis=-1)
        begins = ends - self.length
        # Every range wanted against every piece: (..., wanted, pieces).
        inner = np.maximum(low[..., None], begins[..., None, :])
        outer = np.minimum(high[..., None], ends[..., None, :])
        start = self.start[..., None, :] + inner - begins[..., None, :]
        length = np.maximum(outer - inner, 0)
        flat = (*length.shape[:-2], -1)
        return _Pieces(np.broadcast_to(start, length.shape).reshape(flat), length.reshape(flat))

    def first(self, nothing: int) -> Ints:
        """The first index held, or `nothing`."""
        first: Ints = np.where(self.length > 0, self.start, nothing).min(axis=-1)
        return first


def local_shape_and_offset(
    global_shape: Sequence[int],
    mesh: DeviceMesh,
    placements: Sequence[Placement],
    coordinate: Sequence[int],
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape of what the rank at a coordinate of the mesh holds, and its first index in each dim.

    As torch has it, the offset of an empty dim is that dim's size.
    """
    place = mesh.checked_coordinate(coordinate)
    shape = checked_shape("global_shape", global_shape)
    dims = _dims(shape, mesh, placements, [np.array(at) for at in place])
    sizes = tuple(int(pieces.length.sum()) for pieces in dims)
    return sizes, tuple(int(dims[dim].first(size)) for dim, size in enumerate(shape))


def local_shapes(
    global_shape: Sequence[int], mesh: DeviceMesh, placements: Sequence[Placement]
) -> Ints:
    """What every rank holds: shape (sizes of the mesh, dims of the tensor)."""
    shape = checked_shape("global_shape", global_shape)
    dims = _dims(shape, mesh, placements, np.ix_(*map(np.arange, mesh.shape)))
    sizes = np.empty((*mesh.shape, len(shape)), dtype=np.int64)
    for dim, pieces in enumerate(dims):
        sizes[..., dim] = pieces.length.sum(axis=-1)
    return sizes


def blocks(
    global_shape: Sequence[int], mesh: DeviceMesh, placements: Sequence[Placement]
) -> dict[int, Block]:
    """For each rank the index ranges that it holds, dim by dim, in the mesh's order of ranks.

    Replicas hold the same ranges; a pending sum counts as a whole.
    """
    shape = checked_shape("global_shape", global_shape)
    dims = _dims(shape, mesh, placements, np.ix_(*map(np.arange, mesh.shape)))
    ranges, chosen = [], []
    for pieces in dims:
        places = pieces.length.shape[:-1]  # size 1 along axes that do not cut this dim
        starts = pieces.start.reshape(-1, pieces.start.shape[-1]).tolist()
        lengths = pieces.length.reshape(-1, pieces.length.shape[-1]).tolist()
        ranges.append([_merged(*both) for both in zip(starts, lengths, strict=True)])
        which = np.arange(len(starts)).reshape(places)
        chosen.append(np.broadcast_to(which, mesh.shape).ravel().tolist())
    held = [[ranges[dim][at] for at in chosen[dim]] for dim in range(len(shape))]
    each = zip(*held, strict=True) if held else [()] * mesh.size
    return dict(zip(mesh.ranks.ravel().tolist(), each, strict=True))


def chunk_size(placement: AnyShard, length: int, parts: int, index: int = 0) -> int:
    """How long the chunk of one rank is; the first rank's is the longest."""
    whole = _Pieces(np.zeros(1, dtype=np.int64), np.array([length]))
    return int(whole.cut(_Cut(placement, parts, np.array(index))).length.sum())


def _dims(
    shape: Sequence[int],
    mesh: DeviceMesh,
    placements: Sequence[Placement],
    index: Sequence[Ints],
) -> list[_Pieces]:
    """The pieces of each dim, at the positions `index` along each axis."""
    checked = check_placements(placements, mesh, len(shape))
    nowhere = (1,) * max((at.ndim for at in index), default=0)
    dims = [
        _Pieces(np.zeros((*nowhere, 1), dtype=np.int64), np.full((*nowhere, 1), size))
        for size in shape
    ]
    for placement, parts, at in zip(checked, mesh.shape, index, strict=True):
        if isinstance(placement, AnyShard):
            dims[placement.dim] = dims[placement.dim].cut(_Cut(placement, parts, at))
    return dims


def _chunk(length: Ints, parts: int, index: Ints) -> tuple[Ints, Ints]:
    """Where the chunks at `index` begin and end."""
    size = -(-length // parts)
    return np.minimum(size * index, length), np.minimum(size * (index + 1), length)


def _merged(starts: list[int], lengths: list[int]) -> tuple[Interval, ...]:
    """Ranges without empty ones; neighbours joined."""
    found: list[Interval] = []
    for start, length in zip(starts, lengths, strict=True):
        if not length:
            continue
        if found and found[-1][1] == start:
            found[-1] = (found[-1][0], start + length)
        else:
            found.append((start, start + length))
    return tuple(found)
