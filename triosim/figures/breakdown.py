"""Where each GPU's step goes: one stacked bar for each GPU."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from triosim.analysis.breakdown import CLASSES, SLOWDOWN, Breakdown
from triosim.engine.program import COMPUTE_PHASES
from triosim.figures.figure import Figure
from triosim.figures.lanes import gpu_labels
from triosim.figures.palette import CLASS_COLOURS
from triosim.figures.stacked import stacked_bars
from triosim.figures.style import (
    DEFAULT_STYLE,
    Style,
    finish,
    rows_height,
    say_nothing_to_show,
)
from triosim.result import Result

MAX_ROWS = 256
LABELLED_SHARE = 0.07
PARTS = (*COMPUTE_PHASES, SLOWDOWN, *(name for name in CLASSES if name != "compute"))


def breakdown_bars(result: Result, ranks: Iterable[int], *, style: Style = DEFAULT_STYLE) -> Figure:
    """The classes of each chosen rank, compute split by phase; every bar is as long as the step."""
    chosen = list(dict.fromkeys(ranks))
    labels = gpu_labels(result, chosen)
    rows = [_parts_ms(result.breakdowns[result.class_of(rank)]) for rank in chosen[:MAX_ROWS]]
    return part_bars(labels, rows, result.total_ms, style=style)


def part_bars(
    labels: Sequence[str],
    rows: Sequence[Mapping[str, float]],
    total_ms: float,
    *,
    style: Style = DEFAULT_STYLE,
) -> Figure:
    """A bar for each row of milliseconds by part (see `PARTS`), as long as the step.

    Where there are more labels than rows, the axis says that the others are not drawn.
    """
    drawn = list(labels[: len(rows)])
    hidden = len(labels) - len(drawn)
    note = f"<br><i>{len(drawn)} of {len(labels):,} chosen GPUs drawn</i>" if hidden else ""
    figure = stacked_bars(
        drawn,
        rows,
        total_ms,
        PARTS,
        colour_of=CLASS_COLOURS.__getitem__,
        labelled_share=LABELLED_SHARE,
        title=f"time (ms){note}",
        style=style,
    )
    finish(figure, style, height=rows_height(len(drawn), style), revision="breakdown")
    if total_ms == 0:
        say_nothing_to_show(figure, style, "This step takes no time.")
    return figure


def _parts_ms(breakdown: Breakdown) -> Mapping[str, float]:
    """Milliseconds of each part; they sum to the step."""
    seconds = {**breakdown.classes_s, **breakdown.compute_s}
    return {part: seconds.get(part, 0.0) * 1e3 for part in PARTS}
