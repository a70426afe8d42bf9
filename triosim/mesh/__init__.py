"""Device meshes and tensor placements: DTensor's vocabulary, in torch 2.13's reading of it."""

from triosim.mesh.device_mesh import DeviceMesh
from triosim.mesh.matmul import MatmulPlan, Rule, matmul_plan, matmul_strategies
from triosim.mesh.placements import (
    Partial,
    Placement,
    Placements,
    Replicate,
    Shard,
    StridedShard,
    check_placements,
    format_placements,
    fully_shard,
    parse_placement,
    parse_placements,
)
from triosim.mesh.presets import PRESETS, Preset, preset
from triosim.mesh.redistribute import Step, redistribute
from triosim.mesh.shards import Block, blocks, local_shape_and_offset, local_shapes
from triosim.mesh.training import AXES, EXPERT_AXES, expert_mesh, training_mesh

__all__ = [
    "DeviceMesh", "training_mesh", "expert_mesh", "AXES", "EXPERT_AXES",
    "Placement", "Placements", "Replicate", "Shard", "StridedShard", "Partial",
    "check_placements", "format_placements", "parse_placement", "parse_placements", "fully_shard",
    "Block", "blocks", "local_shape_and_offset", "local_shapes",
    "Step", "redistribute",
    "MatmulPlan", "Rule", "matmul_plan", "matmul_strategies",
    "PRESETS", "Preset", "preset",
]  # fmt: skip
