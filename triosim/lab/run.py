"""A question's quantities at values that a page has moved: what a worker process runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from triosim.errors import ConfigError, TrioSimError
from triosim.lab.bank import question
from triosim.lab.question import Quantity, Value


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """One quantity by both roads; `problem` says why there is no answer of the engine's."""

    label: str
    unit: str
    formula: str
    closed: Value
    engine: Value | None
    problem: str = ""
    differs: str = ""


def sentence(error: TrioSimError, labels: Mapping[str, str]) -> str:
    """What is wrong, in the words of the sliders."""
    if isinstance(error, ConfigError):
        return error.named(labels.get(error.field, error.field))
    return str(error)


def outcomes(name: str, moved: Mapping[str, float]) -> tuple[Outcome, ...]:
    """What is asked first, then what is shown with it.

    Raises `ConfigError` for a question that is not in the bank.
    """
    asked = question(name)
    labels = {parameter.name: parameter.label for parameter in asked.parameters}

    def outcome(quantity: Quantity) -> Outcome:
        engine, problem = None, ""
        try:
            engine = asked.engine(quantity, moved)
        except TrioSimError as error:
            problem = sentence(error, labels)
        return Outcome(
            label=quantity.label,
            unit=quantity.unit,
            formula=quantity.formula,
            closed=asked.closed(quantity, moved),
            engine=engine,
            problem=problem,
            differs=quantity.differs,
        )

    return tuple(outcome(quantity) for quantity in (asked.answer, *asked.also))
