"""The layouts of a search as a table."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from triosim.search import Ranked
from triosim.search.found import ILLEGAL

OPEN, PIN, COMPARE = "open", "pin", "compare"


def ranked_table(ranked: Sequence[Ranked], places: Sequence[int]) -> pd.DataFrame:
    """A row for each layout, the best first; a figure that is a bound says at least."""
    return pd.DataFrame(
        [
            {
                OPEN: "" if one.scenario is None else "Open",
                "place": None if one.outcome == ILLEGAL else place,
                "layout": one.layout,
                "step": _step(one),
                "memory": _memory(one),
                "why": one.reason,
                "with": one.plan,
                "MFU": None if one.figures is None else round(100 * one.figures.mfu, 1),
                COMPARE: "Compare" if one.scenario is not None and place > 1 else "",
                PIN: "" if one.scenario is None else "Pin",
            }
            for place, one in zip(places, ranked, strict=True)
        ]
    )


def _step(one: Ranked) -> str:
    if one.step_ms is not None:
        return f"{one.step_ms:,.0f} ms"
    return "" if one.at_least_ms is None else f"\u2265 {one.at_least_ms:,.0f} ms"


def _memory(one: Ranked) -> str:
    if one.at_least_gib is None:
        return ""
    bound = "\u2265 " if one.figures is None else ""
    return f"{bound}{one.at_least_gib:,.1f} GiB"
