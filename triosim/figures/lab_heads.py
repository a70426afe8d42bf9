"""Attention heads on tensor-parallel ranks: which rank has which, and which are copied."""

from __future__ import annotations

from triosim.figures.figure import Figure, heatmap_trace
from triosim.figures.style import CLEAR, DEFAULT_STYLE, MAX_HEIGHT, Style, finish
from triosim.figures.train_colours import GROUP_COLOURS

ROW_PX = 26


def heads_by_rank(heads: int, kv_heads: int, tp: int, *, style: Style = DEFAULT_STYLE) -> Figure:
    """A column for each rank: its query heads, then its K and V heads, coloured by KV head.

    Query heads are divided; of KV heads each rank needs a whole one, so that some are copied.
    """
    own, own_kv = heads // tp, max(1, kv_heads // tp)
    rows = [*[f"Q {i}" for i in range(own)], *[f"K, V {i}" for i in range(own_kv)]]
    ranks = [f"{rank}" for rank in range(tp)]
    groups: list[list[int]] = []
    texts: list[list[str]] = []
    for i in range(own):
        numbers = [rank * own + i for rank in range(tp)]
        groups.append([number * kv_heads // heads for number in numbers])
        texts.append([f"q{number}" for number in numbers])
    for i in range(own_kv):
        numbers = [(rank * kv_heads // tp) + i for rank in range(tp)]
        groups.append(numbers)
        texts.append([f"<b>kv{number}</b>" for number in numbers])
    count = len(GROUP_COLOURS)
    scale = [
        [(i + end) / count, colour] for i, colour in enumerate(GROUP_COLOURS) for end in (0, 1)
    ]
    figure = Figure(
        heatmap_trace(
            x=ranks, y=rows, z=[[group % count for group in row] for row in groups], zmin=-0.5,
            zmax=count - 0.5, colorscale=scale, showscale=False, xgap=3, ygap=3, text=texts,
            texttemplate="%{text}" if tp <= 16 else "",
            textfont={"color": "#000000", "size": style.small},
            hovertemplate="rank %{x}: %{text}<extra></extra>",
        )
    )  # fmt: skip
    height = round(min(MAX_HEIGHT, len(rows) * ROW_PX + 6 * style.font_size))
    finish(figure, style, height=height, revision="heads")
    text = {"size": style.font_size, "color": style.text}
    figure.update_layout(
        showlegend=False,
        paper_bgcolor=CLEAR,
        xaxis={
            "type": "category", "title": {"text": "tensor-parallel rank", "font": text},
            "tickfont": text, "fixedrange": True, "showgrid": False, "automargin": True,
        },
        yaxis={
            "type": "category", "autorange": "reversed", "fixedrange": True, "showgrid": False,
            "visible": False,
        },
        dragmode=False,
    )  # fmt: skip
    return figure
