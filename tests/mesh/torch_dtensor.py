"""torch's own DTensor, one rank of a fake process group at a time (private API of torch 2.13)."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
from torch.distributed import device_mesh, tensor
from torch.distributed.tensor import placement_types
from torch.distributed.tensor._collective_utils import MeshTopoInfo
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from torch.distributed.tensor._redistribute import (
    _gen_transform_infos,
    clear_redistribute_planner_cache,
    redistribute_local_tensor,
)
from torch.distributed.tensor._utils import compute_local_shape_and_global_offset
from torch.distributed.tensor.debug import CommDebugMode
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode

from triosim.mesh import (
    DeviceMesh,
    Partial,
    Placements,
    Replicate,
    Shard,
    StridedShard,
    parse_placement,
)

GPUS_PER_HOST = 4
OPERATIONS = {
    "all_gather_into_tensor": "all-gather",
    "reduce_scatter_tensor": "reduce-scatter",
    "all_reduce": "all-reduce",
    "shard_dim_alltoall": "all-to-all",
}


class _Recorder(TorchDispatchMode):
    """Collectives as they run: operation, axis, elements of one group's array."""

    def __init__(self, axes):
        super().__init__()
        self.axes = axes
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if tensor.DTensor in types:
            return NotImplemented  # DTensor comes back with what it does to local tensors
        result = func(*args, **(kwargs or {}))
        operation = OPERATIONS.get(func._schema.name.split("::")[1])
        if operation:
            array = result if operation == "all-gather" else args[0]
            self.seen.append((operation, self.axes[args[-1]], array.numel()))
        return result


@dataclass
class Torch:
    """A mesh of torch, as one of its ranks sees it.

    Tensors are on the meta device: torch then plans as it does for GPUs (on CPUs it replaces every
    all-to-all by an all-gather), and nothing is computed.
    """

    mesh: DeviceMesh
    rank: int
    device: str = "meta"
    dtype: torch.dtype = torch.float32
    there: device_mesh.DeviceMesh = field(init=False)

    def __post_init__(self):
        ranks = torch.tensor(self.mesh.ranks)
        self.there = device_mesh.DeviceMesh(
            self.device, ranks, mesh_dim_names=self.mesh.names, _rank=self.rank
        )

    @property
    def coordinate(self):
        return tuple(self.there.get_coordinate())

    def shape_and_offset(self, shape, placements):
        return compute_local_shape_and_global_offset(shape, self.there, theirs(placements))

    def distributed(self, values, placements):
        """What this rank holds of real values."""
        cut = tensor.distribute_tensor(values, self.there, theirs(placements), src_data_rank=None)
        return cut.to_local()

    def dtensor(self, shape, placements):
        local, _ = self.shape_and_offset(shape, placements)
        whole = torch.empty(shape, device="meta")
        return tensor.DTensor.from_local(
            torch.empty(local, device=self.device, dtype=self.dtype),
            self.there,
            theirs(placements),
            run_check=False,
            shape=whole.shape,
            stride=whole.stride(),
        )

    def recorder(self):
        return _Recorder({self.there.get_group(name).group_name: name for name in self.mesh.names})

    def matmul(self, shapes, sides):
        """Placements of the product of two tensors, and the collectives before it."""
        inputs = [self.dtensor(*both) for both in zip(shapes, sides, strict=True)]
        with self.recorder() as recorder:
            product = torch.mm(*inputs)
        return ours(product.placements), recorder.seen

    def redistribute(self, shape, source, target):
        """Collectives in order, those that CommDebugMode counts, and the local shape afterwards."""
        whole = torch.empty(shape, device="meta")
        meta = TensorMeta(whole.shape, whole.stride(), self.dtype)
        local, _ = self.shape_and_offset(shape, source)
        specs = [DTensorSpec(self.there, theirs(side), meta) for side in (source, target)]
        held = torch.empty(local, device=self.device, dtype=self.dtype)
        with CommDebugMode() as counted, self.recorder() as recorder:
            result = redistribute_local_tensor(held, *specs)
        return recorder.seen, counted.get_total_counts(), tuple(result.shape)


@contextmanager
def open_torch(mesh, rank=0, **settings):
    """A mesh of torch as one rank sees it, on hosts of `GPUS_PER_HOST`."""
    # Plans hold sizes of one rank's shards and are cached whatever the rank.
    _gen_transform_infos.cache_clear()
    clear_redistribute_planner_cache()
    MeshTopoInfo.build_from_mesh.cache_clear()
    resources = device_mesh._mesh_resources
    resources.num_devices_per_host = lambda device_type: GPUS_PER_HOST
    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=mesh.size)
    try:
        yield Torch(mesh, rank, **settings)
    finally:
        dist.destroy_process_group()
        del resources.num_devices_per_host


def theirs(placements):
    made = []
    for placement in placements:
        match placement:
            case Replicate():
                made.append(placement_types.Replicate())
            case Partial(op):
                made.append(placement_types.Partial(op))
            case Shard(dim):
                made.append(placement_types.Shard(dim))
            case StridedShard(dim, factor):
                made.append(placement_types._StridedShard(dim, split_factor=factor))
    return tuple(made)


def ours(placements) -> Placements:
    return tuple(parse_placement(str(placement)) for placement in placements)
