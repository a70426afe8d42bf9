"""DTensor's words for what a rank holds of a tensor, one word for each axis of the mesh.

| written | means |
|---|---|
| R | every rank of the axis holds the same |
| S(0) | dim 0 is cut into as many chunks as the axis has ranks, as `torch.chunk` cuts |
| _S(0,2) | dim 0 is first cut into 2 pieces, each piece into chunks, and a rank holds one of each |
| P | every rank holds an addend; the tensor is their sum. P(max) and others likewise |
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from triosim.errors import ConfigError
from triosim.mesh.device_mesh import DeviceMesh

REDUCTIONS = ("sum", "avg", "min", "max", "product", "band", "bor", "bxor")


@dataclass(frozen=True, slots=True)
class Replicate:
    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True, slots=True)
class Shard:
    """Chunks along `dim`; the last ones may be shorter or empty."""

    dim: int

    def __str__(self) -> str:
        return f"S({self.dim})"


@dataclass(frozen=True, slots=True)
class StridedShard:
    """Chunks of each of `split_factor` pieces along `dim`.

    What FSDP2 makes of a dim that tensor parallelism, on an axis further right, has already cut
    into `split_factor` chunks: the chunks of those, although placements are read left to right.
    """

    dim: int
    split_factor: int

    def __post_init__(self) -> None:
        if self.split_factor < 1:
            raise ConfigError("split_factor", self.split_factor, "must be at least 1")

    def __str__(self) -> str:
        return f"_S({self.dim},{self.split_factor})"


@dataclass(frozen=True, slots=True)
class Partial:
    """Addends (or factors, ...) whose reduction by `op` is still to come."""

    op: str = "sum"

    def __post_init__(self) -> None:
        if self.op not in REDUCTIONS:
            raise ConfigError("op", self.op, f"must be one of {', '.join(REDUCTIONS)}")

    def __str__(self) -> str:
        return "P" if self.op == "sum" else f"P({self.op})"


AnyShard = Shard | StridedShard
Placement = Replicate | Partial | AnyShard
Placements = tuple[Placement, ...]

_WORD = re.compile(r"[^\s,;()\[\]]+(?:\([^()]*\))?")
_FORMS = (
    (re.compile(r"r|replicate", re.I), lambda found: Replicate()),
    (re.compile(r"p|partial", re.I), lambda found: Partial()),
    (re.compile(r"(?:p|partial)\((\w+)\)", re.I), lambda found: Partial(found[1].lower())),
    (re.compile(r"(?:s|shard)\((?:dim=)?(-?\d+)\)", re.I), lambda found: Shard(int(found[1]))),
    (
        re.compile(r"_?(?:s|stridedshard)\((?:dim=)?(-?\d+),(?:sf=|split_factor=)?(\d+)\)", re.I),
        lambda found: StridedShard(int(found[1]), int(found[2])),
    ),
)  # fmt: skip


def parse_placement(text: str) -> Placement:
    """One placement from how we or torch write it: R, S(0), _S(0,2), P, P(max), Shard(dim=0)."""
    word = "".join(text.split()).removesuffix("()")
    for form, make in _FORMS:
        found = form.fullmatch(word)
        if found:
            return make(found)
    raise ConfigError("placement", text, "must be R, S(dim), P, P(max) or _S(dim,split factor)")


def parse_placements(text: str) -> Placements:
    """One placement for each axis, as in "_S(0,2), S(0)"; commas, spaces or brackets between."""
    words = _WORD.findall(re.sub(r"\(\s*\)", "", text))
    if not words:
        raise ConfigError("placements", text, "must name one placement for each mesh axis")
    return tuple(parse_placement(word) for word in words)


def format_placements(placements: Iterable[Placement]) -> str:
    """The form that `parse_placements` reads: "_S(0,2), S(0)"."""
    return ", ".join(str(placement) for placement in placements)


def check_placements(placements: Sequence[Placement], mesh: DeviceMesh, ndim: int) -> Placements:
    """One placement for each axis of the mesh, with dims of the tensor counted from 0.

    Raises `ConfigError` also where reductions are mixed whose order would matter (as torch does).
    """
    if len(placements) != mesh.ndim:
        axes = ", ".join(mesh.names)
        raise ConfigError(
            "placements", format_placements(placements), f"must be one for each axis of {axes}"
        )
    pending = {placement.op for placement in placements if isinstance(placement, Partial)}
    if len(pending) > 1 and pending != {"sum", "avg"}:
        raise ConfigError(
            "placements", format_placements(placements), "pending reductions must be of one kind"
        )
    return tuple(_counted_from_zero(placement, ndim) for placement in placements)


def fully_shard(
    placements: Sequence[Placement], mesh: DeviceMesh, axis: str, dim: int = 0
) -> Placements:
    """Placements after FSDP2 also shards `dim` over `axis`.

    Axes to the right that already shard `dim` (tensor parallelism) stay the outer cut: the new
    placement is then strided by their number of shards.
    """
    at = mesh.axis(axis)
    if placements[at] != Replicate():
        raise ConfigError("axis", axis, f"is taken: {placements[at]}")
    factor = 1
    for placement, size in list(zip(placements, mesh.shape, strict=True))[at + 1 :]:
        if isinstance(placement, AnyShard) and placement.dim == dim:
            factor *= size
    new = Shard(dim) if factor == 1 else StridedShard(dim, factor)
    return (*placements[:at], new, *placements[at + 1 :])


def _counted_from_zero(placement: Placement, ndim: int) -> Placement:
    if not isinstance(placement, AnyShard):
        return placement
    if not -ndim <= placement.dim < ndim:
        what = f"dims of this tensor are 0 to {ndim - 1}" if ndim else "a number has no dims"
        raise ConfigError("placement", placement, what)
    return replace(placement, dim=placement.dim % ndim)
