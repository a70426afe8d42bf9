"""A pipeline schedule as a grid: which stage runs what when, and when it stands still."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from triosim.figures.figure import Figure, Trace, bar_trace
from triosim.figures.palette import CLASS_COLOURS, PHASE_COLOURS, mixed, text_on, translucent
from triosim.figures.style import DEFAULT_STYLE, Style, finish, row_axis, value_axis
from triosim.figures.text import short
from triosim.pipelines import PipelineResult

WEIGHT_COLOUR = "#8FD19E"
KIND_COLOURS: Mapping[str, str] = {
    "F": PHASE_COLOURS["forward"],
    "B": PHASE_COLOURS["backward"],
    "W": WEIGHT_COLOUR,
    "F&B": mixed(PHASE_COLOURS["forward"], PHASE_COLOURS["backward"], 0.5),
}
KIND_NAMES: Mapping[str, str] = {
    "F": "forward", "B": "backward", "W": "weight part", "F&B": "forward with backward",
}  # fmt: skip
CHUNK_TINT = 0.45
ROW_SHARE = 0.94
MAX_LABELS = 700  # text on more cells is slow, and too small to read
MAX_ROW_PX, MIN_ROW_PX, GRID_PX = 44, 20, 300


def schedule_grid(
    result: PipelineResult, unit: str = "units of time", *, style: Style = DEFAULT_STYLE
) -> Figure:
    """A row for each stage; the number in a cell is its micro-batch."""
    schedule = result.schedule
    labels = [f"stage {stage}" for stage in range(schedule.stages)]
    figure = Figure(
        bar_trace(
            x=[result.makespan] * schedule.stages, y=labels, base=0, orientation="h", name="idle",
            hoverinfo="skip", width=ROW_SHARE,
            marker={"color": translucent(CLASS_COLOURS["bubble"], 0.28)},
        )
    )  # fmt: skip
    for kind, chunk in _groups(result):
        figure.add_trace(_cells(result, kind, chunk, labels, style))
    row_px = max(MIN_ROW_PX, min(MAX_ROW_PX, GRID_PX // schedule.stages))
    height = round(schedule.stages * row_px + 6.4 * style.font_size)
    finish(figure, style, height=height, revision="schedule-grid")
    figure.update_layout(
        barmode="overlay",
        xaxis=value_axis(style, unit, range=[0, result.makespan], showgrid=False),
        yaxis=row_axis(style, labels),
        dragmode="zoom",
    )
    return figure


def _groups(result: PipelineResult) -> list[tuple[str, int]]:
    """Kinds of work and chunks, as the legend has them."""
    pairs = zip(result.timeline["kind"], result.timeline["chunk"], strict=True)
    found = {(str(kind), int(chunk)) for kind, chunk in pairs}
    return sorted(found, key=lambda pair: (list(KIND_COLOURS).index(pair[0]), pair[1]))


def _cells(
    result: PipelineResult, kind: str, chunk: int, labels: Sequence[str], style: Style
) -> Trace:
    """All cells of a kind and chunk; numbers in them where there are not too many."""
    timeline, colour = result.timeline, _colour(kind, chunk)
    own = timeline[(timeline["kind"] == kind) & (timeline["chunk"] == chunk)]
    start, end = own["start"].tolist(), own["end"].tolist()
    numbers = _texts(own["microbatch"].tolist(), own["backward_microbatch"].tolist())
    labelled = len(timeline) <= MAX_LABELS
    where = f", chunk {chunk}" if result.schedule.chunks > 1 else ""
    return bar_trace(
        x=[b - a for a, b in zip(start, end, strict=True)],
        base=start,
        y=[labels[stage] for stage in own["stage"].tolist()],
        orientation="h",
        name=_name(kind, chunk, result),
        marker={"color": colour, "line": {"width": 1, "color": style.surface}},
        width=ROW_SHARE,
        text=numbers if labelled else None,
        textposition="inside" if labelled else "none",
        insidetextanchor="middle",
        textangle=0,
        constraintext="none" if len(timeline) <= MAX_LABELS / 3 else "inside",
        insidetextfont={"size": style.font_size, "color": text_on(colour)},
        customdata=[
            (number, short(a), short(b)) for number, a, b in zip(numbers, start, end, strict=True)
        ],
        hovertemplate=f"{KIND_NAMES[kind]} of micro-batch %{{customdata[0]}}<br>%{{y}}{where}"
        "<br>%{customdata[1]} to %{customdata[2]}<extra></extra>",
    )


def _colour(kind: str, chunk: int) -> str:
    """Later chunks are lighter."""
    return mixed(KIND_COLOURS[kind], "#FFFFFF", min(0.75, CHUNK_TINT * chunk))


def _name(kind: str, chunk: int, result: PipelineResult) -> str:
    split = kind == "B" and any(result.schedule.split)
    name = "input part" if split else KIND_NAMES[kind]
    return f"{name}, chunk {chunk}" if result.schedule.chunks > 1 else name


def _texts(own: Sequence[int], backward: Sequence[int]) -> list[str]:
    pairs = zip(own, backward, strict=True)
    return [f"{number}&{other}" if other >= 0 else f"{number}" for number, other in pairs]
