"""What the page Compare compares: each scenario with its result, or why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from dashboard.compare_text import setting_text, setting_value
from dashboard.computed import result_of
from dashboard.links import named
from dashboard.names import name_of
from dashboard.train_run import answer_to
from dashboard.train_settings import in_labels
from triosim.compare import Comparison, compare
from triosim.errors import ConfigError, TrioSimError
from triosim.figures.compare_colours import LETTERS
from triosim.resolved import AnyScenario
from triosim.result import Result
from triosim.train import TrainScenario


@dataclass(frozen=True, kw_only=True, eq=False)
class Step:
    """A scenario by its letter; `problem` says why it has no result."""

    letter: str
    scenario: AnyScenario
    name: str
    result: Result | None
    problem: str = ""


def steps_of(scenarios: Sequence[AnyScenario]) -> list[Step]:
    """Every scenario simulated in a worker, or looked up."""
    return [_step(*each) for each in zip(LETTERS, scenarios, strict=False)]


def _step(letter: str, scenario: AnyScenario) -> Step:
    name = name_of(scenario)
    try:
        result = simulated(scenario)
    except TrioSimError as error:
        problem = _sentence(error, scenario)
        return Step(letter=letter, scenario=scenario, name=name, result=None, problem=problem)
    return Step(letter=letter, scenario=scenario, name=name, result=result)


def simulated(scenario: AnyScenario) -> Result:
    """The result of either kind, from before or from a worker.

    Raises `TrioSimError`.
    """
    if isinstance(scenario, TrainScenario):
        return answer_to(scenario).result
    return result_of(scenario)


def _sentence(error: TrioSimError, scenario: AnyScenario) -> str:
    if not isinstance(error, ConfigError):
        return str(error)
    return in_labels(error) if isinstance(scenario, TrainScenario) else named(error)


@dataclass(frozen=True, kw_only=True, eq=False)
class Compared:
    """The steps that have a result, and the comparison of them; the first is the baseline."""

    steps: Sequence[Step]
    found: Comparison

    @cached_property
    def names(self) -> list[str]:
        """What the steps are called; those of one name say what is set differently."""
        names = [step.name for step in self.steps]
        for one in self.found.differences:
            if len(set(names)) == len(names):
                break
            label = setting_text(one).partition(" (")[0].partition(":")[0].lower()
            names = [
                f"{name}, {label} {setting_value(one, number)}" if names.count(name) > 1 else name
                for number, name in enumerate(names)
            ]
        return names

    @property
    def letters(self) -> str:
        return "".join(step.letter for step in self.steps)


def compared(steps: Sequence[Step]) -> Compared | None:
    """The comparison; None where the baseline has no result, or no other step has one."""
    known = [step for step in steps if step.result is not None]
    if len(known) < 2 or known[0] is not steps[0]:
        return None
    return Compared(steps=known, found=compare(*(step.result for step in known if step.result)))


def why_not(steps: Sequence[Step]) -> str:
    """Why there is no comparison, and what would make one."""
    if len(steps) == 1:
        return "Add a second step to compare this one with."
    if steps[0].result is None:
        return "The baseline has no result: remove it, or make another step the baseline."
    return "Only the baseline has a result: add another step to compare it with."
