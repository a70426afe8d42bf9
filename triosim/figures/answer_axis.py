"""Formula, simulation and a guess on one axis: one row for each quantity of a question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from triosim.figures.figure import Figure, scatter_trace
from triosim.figures.palette import CLASS_COLOURS, PHASE_COLOURS
from triosim.figures.style import DEFAULT_STYLE, Style, finish, row_axis, value_axis
from triosim.figures.text import safe, short

FORMULA_COLOUR = PHASE_COLOURS["fetch"]
SIMULATION_COLOUR = PHASE_COLOURS["backward"]
GUESS_COLOUR = PHASE_COLOURS["all-reduce"]
PUBLISHED_COLOUR = CLASS_COLOURS["bubble"]
VALUE_SHARE = 0.36  # of the axis: room for a value beside the last mark, on a phone too
MARK_SHARE = 0.08  # room for half a mark at 0


@dataclass(frozen=True, kw_only=True, slots=True)
class AxisRow:
    """One quantity; None for what there is not."""

    label: str
    formula: float | None = None
    simulation: float | None = None
    guess: float | None = None


@dataclass(frozen=True, slots=True)
class _Mark:
    name: str
    field: str
    symbol: str
    colour: str
    size: int


# The largest first, so that equal values stay visible inside each other.
_MARKS = (
    _Mark("Formula", "formula", "diamond", FORMULA_COLOUR, 22),
    _Mark("Simulation", "simulation", "circle", SIMULATION_COLOUR, 12),
    _Mark("Your guess", "guess", "triangle-down", GUESS_COLOUR, 17),
)


def answer_axis(rows: Sequence[AxisRow], unit: str, *, style: Style = DEFAULT_STYLE) -> Figure:
    """A row of marks for each quantity, from 0; simulated values are written beside their mark."""
    figure = Figure()
    labels = [safe(row.label) for row in rows]
    for mark in _MARKS:
        values = [getattr(row, mark.field) for row in rows]
        if all(value is None for value in values):
            continue
        raised = mark.field == "guess"  # it points at its value from above
        figure.add_trace(
            scatter_trace(
                x=values,
                y=[place - 0.34 * raised for place in range(len(rows))],
                mode="markers",
                name=mark.name,
                marker={
                    "symbol": mark.symbol,
                    "size": mark.size,
                    "color": mark.colour,
                    "line": {"width": 1, "color": style.surface},
                },
                hovertemplate=f"{mark.name}: %{{x:.6g}} {safe(unit)}<extra></extra>",
                cliponaxis=False,
            )
        )
    known = [value for row in rows for value in (row.formula, row.simulation, row.guess)
             if value is not None]  # fmt: skip
    low, high = min([0.0, *known]), max([0.0, *known])
    spread = (high - low) or 1.0
    _write_values(figure, rows, style)
    height = round(30 + len(rows) * 2.9 * style.font_size + 4.8 * style.font_size)
    finish(figure, style, height=height, revision="answer-axis")
    axis = row_axis(style, labels)
    # Rows by number, so that a guess can stand above its row.
    axis |= {"type": "linear", "tickvals": list(range(len(rows))), "ticktext": labels}
    for name in ("categoryorder", "categoryarray", "dtick"):
        axis.pop(name)
    axis["range"] = [len(rows) - 0.5, -0.6]
    figure.update_layout(
        xaxis=value_axis(
            style, safe(unit), range=[low - MARK_SHARE * spread, high + VALUE_SHARE * spread]
        ),
        yaxis=axis,
        dragmode=False,
    )
    figure.update_xaxes(fixedrange=True, zeroline=True, zerolinecolor=style.grid)
    return figure


def _write_values(figure: Figure, rows: Sequence[AxisRow], style: Style) -> None:
    for place, row in enumerate(rows):
        value = row.simulation if row.simulation is not None else row.formula
        if value is None:
            continue
        most = max(v for v in (row.formula, row.simulation) if v is not None)
        figure.add_annotation(
            x=most, y=place, text=f"<b>{short(value)}</b>", showarrow=False,
            xanchor="left", xshift=16, font={"size": style.font_size + 1, "color": style.text},
        )  # fmt: skip
