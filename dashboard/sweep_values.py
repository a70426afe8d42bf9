"""The values of a field as a person types them: 1, 2, 4 or 8 to 64 x2 or 100 to 400 step 50."""

from __future__ import annotations

import re
from typing import Any

from dashboard.settings import number_text, range_text
from dashboard.sweep_fields import Field
from triosim.errors import ConfigError
from triosim.resolved import AnyScenario
from triosim.sweep import SweepSpec

MAX_VALUES = 200  # of one field
MAX_TEXT = 2000
SYNTAX = "1, 2, 4 or 8 to 64 x2 or 100 to 400 step 50"
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?"
_ONE = re.compile(_NUMBER, re.ASCII)
_RANGE = re.compile(
    rf"({_NUMBER}) *(?:to|\.\.) *({_NUMBER})(?: *(x|\*|\u00d7|step) *({_NUMBER}))?",
    re.ASCII | re.IGNORECASE,
)


def values_in(text: str, field: Field, base: AnyScenario) -> tuple[Any, ...]:
    """The values that a text means, each once and in its order.

    Raises `ConfigError` on the field, with the part of the text that is wrong.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        legal = "choose at least one" if field.choices else f"type values, as in {SYNTAX}"
        raise ConfigError(field.name, "(empty)", legal)
    values = [value for part in parts for value in _part(part, field, base)]
    distinct = tuple(dict.fromkeys(values))
    if len(distinct) > MAX_VALUES:
        legal = f"one field goes through at most {MAX_VALUES:,} here"
        raise ConfigError(field.name, f"{len(distinct):,} values", legal)
    return distinct


def _part(part: str, field: Field, base: AnyScenario) -> list[Any]:
    if field.choices:
        if part not in field.choices:
            raise ConfigError(field.name, part, f"must be of {', '.join(field.choices)}")
        return [field.choices[part]]
    if _ONE.fullmatch(part):
        return [_checked(_number(part), field)]
    found = _RANGE.fullmatch(part)
    if found is None:
        raise ConfigError(field.name, part, f"must read as in {SYNTAX}")
    low, high, kind, by = found.groups()
    given = {"from": _number(low), "to": _number(high)}
    if kind is not None:
        given["step" if kind.casefold() == "step" else "factor"] = _number(by)
    values = SweepSpec.made(base, {field.name: given}).axes[0].values
    return [_checked(_rounded(value), field) for value in values]


def _number(text: str) -> int | float:
    value = float(text)
    return int(value) if value.is_integer() and abs(value) < 1e15 else value


def _rounded(value: float) -> int | float:
    """Without the last digits of repeated steps of 0.1."""
    return _number(f"{value:.12g}")


def _checked(value: int | float, field: Field) -> int | float:
    if not field.low <= value <= field.high or (field.whole and value != int(value)):
        whole = "whole numbers" if field.whole else "numbers"
        legal = f"must be {whole} from {range_text(field.low, field.high)}"
        raise ConfigError(field.name, number_text(value), legal)
    return value


def value_label(field: Field, value: Any) -> str:
    """A value as people read it."""
    for name, meant in field.choices.items():
        if meant == value and type(meant) is type(value):
            return name
    return number_text(value) if isinstance(value, (int, float)) else str(value)
