"""The settings that differ, as a table and as CSV."""

from __future__ import annotations

import pandas as pd

from dashboard.compare_run import Compared
from dashboard.compare_text import setting_text, setting_value

FIGURES = {
    "step time (ms)": lambda result: result.total_ms,
    "samples per second": lambda result: result.samples_per_s,
    "peak memory (bytes)": lambda result: result.peak_memory_bytes,
}


def settings_table(both: Compared) -> pd.DataFrame:
    """A row for each setting that is not the same everywhere, a column for each step."""
    return pd.DataFrame(
        [
            {
                "part": one.section,
                "setting": setting_text(one),
                **{
                    letter: setting_value(one, number) for number, letter in enumerate(both.letters)
                },
            }
            for one in both.found.differences
        ]
    )


def whole_table(both: Compared) -> pd.DataFrame:
    """Figures, parts of the step and settings that differ, by the names of the fields."""
    rows = [
        ("figure", name, [figure(result) for result in both.found.results])
        for name, figure in FIGURES.items()
    ]
    parts = [both.found.parts_ms(number) for number in range(len(both.steps))]
    for key in sorted({key for part in parts for key in part}):
        name = key[0] if key[0] == key[1] else " ".join(key)
        rows.append(("part of the step (ms)", name, [part.get(key, 0.0) for part in parts]))
    rows += [(one.section, one.setting, list(one.values)) for one in both.found.differences]
    return pd.DataFrame(
        [
            {"kind": kind, "name": name, **dict(zip(both.letters, values, strict=True))}
            for kind, name, values in rows
        ]
    )
