"""Everything a user can get wrong::

    TrioSimError
    |- ConfigError        a setting that is outside its legal range
    |- TraceFormatError   a trace file that cannot be read as what it claims to be
    |- Infeasible         legal input without an answer (a working set above the capacity)
    '- SimulationError    the engine contradicts itself: always a bug of ours

Every message is one sentence: what is wrong, the value, what would be right.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

_FIELD = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b")


class TrioSimError(Exception):
    """The root: front ends catch this and nothing else."""


class ConfigError(TrioSimError, ValueError):
    """A setting is outside its legal range.

    `field` is the name in `Scenario`, so that a front end can put its own name for it (a flag, the
    label of a slider) in front of `problem`: the `rule`, and the legal values `near` this one. They
    are apart for where another setting stands for this one.
    """

    def __init__(self, field: str, value: object, rule: str, near: Sequence[int] = ()) -> None:
        super().__init__(field, value, rule, near)
        self.field = field
        self.value = value
        self.rule = rule
        self.near = near

    @property
    def problem(self) -> str:
        legal = " or ".join(f"{value:,}" for value in self.near)
        return f"{self.rule}; {legal} would do" if legal else self.rule

    def named(self, name: str, other: Callable[[str], str] = str) -> str:
        """The sentence with the front end's `name` for the setting.

        `other` is its name for another one; words without an underscore could be English as well.
        """
        problem = _FIELD.sub(lambda word: other(word[0]), self.problem)
        return f"{name} {on_one_line(self.value)}: {problem}."

    def __str__(self) -> str:
        return self.named(self.field)


class TraceFormatError(TrioSimError, ValueError):
    """A trace file is damaged; the message names file, line, column and value."""


class Infeasible(TrioSimError):  # noqa: N818 - an answer ("there is none"), not an accident
    """The input is legal and has no answer."""


class SimulationError(TrioSimError, RuntimeError):
    """The engine reached a state that no legal input can produce."""


def counted(count: int, noun: str) -> str:
    """A count and what is counted, as in 1 GPU and 16,384 GPUs."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def on_one_line(value: object, limit: int = 80) -> str:
    """A value as a person would write it, however long or odd it is."""
    try:
        text = str(value)
    except ValueError:  # Python does not print whole numbers of more than 4,300 digits
        return "(too long a number)"
    text = (text if text.isprintable() else repr(text)) if text.strip() else "(empty)"
    return text if len(text) <= limit else text[: limit - 3] + "..."
