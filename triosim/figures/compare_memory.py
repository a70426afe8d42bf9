"""Memory over time of several steps: the fullest GPU of each, against what it may hold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from triosim.figures.compare_colours import LETTERS, letter_colour, letter_dash
from triosim.figures.figure import Figure, Trace, scatter_trace
from triosim.figures.gantt import makespan_ms
from triosim.figures.memory import CAPACITY_IN_VIEW, GIB, MIB, keep
from triosim.figures.style import DEFAULT_STYLE, Style, finish, value_axis
from triosim.figures.text import MIDDLE_DOT, memory_text, safe, time_text
from triosim.figures.train_colours import roomy_legend
from triosim.result import Result


def compare_memory(
    results: Sequence[Result],
    names: Sequence[str],
    *,
    letters: Sequence[str] = LETTERS,
    style: Style = DEFAULT_STYLE,
) -> Figure:
    """A line for each step, of the GPU that needs most; capacities are thin lines across."""
    peak = max(result.peak_memory_bytes for result in results)
    unit, unit_name = (GIB, "GiB") if peak >= 0.1 * GIB else (MIB, "MiB")
    figure = Figure()
    for letter, name, result in zip(letters, names, results, strict=False):
        figure.add_trace(_line(letter, result, name, unit, unit_name, style))
    drawn = _capacities(figure, results, letters, peak, unit, style)
    longest_ms = max(map(makespan_ms, results)) or 1.0
    figure.update_layout(
        xaxis=value_axis(
            style, "time (ms)", range=[0, longest_ms],
            unifiedhovertitle={"text": "<b>at %{x:.4~f} ms</b>"},
        ),
        yaxis=value_axis(
            style, f"memory of the fullest GPU ({unit_name})",
            range=[0, (max([peak, *drawn]) / unit or 1.0) * 1.14],
        ),
        hovermode="x unified",
    )  # fmt: skip
    finish(figure, style, height=round(28 * style.font_size), revision="compare-memory")
    return roomy_legend(figure, style)


def _line(
    letter: str, result: Result, name: str, unit: float, unit_name: str, style: Style
) -> Trace:
    curve = max(result.memory, key=lambda one: one.peak_bytes)
    kept = keep(curve.time_s, curve.total_bytes)
    held = curve.total_bytes[kept] / unit
    peak = f"peak {memory_text(curve.peak_bytes)} at {time_text(curve.peak_time_s * 1e3)}"
    return scatter_trace(
        x=np.append(curve.time_s[kept] * 1e3, makespan_ms(result)),
        y=np.append(held, held[-1:]).astype(np.float32),
        name=f"{letter} {MIDDLE_DOT} {safe(name)}, {peak}",
        meta=letter,
        mode="lines",
        line={
            "shape": "hv", "width": 2.2, "dash": letter_dash(letter),
            "color": letter_colour(letter, style),
        },
        hovertemplate=f"{letter}: %{{y:.3~f}} {unit_name}<extra></extra>",
    )  # fmt: skip


def _capacities(
    figure: Figure,
    results: Sequence[Result],
    letters: Sequence[str],
    peak: int,
    unit: float,
    style: Style,
) -> list[int]:
    """A line for each capacity that is not far above all curves; the others in words."""
    owners: dict[int, list[str]] = {}
    for letter, result in zip(letters, results, strict=False):
        owners.setdefault(result.capacity_bytes, []).append(letter)
    drawn = [size for size in owners if size <= CAPACITY_IN_VIEW * peak]
    for size, owned in owners.items():
        seen = size in drawn
        who = "" if len(owned) == len(results) else f" of {', '.join(owned)}"
        text = f"capacity{who} {memory_text(size)}" + ("" if seen else ", above this picture")
        if seen:
            line = {"color": style.text, "width": 1, "dash": "dash"}
            figure.add_hline(y=size / unit, line=line)
        figure.add_annotation(
            text=text, x=1, y=size / unit if seen else 1, xref="paper",
            yref="y" if seen else "paper", xanchor="right", yanchor="bottom" if seen else "top",
            showarrow=False, font={"size": style.font_size, "color": style.muted},
        )  # fmt: skip
    return drawn
