"""Colours of what only a training step on a mesh has; everything else keeps its own."""

from __future__ import annotations

from collections.abc import Mapping

from triosim.figures.figure import Figure
from triosim.figures.palette import CATEGORY_COLOURS, CLASS_COLOURS, PHASE_COLOURS, mixed
from triosim.figures.style import Style

STEP_COLOURS: Mapping[str, str] = {
    **PHASE_COLOURS,
    "recompute": "#8DA9E8",
    "launch": CLASS_COLOURS["launch_wait"],
    "all-gather": "#F2A0C9",
    "reduce-scatter": "#9C2A78",
    "all-to-all": "#6B3FA0",
}
PART_COLOURS: Mapping[str, str] = {**CLASS_COLOURS, "recompute": STEP_COLOURS["recompute"]}
HELD_COLOURS: Mapping[str, str] = {
    **CATEGORY_COLOURS,
    "gathered": "#A9B3C1",
    "logits": "#E69F00",
    "communication": STEP_COLOURS["all-reduce"],
    "work": "#D1BC00",
    "framework": "#B9C0C9",
}
# Groups of ranks: neighbours differ, and after the last the first comes again.
GROUP_COLOURS = tuple(
    mixed(colour, "#FFFFFF", 0.3)  # light enough for black numbers
    for colour in (
        "#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#0072B2", "#D1BC00", "#D55E00", "#8A35E6",
    )
)  # fmt: skip
LEGEND_LINES = 3
OTHER = "#7A828C"


def roomy_legend(figure: Figure, style: Style) -> Figure:
    """Room for a third line of the legend: a training step has more phases than a trace."""
    figure.update_layout(legend={"maxheight": LEGEND_LINES * 2 * style.font_size})
    return figure


def step_colour(phase: str) -> str:
    """The colour of a phase; a grey for one that no figure has met."""
    return STEP_COLOURS.get(phase, OTHER)
