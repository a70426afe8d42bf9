"""Questions M1 to M3: device meshes and placements, in DTensor's vocabulary."""

from __future__ import annotations

from math import ceil

import numpy as np

from triosim.collective import collective
from triosim.lab.collectives import LINK, RANKS, SIZE
from triosim.lab.question import Parameter, Quantity, Question, Slip
from triosim.lab.slips import no_own_part
from triosim.mesh import (
    DeviceMesh,
    Partial,
    Replicate,
    Shard,
    blocks,
    format_placements,
    fully_shard,
    local_shape_and_offset,
    local_shapes,
    matmul_plan,
    redistribute,
)

LAB = "mesh"
ROWS = Parameter(name="rows", label="Rows of the tensor", low=1, high=64)
COLUMNS = Parameter(name="columns", label="Columns of the tensor", low=1, high=64)
MESH_ROWS = Parameter(name="mesh_rows", label="Mesh dimension 0", low=1, high=16)
MESH_COLUMNS = Parameter(name="mesh_columns", label="Mesh dimension 1", low=1, high=16)
BOTH_SHARDED = (Shard(0), Shard(1))


def chunk(length: float, parts: float, index: float) -> int:
    """What `torch.chunk` gives to one of `parts`: chunks of ceil(length/parts), the last short."""
    size = ceil(length / parts)
    return int(max(0, min(length, size * (index + 1)) - min(length, size * index)))


def _empty(length: float, parts: float) -> int:
    return sum(chunk(length, parts, i) == 0 for i in range(int(parts)))


def empty_ranks(*, rows: float, columns: float, mesh_rows: float, mesh_columns: float) -> float:
    """A rank is empty where it has no rows or no columns."""
    full = (mesh_rows - _empty(rows, mesh_rows)) * (mesh_columns - _empty(columns, mesh_columns))
    return float(mesh_rows * mesh_columns - full)


def _mesh(mesh_rows: float, mesh_columns: float) -> DeviceMesh:
    return DeviceMesh((int(mesh_rows), int(mesh_columns)), ("rows", "columns"))


def _empty_run(*, rows: float, columns: float, mesh_rows: float, mesh_columns: float) -> float:
    shapes = local_shapes((int(rows), int(columns)), _mesh(mesh_rows, mesh_columns), BOTH_SHARDED)
    return float(np.count_nonzero(shapes.prod(axis=-1) == 0))


def _shape(*, rows: float, columns: float, mesh_rows: float, mesh_columns: float) -> str:
    return f"({chunk(rows, mesh_rows, 2)}, {chunk(columns, mesh_columns, 8)})"


def _shape_run(*, rows: float, columns: float, mesh_rows: float, mesh_columns: float) -> str:
    mesh = _mesh(mesh_rows, mesh_columns)
    shape, _ = local_shape_and_offset((int(rows), int(columns)), mesh, BOTH_SHARDED, (2, 8))
    return str(shape)


M1 = Question(
    id="M1",
    lab=LAB,
    text="A (10, 7) tensor on a 3 \u00d7 10 mesh with placements [Shard(0), Shard(1)]. How many "
    "of the "
    "30 ranks hold nothing?",
    given={"rows": 10, "columns": 7, "mesh_rows": 3, "mesh_columns": 10},
    parameters=(ROWS, COLUMNS, MESH_ROWS, MESH_COLUMNS),
    answer=Quantity(
        label="Ranks that hold nothing",
        unit="ranks",
        formula=r"\lceil 10/3\rceil=4\text{ rows},\;\lceil 7/10\rceil=1"
        r"\text{ column}",
        closed=empty_ranks,
        engine=_empty_run,
    ),
    also=(Quantity(label="Local shape at (2, 8)", closed=_shape, engine=_shape_run),),
    slips=(
        Slip(
            name="everyone holds some",
            closed=lambda **_: 0.0,
            hint="7 columns do not reach 10 ranks: chunks are 1 column wide and three are empty.",
        ),
        Slip(
            name="one row of the mesh",
            closed=lambda columns, mesh_columns, **_: float(_empty(columns, mesh_columns)),
            hint="Those are the empty places in one row of the mesh. There are three rows.",
        ),
    ),
    why="Columns 7, 8 and 9 of the mesh are empty in all three rows. At (2, 8) two rows are left "
    "(4, 4, 2) and no column: (2, 0).",
)


def scatter_ms(*, size_mb: float, ranks: float, gb_per_s: float) -> float:
    """A pending sum becomes shards by a reduce-scatter: (n-1)/n S/B (ORACLES C2)."""
    return (ranks - 1) / ranks * size_mb / gb_per_s


