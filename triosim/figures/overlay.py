"""A measured run above its prediction, lane by lane."""

from __future__ import annotations

from triosim.figures.figure import Figure, Trace, bar_trace
from triosim.figures.palette import CLASS_COLOURS, PHASE_COLOURS, translucent
from triosim.figures.style import (
    DEFAULT_STYLE,
    Style,
    finish,
    row_axis,
    rows_height,
    value_axis,
)
from triosim.figures.text import MIDDLE_DOT, safe, short, time_text
from triosim.overlay import COMMUNICATION, COMPUTE, LANES, MEASURED, PREDICTED, Overlay, union

MAX_RANKS = 8
BLOCKS = 1500  # across the axis: what is nearer to each other than one is drawn as one bar
_COLOURS = {
    COMPUTE: PHASE_COLOURS["backward"],
    COMMUNICATION: CLASS_COLOURS["exposed_communication"],
}


def overlay_figure(overlay: Overlay, *, style: Style = DEFAULT_STYLE) -> Figure:
    """Two rows for each lane of a rank, measured above predicted; its error stands behind them.

    At most `MAX_RANKS` ranks are drawn.
    """
    ranks = [one.rank for one in overlay.measured.ranks][:MAX_RANKS]
    whole_ms = max(overlay.measured_ms, overlay.predicted_ms)
    errors = overlay.frame.set_index(["rank", "lane"])["error"]
    figure = Figure()
    labels, notes = [], []
    for rank in ranks:
        for lane in LANES:
            pair = [_label(rank, lane, source) for source in (MEASURED, PREDICTED)]
            labels += pair
            error = float(errors[rank, lane])
            if error == error:  # NaN where nothing was measured
                notes.append(_note(pair[1], error, style))
    for lane in LANES:
        for source in (MEASURED, PREDICTED):
            figure.add_trace(_bars(overlay, ranks, lane, source, whole_ms))
    finish(figure, style, height=rows_height(len(labels), style), revision="overlay")
    figure.update_layout(
        barmode="overlay",
        bargap=0.2,
        hovermode="closest",
        xaxis=value_axis(style, "time (ms)", range=[0, whole_ms * 1.12 or 1.0]),
        yaxis=row_axis(style, labels),
        annotations=notes,
    )
    return figure


def _label(rank: int, lane: str, source: str) -> str:
    return f"GPU {rank} {MIDDLE_DOT} {lane}, {source}"


def _note(label: str, error: float, style: Style) -> dict[str, object]:
    return {
        "x": 1, "xref": "paper", "xanchor": "right", "y": label, "yref": "y",
        "text": f"{error:+.1%}", "showarrow": False,
        "font": {"size": style.font_size, "color": style.text},
    }  # fmt: skip


def _bars(overlay: Overlay, ranks: list[int], lane: str, source: str, whole_ms: float) -> Trace:
    spans = overlay.spans
    spans = spans[(spans["lane"] == lane) & (spans["source"] == source)]
    base: list[float] = []
    width: list[float] = []
    rows: list[str] = []
    texts: list[str] = []
    for rank in ranks:
        own = spans[spans["rank"] == rank].sort_values("start_ms")
        blocks = union(own[["start_ms", "end_ms"]].to_numpy(float), whole_ms / BLOCKS)
        firsts = own["start_ms"].searchsorted(blocks[:, 0])
        counts = own["start_ms"].searchsorted(blocks[:, 1], side="right") - firsts
        names = own["name"].iloc[firsts].tolist()
        for (start, end), name, count in zip(blocks.tolist(), names, counts.tolist(), strict=True):
            more = f" and {count - 1:,} more" if count > 1 else ""
            base.append(start)
            width.append(end - start)
            rows.append(_label(rank, lane, source))
            texts.append(f"{safe(name)}{more}<br>{time_text(end - start)} at {short(start)} ms")
    colour = _COLOURS[lane]
    return bar_trace(
        base=base,
        x=width,
        y=rows,
        orientation="h",
        name=f"{lane}, {source}",
        hovertext=texts,
        hovertemplate="<b>%{y}</b><br>%{hovertext}<extra></extra>",
        marker={
            "color": colour if source == MEASURED else translucent(colour, 0.6),
            "line": {"width": 0},
        },
    )
