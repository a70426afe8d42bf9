"""The points of a sweep as tables: what is shown, and all of it for a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import pandas as pd

from dashboard.sweep_fields import Field
from dashboard.sweep_links import title_of
from dashboard.sweep_values import value_label
from triosim.sweep import METRICS, Point

OPEN = "open"
SHOWN = (
    "step_ms", "samples_per_s", "samples_per_s_per_gpu", "tokens_per_s_per_gpu", "mfu", "speedup",
    "peak_memory_gib", "communication_gb", "exposed_communication_ms", "bubble_ms",
)  # fmt: skip
STATUS = {True: "fits", False: "does not fit", None: "no answer"}


def settings_text(fields: Sequence[Field], point: Point) -> str:
    """What was set, in a few words."""
    return ", ".join(
        f"{field.short} {value_label(field, point.settings[field.name])}" for field in fields
    )


def shown_table(fields: Sequence[Field], points: Sequence[Point], metric: str) -> pd.DataFrame:
    """A row for each point, the chosen metric first; numbers as numbers, so that they sort."""
    table = pd.DataFrame({OPEN: "Open"}, index=range(len(points)))
    for field in fields:
        table[field.label] = [
            value_label(field, p.settings[field.name]) if field.choices else p.settings[field.name]
            for p in points
        ]
    for name in dict.fromkeys((metric, *SHOWN)):
        values = [point.metrics[name] for point in points]
        if any(value is not None for value in values):
            table[title_of(METRICS[name])] = pd.array(values, dtype="Float64")
    table[""] = [STATUS[None if p.problem is not None else bool(p.fits)] for p in points]
    table["why"] = [point.reason or "" for point in points]
    return table


def whole_table(points: Sequence[Point]) -> pd.DataFrame:
    """Settings and every metric, by the engine's names."""
    return pd.DataFrame(
        [
            {**point.settings, **point.metrics, "fits": point.fits, "problem": point.problem}
            for point in points
        ]
    )


def reasons_table(fields: Sequence[Field], points: Sequence[Point]) -> pd.DataFrame:
    """The points that are left out, with the reason of each."""
    left = [point for point in points if not point.feasible]
    columns: Mapping[str, list[str]] = {
        field.label: [value_label(field, p.settings[field.name]) for p in left] for field in fields
    }
    return pd.DataFrame(
        {OPEN: "Open", **columns, "why": [point.reason or "" for point in left]},
        index=[point.index for point in left],
    )


def counts(points: Sequence[Point]) -> dict[str, int]:
    """How many fit, do not fit, and have no answer."""
    found = Counter(STATUS[None if p.problem is not None else bool(p.fits)] for p in points)
    return {name: found[name] for name in STATUS.values() if found[name]}
