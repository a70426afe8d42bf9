"""Where each pipeline stage's step goes: one stacked bar for each group of equal ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from triosim.analysis.breakdown import CLASSES
from triosim.figures.figure import Figure
from triosim.figures.stacked import stacked_bars
from triosim.figures.style import (
    DEFAULT_STYLE,
    Style,
    finish,
    rows_height,
)
from triosim.figures.train_colours import OTHER, PART_COLOURS, roomy_legend
from triosim.train import TrainResult

LABELLED_SHARE = 0.06
FIRST = ("forward", "recompute", "backward", "optimizer", "slowdown")


def class_labels(result: TrainResult) -> list[str]:
    """A name for each group of equal ranks."""
    stages = [group.stage for group in result.classes]
    if result.plan.stages == 1 and len(stages) == 1:
        return ["all GPUs"]
    return [
        f"stage {stage}" if stages.count(stage) == 1 else f"stage {stage}, GPU {group.rank}"
        for stage, group in zip(stages, result.classes, strict=True)
    ]


def parts_ms(result: TrainResult, c: int) -> dict[str, float]:
    """Milliseconds of each part of a class's step: computing by phase, then the other classes."""
    breakdown = result.breakdowns[c]
    compute = breakdown.compute_s
    names = [*FIRST, *(name for name in compute if name not in FIRST)]
    parts = {name: compute.get(name, 0.0) * 1e3 for name in names}
    rest = {name: breakdown.classes_s[name] * 1e3 for name in CLASSES if name != "compute"}
    return {**parts, **rest}


def train_breakdown(result: TrainResult, *, style: Style = DEFAULT_STYLE) -> Figure:
    """Every bar is as long as the step."""
    labels = class_labels(result)
    rows = [parts_ms(result, c) for c in range(len(labels))]
    return stage_bars(labels, rows, result.step_ms, style=style)


def stage_bars(
    labels: list[str],
    rows: Sequence[Mapping[str, float]],
    step_ms: float,
    *,
    style: Style = DEFAULT_STYLE,
) -> Figure:
    """A bar for each row of milliseconds by part, in the order of the parts."""
    figure = stacked_bars(
        labels,
        rows,
        step_ms,
        dict.fromkeys(name for row in rows for name in row),
        colour_of=lambda part: PART_COLOURS.get(part, OTHER),
        labelled_share=LABELLED_SHARE,
        title="time (ms)",
        style=style,
    )
    height = rows_height(len(labels), style, extra=7.0)
    finish(figure, style, height=height, revision="train-breakdown")
    return roomy_legend(figure, style)
