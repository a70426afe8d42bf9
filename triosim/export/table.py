"""Tables as CSV, safe to open in a spreadsheet."""

from __future__ import annotations

import pandas as pd

from triosim.result import Result

# Spreadsheets read the wide forms of East Asian keyboards as well.
FORMULA_STARTS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def timeline_csv(result: Result, frame: pd.DataFrame | None = None) -> str:
    """The timeline (or the given part of it), one row per task."""
    return to_csv(result.timeline if frame is None else frame)


def to_csv(frame: pd.DataFrame) -> str:
    """Text that a spreadsheet would run as a formula gets a quote in front.

    A carriage return becomes a space: it is left unquoted and would begin a new row.
    """
    safe = frame.rename(columns=_neutral)
    for column in safe.columns:
        if not pd.api.types.is_numeric_dtype(safe[column]):
            safe[column] = safe[column].map(_neutral)
    return str(safe.to_csv(index=False, lineterminator="\n"))


def _neutral(value: object) -> object:
    if not isinstance(value, str):
        return value
    formula = value.lstrip().startswith(FORMULA_STARTS) or value.startswith(("\t", "\r", "\n"))
    quote = "'" if formula else ""
    return quote + value.replace("\r", " ")
