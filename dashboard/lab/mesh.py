"""The lab on device meshes and DTensor: who holds what, what a change of layout sends, products."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dashboard.lab.desk import Desk
from dashboard.lab.lab import Cause, Lab, choice
from dashboard.lab.mesh_placed import AXES, CHOICES, FSDP2
from dashboard.lab.mesh_views import NAMES, TITLES, change, holds, product, ready
from dashboard.settings import Setting
from triosim.errors import TrioSimError
from triosim.lab import Parameter
from triosim.lab.collectives import LINK
from triosim.lab.mesh import COLUMNS, MESH_COLUMNS, MESH_ROWS, ROWS

HOLDS, CHANGE, PRODUCT, READY = "Who holds what", "Redistribute", "Matrix product", "Five layouts"
VIEWS = (HOLDS, CHANGE, PRODUCT, READY)
DEPTH = Parameter(name="depth", label="Dim 2 of the tensor (1: none)", low=1, high=16)
MESH_DEPTH = Parameter(name="mesh_depth", label="Mesh dimension 2 (1: none)", low=1, high=8)
CELL = Parameter(
    name="element_mb", label="An element stands for (MB)", low=0.001, high=10, whole=False,
    marks=(0.001, 0.01, 0.1, 1, 10),
)  # fmt: skip


def draw(desk: Desk) -> None:
    """One of four views."""
    views: Mapping[str, Callable[[Desk], None]] = {
        HOLDS: holds, CHANGE: change, PRODUCT: product, READY: ready,
    }  # fmt: skip
    view = desk.tabs("view")
    try:
        views[view](desk)
    except TrioSimError as error:
        desk.complain("Nothing to draw", error)


def _settings() -> dict[str, Setting]:
    """A choice of placement for each tensor and dimension of the mesh."""
    first = {"p0": "Shard(0)"}
    return {
        name: choice(f"On {AXES[axis]}", CHOICES, first.get(name, "Replicate"))
        for letter in "ptb"
        for axis in range(3)
        for name in (f"{letter}{axis}",)
    }


LAB = Lab(
    code="mesh",
    page="pages/lab_mesh.py",
    title="Device mesh and DTensor",
    idea="Ranks form a mesh of one to three dimensions. For each mesh dimension a tensor has one "
    "placement: Replicate (everyone has all of it), Shard(d) (dim d is cut into chunks) or Partial "
    "(everyone has an addend of a sum). Placements are read from left to right. Changing them "
    "takes a collective.",
    formula=r"\text{chunk}=\lceil\text{length}/n\rceil",
    source="PyTorch 2.13, torch.distributed.tensor. Cost of collectives: Patarasu and Yuan, "
    "JPDC 2009.",
    questions=("M1", "M2", "M3"),
    quick=("M1", "M2", "M3"),
    more=(ROWS, COLUMNS, DEPTH, CELL, MESH_ROWS, MESH_COLUMNS, MESH_DEPTH, LINK),
    more_title="Place a tensor yourself",
    defaults={
        "": {
            "rows": 16, "columns": 8, "depth": 1, "element_mb": 1, "gb_per_s": 100,
            "mesh_rows": 2, "mesh_columns": 4, "mesh_depth": 1,
        },
        "M1": {"p1": "Shard(1)"},
        "M2": {
            "mesh_rows": 8, "mesh_columns": 1, "p0": "Partial", "t0": "Shard(0)", "view": CHANGE,
            "element_mb": 7.8125,  # 128 of them are the question's 1 GB
        },
        "M3": {
            "rows": 8, "columns": 6, "mesh_rows": 2, "mesh_columns": 2, "p0": FSDP2,
            "p1": "Shard(0)", "view": READY, "layout": TITLES["fsdp2-tp"],
        },
    },
    settings={
        "view": choice("Picture", VIEWS),
        "layout": choice("Layout", tuple(NAMES)),
        **_settings(),
    },
    explain=(
        Cause(
            "Chunks of one size",
            "collectives need equal chunks, so that uneven shards are padded to the longest one. "
            "The table of steps says by how much.",
        ),
        Cause(
            "Torch's way",
            "several ways lead from one layout to another. Torch walks the mesh dimensions in a "
            "fixed order and does not look for the cheapest.",
        ),
        Cause(
            "A bf16 element",
            "M2 counts whole elements of 2 bytes on every rank, so the array is a few bytes larger "
            "where it does not divide.",
            lambda values: "size_mb" in values and (values["size_mb"] * 5e5) % values["ranks"] > 0,
        ),
    ),
    not_modelled=(
        "Latency, and other traffic on the links: the Network page has both.",
        "Copies on the GPU: an all-gather along dim 1 has to be interleaved afterwards.",
        "Meshes with ranks in another order than row by row.",
    ),
    draw=draw,
)  # fmt: skip
