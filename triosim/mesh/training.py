"""The meshes of a training job: one for dense layers, another factorisation of it for experts.

Expert parallelism has no GPUs of its own: it takes ranks of data and context parallelism, which
hold the same experts' tokens anyway, and leaves the rest to shard or replicate each expert.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from triosim.errors import ConfigError, counted
from triosim.mesh.device_mesh import MAX_RANKS, DeviceMesh, nearest

AXES = ("pp", "dp_replicate", "dp_shard", "cp", "tp")
"""From outermost to innermost, unless asked otherwise: tensor parallelism talks most, so its ranks
are neighbours."""
EXPERT_AXES = ("pp", "dp_replicate", "dp_shard_mod_ep", "ep", "tp")


def training_mesh(
    gpus: int,
    *,
    dp_replicate: int = 1,
    dp_shard: int = -1,
    cp: int = 1,
    tp: int = 1,
    pp: int = 1,
    order: Sequence[str] = AXES,
) -> DeviceMesh:
    """All ranks with the axes of `AXES`, those of size 1 too; one size may be -1: what is left.

    Raises `ConfigError` naming the nearest sizes that multiply to `gpus`.
    """
    sizes = {"dp_replicate": dp_replicate, "dp_shard": dp_shard, "cp": cp, "tp": tp, "pp": pp}
    if not _whole(gpus) or not 1 <= gpus <= MAX_RANKS:
        raise ConfigError("gpus", gpus, f"must be a whole number from 1 to {MAX_RANKS:,}")
    for name, size in sizes.items():
        if not _whole(size) or (size < 1 and size != -1):
            raise ConfigError(name, size, "must be at least 1, or -1 for what is left")
    open_axes = [name for name, size in sizes.items() if size == -1]
    if len(open_axes) > 1:
        raise ConfigError(open_axes[1], -1, f"only one axis can be the rest; {open_axes[0]} is")
    left = gpus
    for name in sorted(sizes, key=AXES.index, reverse=True):
        if sizes[name] != -1:
            left = _divided(name, sizes[name], left, gpus)
    if open_axes:
        sizes[open_axes[0]] = left
    elif left > 1:
        fits = sizes["dp_shard"] * left
        product = " x ".join(f"{name} {size}" for name, size in sizes.items())
        problem = f"must be the product of {product}; dp_shard {fits:,} (or -1) would make it so"
        raise ConfigError("gpus", gpus, problem)
    return DeviceMesh([sizes[name] for name in AXES], AXES, order=order)


def expert_mesh(mesh: DeviceMesh, ep: int) -> DeviceMesh:
    """The ranks of a training mesh with the axes of `EXPERT_AXES`.

    `ep` takes neighbours of `dp_shard` and `cp` flattened and must divide their product; each
    expert's parameters are sharded over `dp_shard_mod_ep`. (As torchtitan; experts are not
    replicated over ranks of `dp_replicate` that could hold different ones.)
    """
    flat = mesh.flatten(("dp_shard", "cp"), "dp_shard x cp")
    total = flat.axis_size("dp_shard x cp")
    if not _whole(ep) or ep < 1 or total % ep:
        problem = f"must divide dp_shard x cp = {total:,}{nearest(ep, total)}"
        raise ConfigError("ep", ep, problem)
    return flat.split("dp_shard x cp", {"dp_shard_mod_ep": total // ep, "ep": ep})


def _whole(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _divided(name: str, size: int, left: int, gpus: int) -> int:
    if left % size:
        whole = counted(gpus, "GPU")
        what = f"the {whole}" if left == gpus else f"{left:,}, what other axes leave of {whole}"
        raise ConfigError(name, size, f"must divide {what}{nearest(size, left)}")
    return left // size
