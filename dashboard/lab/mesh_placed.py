"""The mesh lab's own mesh, tensor and placements, and the drawing of who holds what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from dashboard.lab.desk import Desk
from triosim.figures.lab_mesh import MAX_DRAWN, mesh_shards, ranges_text
from triosim.mesh import (
    DeviceMesh,
    Partial,
    Placement,
    Placements,
    Replicate,
    Shard,
    blocks,
    format_placements,
    fully_shard,
    local_shapes,
)

FSDP2 = "FSDP2 Shard(0)"
PLACED: Mapping[str, Placement] = {
    "Replicate": Replicate(),
    "Shard(0)": Shard(0),
    "Shard(1)": Shard(1),
    "Shard(2)": Shard(2),
    "Partial": Partial(),
}
CHOICES = (*PLACED, FSDP2)
AXES = ("mesh dim 0", "mesh dim 1", "mesh dim 2")


def mesh_of(desk: Desk) -> DeviceMesh:
    """The sliders' mesh without the dimensions of size 1 at its end."""
    sizes = [desk.count(name) for name in ("mesh_rows", "mesh_columns", "mesh_depth")]
    while len(sizes) > 1 and sizes[-1] == 1:
        sizes.pop()
    return DeviceMesh(sizes, AXES[: len(sizes)])


def shape_of(desk: Desk) -> tuple[int, ...]:
    """The sliders' tensor: two dims, or three."""
    rows, columns, depth = (desk.count(name) for name in ("rows", "columns", "depth"))
    return (rows, columns, depth) if depth > 1 else (rows, columns)


def placements_of(words: Sequence[str], mesh: DeviceMesh) -> Placements:
    """One for each axis; FSDP2's are cut last, after the axes to their right.

    Raises `ConfigError` where FSDP2 has nothing to cut.
    """
    found: Placements = tuple(PLACED.get(word, Replicate()) for word in words)
    for axis in reversed(range(len(words))):
        if words[axis] == FSDP2:
            found = fully_shard(found, mesh, mesh.names[axis])
    return found


def placed(desk: Desk, mesh: DeviceMesh, letter: str, *, across: int = 3) -> Placements:
    """A row of choices, one for each axis of the mesh."""
    columns = st.columns(max(across, mesh.ndim), vertical_alignment="bottom")
    words = []
    for axis in range(mesh.ndim):
        with columns[axis]:
            words.append(desk.choice(f"{letter}{axis}", width="stretch"))
    return placements_of(words, mesh)


def drawn(
    desk: Desk, mesh: DeviceMesh, shape: Sequence[int], placements: Placements, key: str
) -> None:
    """The mesh with what each rank holds; `key` sets it apart from others on the page."""
    figure = mesh_shards(mesh, shape, placements, style=desk.style)
    desk.show(
        figure,
        f"What each rank of {times(mesh.shape)} holds of a tensor of {times(shape)} placed "
        f"{format_placements(placements)}",
        key=f"mesh_{key}",
        width=figure.settings["width"],
    )
    if mesh.size > MAX_DRAWN:
        st.caption(f"Drawn are the first {MAX_DRAWN} of {mesh.size:,} ranks.")


def ranges_table(mesh: DeviceMesh, shape: Sequence[int], placements: Placements) -> None:
    """How to read the drawing, and the same in numbers."""
    st.caption(
        "Each box is the whole tensor: dim 0 goes down, dim 1 to the right"
        + (", dim 2 along the strip below" if len(shape) > 2 else "")
        + ". Coloured is what the rank holds; the same colour is the same part."
    )
    held = blocks(shape, mesh, placements)
    local = local_shapes(shape, mesh, placements).reshape(mesh.size, len(shape))
    with st.expander("Index ranges of every rank", icon=":material/table_rows:"):
        st.dataframe(
            pd.DataFrame(
                {
                    "rank": list(held),
                    "coordinate": [str(tuple(at)) for at in mesh.coordinates().tolist()],
                    "local shape": [str(tuple(size)) for size in local.tolist()],
                    "holds": [ranges_text(block) for block in held.values()],
                }
            ),
            hide_index=True,
        )


def times(sizes: Sequence[int]) -> str:
    """Sizes as people write them."""
    return " \u00d7 ".join(map(str, sizes))
