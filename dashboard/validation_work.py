"""What the page Validation has computed in a worker, which must not know Streamlit."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pandas as pd

from triosim.validation import Prediction, Row, bubble_rates, compare, load_source, predict_rows
from triosim.validation.compile_question import Gain, compile_gains

Pair = tuple[Prediction, Prediction]


def predict_some(rows: Sequence[Row], seconds: float) -> list[Pair]:
    """Calibrated and generic predictions of the first rows: at least one, for about that long."""
    end, found = time.monotonic() + seconds, []
    for pair in predict_rows(rows):
        found.append(pair)
        if time.monotonic() > end:
            break
    return found


def whole_source(name: str) -> pd.DataFrame:
    """A source that needs no stack, all at once."""
    return compare(load_source(name))


def rates() -> pd.DataFrame:
    """Zero Bubble's bubble rates."""
    return bubble_rates()


def gains(cases: Sequence[frozenset[str]]) -> list[tuple[Gain, Gain]]:
    """What compile gains with each set of mechanisms switched on."""
    return [compile_gains(dict.fromkeys(case, True)) for case in cases]
