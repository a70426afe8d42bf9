"""Everything a user can get wrong::

    TrioSimError
    |- ConfigError        a setting that is outside its legal range
    |- TraceFormatError   a trace file that cannot be read as what it claims to be
    |- Infeasible         legal input without an answer (a working set above the capacity)
    '- SimulationError    the engine contradicts itself: always a bug of ours

Every message is one sentence: what is wrong, the value, what would be right.
"""

from __future__ import annotations


class TrioSimError(Exception):
    """The root: front ends catch this and nothing else."""


class ConfigError(TrioSimError, ValueError):
    """A setting is outside its legal range.

    `field` is the name in `Scenario`, so that a front end can put its own name for it (a flag, the
    label of a slider) in front of `problem`.
    """

    def __init__(self, field: str, value: object, problem: str) -> None:
        super().__init__(field, value, problem)
        self.field = field
        self.value = value
        self.problem = problem

    def named(self, name: str) -> str:
        """The sentence with the front end's `name` for the setting."""
        return f"{name} {_on_one_line(self.value)}: {self.problem}."

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


def _on_one_line(value: object, limit: int = 80) -> str:
    """A value as a person would write it, however long or odd it is."""
    try:
        text = str(value)
    except ValueError:  # Python does not print whole numbers of more than 4,300 digits
        return "(too long a number)"
    text = (text if text.isprintable() else repr(text)) if text.strip() else "(empty)"
    return text if len(text) <= limit else text[: limit - 3] + "..."
