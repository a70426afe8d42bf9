"""The mesh of a training plan: ranks as a grid of hosts, coloured by their group along an axis."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from triosim.figures.style import (
    DEFAULT_STYLE,
    Style,
    finish,
    row_axis,
    rows_height,
    value_axis,
)
from triosim.figures.train_colours import GROUP_COLOURS
from triosim.mesh import DeviceMesh
from triosim.train import Plan

Ints = NDArray[np.int64]
MAX_ROWS = 32
MAX_COLUMNS = 32
MAX_NUMBERED = 16  # columns; more have no room for a number in each cell
MAX_FRAMED = 256
ALONE = 8  # columns where the network has no hosts


def groups_along(plan: Plan, axis: str) -> Ints:
    """The groups of an axis of the mesh or of ep: shape (groups, members)."""
    if axis == "ep":
        return np.concatenate([plan.groups("ep", stage) for stage in range(plan.stages)])
    return plan.mesh.groups(axis)


def mesh_figure(
    plan: Plan, axis: str, per_host: int | None, *, style: Style = DEFAULT_STYLE
) -> go.Figure:
    """One cell for each rank; hosts of `per_host` ranks side by side, the first that fit.

    Ranks of one colour in a host are one group; colours come again after the last. The group of
    rank 0 has a frame.
    """
    size = plan.mesh.size
    host = min(per_host or ALONE, size)
    columns = _columns(size, host)
    rows = -(-size // columns)
    shown = min(rows, MAX_ROWS)
    groups = groups_along(plan, axis)
    group_of = np.empty(size, dtype=np.int64)
    group_of[groups.ravel()] = np.repeat(np.arange(len(groups)), groups.shape[1])
    ranks = np.arange(shown * columns).reshape(shown, columns)
    code = np.where(ranks < size, group_of[np.minimum(ranks, size - 1)], -1)
    labels = [_label(row * columns // host, columns // host, per_host) for row in range(shown)]
    figure = go.Figure(_cells(code, labels, numbered=columns <= MAX_NUMBERED))
    # Set here, an array of words is not checked cell by cell.
    figure.data[0].hovertext = _hovers(plan.mesh, axis, ranks, code, groups)
    figure.data[0].text = np.where(code >= 0, ranks.astype(str), "")
    figure.update_layout(
        shapes=_frames(groups[0], columns, shown, style) + _edges(columns, host, shown, style)
    )
    note = "" if shown == rows else f"the first {shown * columns:,} of {size:,} ranks"
    figure.update_layout(
        xaxis=value_axis(
            style, note, showgrid=False, showticklabels=False, ticks="", fixedrange=True,
            range=[-0.5, columns - 0.5],
        ),
        yaxis=row_axis(style, labels),
    )  # fmt: skip
    finish(figure, style, height=rows_height(shown, style, extra=3), revision=f"mesh-{axis}")
    return figure.update_layout(showlegend=False)


def _columns(size: int, host: int) -> int:
    """As few hosts side by side as let all ranks have a place, where that is possible."""
    columns = host
    while -(-size // columns) > MAX_ROWS and 2 * columns <= max(MAX_COLUMNS, host):
        columns *= 2
    return columns


def _label(first: int, count: int, per_host: int | None) -> str:
    if per_host is None:
        return f"row {first}"
    return f"host {first}" if count == 1 else f"hosts {first}\u2013{first + count - 1}"


def _cells(code: Ints, labels: list[str], *, numbered: bool) -> go.Heatmap:
    count = len(GROUP_COLOURS)
    return go.Heatmap(
        z=np.where(code < 0, np.nan, code % count),
        y=labels,
        zmin=-0.5,
        zmax=count - 0.5,
        colorscale=[
            ((i + edge) / count, colour)
            for i, colour in enumerate(GROUP_COLOURS)
            for edge in (0, 1)
        ],
        showscale=False,
        xgap=2,
        ygap=2,
        texttemplate="%{text}" if numbered else None,
        textfont={"size": 11, "color": "#000000"},
        hovertemplate="%{hovertext}<extra></extra>",
        hoverongaps=False,
    )


def _hovers(mesh: DeviceMesh, axis: str, ranks: Ints, code: Ints, groups: Ints) -> NDArray[np.str_]:
    """A rank's place on every axis that is longer than 1, and who is in its group."""
    places = mesh.coordinates(np.minimum(ranks, mesh.size - 1).ravel())
    long = [i for i, size in enumerate(mesh.shape) if size > 1]
    texts = []
    for rank, group, place in zip(ranks.ravel(), code.ravel(), places, strict=True):
        where = ", ".join(f"{mesh.names[i]} {place[i]}" for i in long)
        members = groups[group]
        listed = ", ".join(str(member) for member in members[:8])
        more = f", ... ({len(members):,})" if len(members) > 8 else ""
        texts.append(f"<b>rank {rank}</b>: {where}<br>{axis} group {group}: {listed}{more}")
    return np.array(texts).reshape(ranks.shape)


def _frames(members: Ints, columns: int, rows: int, style: Style) -> list[dict[str, object]]:
    """The group of rank 0 stands out, however few colours there are."""
    if len(members) in (1, columns * rows) or len(members) > MAX_FRAMED:
        return []
    line = {"color": style.text, "width": 2}
    places = (divmod(rank, columns) for rank in members.tolist())
    return [
        {
            "type": "rect", "line": line, "x0": column - 0.46, "x1": column + 0.46,
            "y0": row - 0.44, "y1": row + 0.44,
        }
        for row, column in places
        if row < rows
    ]  # fmt: skip


def _edges(columns: int, host: int, rows: int, style: Style) -> list[dict[str, object]]:
    """A line between hosts that stand side by side."""
    line = {"color": style.muted, "width": 1.5}
    return [
        {"type": "line", "line": line, "x0": x - 0.5, "x1": x - 0.5, "y0": -0.5, "y1": rows - 0.5}
        for x in range(host, columns, host)
    ]
