"""Settings and their values as the page Compare writes them."""

from __future__ import annotations

from typing import Any

from dashboard.settings import SETTINGS as SIMULATE
from dashboard.train_settings import FIELDS
from dashboard.train_settings import SETTINGS as TRAIN
from triosim.compare import Difference
from triosim.figures.text import DASH, digits, words
from triosim.scenario import CASES

MAX_VALUE = 60
# Names that both pages call alike, and what a trace says in its own words.
_LABELS = {
    **{setting.field: setting.label for setting in SIMULATE.values()},
    **{field: TRAIN[name].label for name, field in FIELDS.items()},
    "trace": "Trace (digest)",
    "compile": "Compiled",
    "gpus": "GPUs",
    "gpu": "GPU",
    "seq_len": "Sequence (tokens)",
    "schedule": "Pipeline schedule",
    "micro_batch_size": "Micro-batch",
}


def setting_text(difference: Difference) -> str:
    """A setting by the label of its control, or by its name."""
    name = difference.setting
    return _LABELS.get(name) or words(name)


def setting_value(difference: Difference, number: int) -> str:
    """What one of the steps has for it."""
    value = difference.values[number]
    if difference.setting == "case" and value is not None:
        return f"{value}: {CASES[value]}"
    return value_text(value)


def value_text(value: Any) -> str:
    """A value in a few characters."""
    if value is None:
        return DASH
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return digits(value)
    if isinstance(value, tuple):
        text = ", ".join(_part(part) for part in value) or DASH
    else:
        text = str(value)
    return text if len(text) <= MAX_VALUE else f"{text[: MAX_VALUE - 3]}..."


def _part(part: Any) -> str:
    if isinstance(part, tuple) and len(part) == 2:
        return f"{part[0]}={value_text(part[1])}"
    return value_text(part)