def _redistribute_run(
    target: Shard | Replicate, *, size_mb: float, ranks: float, gb_per_s: float
) -> float:
    """The collectives that the layouts ask for, each on a ring."""
    mesh = DeviceMesh((int(ranks),), ("x",))
    elements = max(1, round(size_mb * 1e6 / 2 / ranks)) * int(ranks)
    steps = redistribute((elements,), 2, mesh, (Partial(),), (target,))
    return sum(
        collective(
            step.operation, size_bytes=step.array_bytes, ranks=step.group_size, algorithm="ring",
            link_gb_per_s=gb_per_s,
        ).time_ms
        for step in steps
        if step.sends
    )  # fmt: skip


def _product_run(*, ranks: float, **_: float) -> str:
    """The layout of A[Shard(1)] @ W[Shard(0)] on square matrices."""
    mesh, shape = DeviceMesh((int(ranks),), ("x",)), (1024, 1024)
    plan = matmul_plan(shape, shape, mesh, (Shard(1),), (Shard(0),))
    sent = "nothing sent" if plan.direct else "inputs sent"
    named = "Partial" if plan.out == (Partial(),) else format_placements(plan.out)
    return f"{named}, {sent}"


M2 = Question(
    id="M2",
    lab=LAB,
    text="A tensor of 1 GB is Partial over 8 ranks (100 GB/s links). It becomes Shard(0). How long "
    "does that take?",
    given={"size_mb": 1000, "ranks": 8, "gb_per_s": 100},
    parameters=(SIZE, RANKS, LINK),
    answer=Quantity(
        label="Partial \u2192 Shard(0)",
        unit="ms",
        formula=r"\frac{n-1}{n}\cdot\frac{S}{B}\quad\text{(reduce-scatter)}",
        closed=scatter_ms,
        engine=lambda **v: _redistribute_run(Shard(0), **v),
        tolerance=1e-6,
    ),
    also=(
        Quantity(
            label="Partial \u2192 Replicate",
            unit="ms",
            formula=r"2\,\frac{n-1}{n}\cdot\frac{S}{B}\quad\text{(all-reduce)}",
            closed=lambda **v: 2 * scatter_ms(**v),
            engine=lambda **v: _redistribute_run(Replicate(), **v),
            tolerance=1e-6,
        ),
        Quantity(
            label="A[Shard(1)] @ W[Shard(0)]",
            closed=lambda **_: "Partial, nothing sent",
            engine=_product_run,
        ),
    ),
    slips=(
        Slip(
            name="all-reduce",
            closed=lambda **v: 2 * scatter_ms(**v),
            hint="That is Partial to Replicate, an all-reduce. Shards need only the first half.",
        ),
        no_own_part(lambda size_mb, gb_per_s, **_: size_mb / gb_per_s),
        Slip(
            name="one shard",
            closed=lambda size_mb, ranks, gb_per_s: size_mb / ranks / gb_per_s,
            hint="That is one shard. A rank sends a part of the sum to each of the n \u2212 1 "
            "others.",
        ),
    ),
    why="A reduce-scatter: 7/8 of 1 GB at 100 GB/s.",
)
ROW_RANGES = ("0:2", "2:4", "4:6", "6:8")


def _strided_rows(**_: float) -> str:
    """TP halves the rows first, FSDP2 halves each half: rank 1 is (dp 0, tp 1)."""
    low, size = 8 // 2, 8 // 2 // 2
    return f"{low}:{low + size}"


def _strided_rows_run(**_: float) -> str:
    mesh = DeviceMesh((2, 2), ("dp_shard", "tp"))
    held = blocks((8, 6), mesh, fully_shard((Replicate(), Shard(0)), mesh, "dp_shard"))
    ((low, high),) = held[1][0]
    return f"{low}:{high}"


M3 = Question(
    id="M3",
    lab=LAB,
    text="A column-parallel weight with 8 rows: TP 2 cuts it, then FSDP2 over 2 shards dimension 0 "
    "too. The mesh is (dp 2, tp 2). Which rows are on rank 1?",
    kind="choice",
    options=ROW_RANGES,
    given={},
    answer=Quantity(
        label="Rows on rank 1",
        formula=r"\text{TP first: }[4,8),\;\text{then FSDP: }[4,6)",
        closed=_strided_rows,
        engine=_strided_rows_run,
    ),
    slips=(
        Slip(
            name="left to right",
            closed=lambda: "2:4",
            hint="That is plain [Shard(0), Shard(0)], cut from left to right. FSDP2 cuts what TP "
            "has already cut, although its dimension stands further left: a strided shard.",
        ),
    ),
    why="Rank 1 is (dp 0, tp 1): TP gives it rows 4 to 8, FSDP2 the first half of those.",
)

QUESTIONS = (M1, M2, M3)
