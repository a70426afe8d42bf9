"""What a question of the seminar is: a frozen scenario, one answer, and the wrong roads to it.

An answer is worked out twice. `closed` is the formula, from first principles and without the
engine; `engine` runs the real engine on the same scenario. Both take the scenario's values by name,
so that a page can move them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from triosim.errors import ConfigError

NUMBER, CHOICE, RANKING = "number", "choice", "ranking"
KINDS = (NUMBER, CHOICE, RANKING)

Value = float | str | tuple[str, ...]
"""A number, one of the options, or all options in order."""
Answer = Callable[..., Value]
NOTHING: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameter:
    """One number of a scenario, and how far a page lets it move.

    `name` is the keyword of the formulas; `label` says its unit. `step` is a slider's; `marks` are
    the slider's positions instead, where equal steps make no sense.
    """

    name: str
    label: str
    low: float
    high: float
    step: float = 1.0
    whole: bool = True
    marks: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Quantity:
    """Something with a value: `formula` in LaTeX, the same as a function, and by the engine.

    `at` are values of the scenario that this quantity has of its own. Engine and formula agree to
    `tolerance`, a share of the formula's value; `differs` says why it is not 0.
    """

    label: str
    unit: str = ""
    formula: str = ""
    closed: Answer
    engine: Answer
    at: Mapping[str, float] = field(default_factory=lambda: NOTHING)
    tolerance: float = 1e-9
    differs: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Slip:
    """A known wrong road: where it leads on the scenario, and a sentence for who went there."""

    name: str
    closed: Answer
    hint: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """One question of the bank.

    `given` is the scenario by the names of `parameters` (and may hold more that no page moves).
    `answer` is what is asked; `also` are the values that are shown with it. A choice or ranking
    has `options`, in the order in which they are offered. `published` is a figure that somebody
    measured, with its source.
    """

    id: str
    lab: str
    text: str
    kind: str = NUMBER
    given: Mapping[str, float]
    parameters: tuple[Parameter, ...] = ()
    answer: Quantity
    also: tuple[Quantity, ...] = ()
    slips: tuple[Slip, ...] = ()
    options: tuple[str, ...] = ()
    why: str = ""
    published: str = ""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ConfigError("kind", self.kind, f"must be one of {', '.join(KINDS)}")
        if bool(self.options) == (self.kind == NUMBER):
            raise ConfigError("options", self.options, "are for a choice or a ranking, and needed")
        missing = [p.name for p in self.parameters if p.name not in self.given]
        if missing:
            raise ConfigError("given", missing[0], "has a slider and needs a value")

    @property
    def right(self) -> Value:
        """The answer on the frozen scenario, by the formula."""
        return self.closed(self.answer)

    def closed(self, quantity: Quantity, moved: Mapping[str, float] = NOTHING) -> Value:
        """A quantity by its formula; `moved` are values that are no longer the scenario's."""
        return quantity.closed(**self._values(quantity, moved))

    def engine(self, quantity: Quantity, moved: Mapping[str, float] = NOTHING) -> Value:
        """A quantity by the engine.

        Raises `TrioSimError` where the engine refuses the values.
        """
        return quantity.engine(**self._values(quantity, moved))

    def wrong(self, slip: Slip) -> Value:
        """Where a slip leads on the frozen scenario."""
        return slip.closed(**self.given)

    def _values(self, quantity: Quantity, moved: Mapping[str, float]) -> dict[str, float]:
        return {**self.given, **moved, **quantity.at}
