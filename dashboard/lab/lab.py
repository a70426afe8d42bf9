"""What a lab is, and what its page may be set to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from dashboard.settings import Setting
from triosim.lab import Parameter, Question, question

if TYPE_CHECKING:
    from dashboard.lab.desk import Desk


def never(values: Mapping[str, Any]) -> bool:
    """For causes that no slider brings about."""
    return False


@dataclass(frozen=True, slots=True)
class Cause:
    """Why formula and simulation differ: a name, a sentence, and at which values it is at work."""

    name: str
    text: str
    applies: Callable[[Mapping[str, Any]], bool] = never


@dataclass(frozen=True, kw_only=True)
class Lab:
    """One lab.

    `code` names the lab in the address. `more` are parameters of Play that not every question has,
    under a `more_title`; `settings` are choices and switches of its own, by name. `defaults` are
    their values by question ("" for all). `quick` are the questions that take the engine
    milliseconds, so that no worker is asked. `explain` names what makes formula and simulation
    differ; `draw` draws the lab's own pictures.
    """

    code: str
    page: str
    title: str
    idea: str
    formula: str
    source: str
    questions: tuple[str, ...]
    explain: tuple[Cause, ...]
    not_modelled: tuple[str, ...]
    quick: tuple[str, ...] = ()
    more: tuple[Parameter, ...] = ()
    more_title: str = ""
    defaults: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    settings: Mapping[str, Setting] = field(default_factory=dict)
    draw: Callable[[Desk], None] | None = None

    @property
    def asked(self) -> tuple[Question, ...]:
        return tuple(question(name) for name in self.questions)

    @property
    def question_key(self) -> str:
        """The parameter that says which question is open."""
        return f"{self.code}_q"

    def parameters(self, asked: Question) -> tuple[tuple[Parameter, float], ...]:
        """What moves in Play under a question, each with its value in the frozen scenario."""
        own = {p.name: asked.given[p.name] for p in asked.parameters}
        more = [p for p in self.more if p.name not in own]
        values = {**self._defaults(asked), **own}
        return tuple((p, values[p.name]) for p in (*asked.parameters, *more))

    def setting(self, asked: Question, name: str) -> Setting:
        """One of the lab's own settings under a question, as it is called in the address."""
        plain = self.settings[name]
        default = self._defaults(asked).get(name, plain.default)
        return replace(plain, name=setting_key(asked, name), default=default)

    def all_settings(self) -> dict[str, Setting]:
        """Everything the address may say, by its name there."""
        found = {self.question_key: choice("Question", self.questions)}
        for asked in self.asked:
            for parameter, value in self.parameters(asked):
                key = setting_key(asked, parameter.name)
                found[key] = setting_of(key, parameter, value)
            for name in self.settings:
                setting = self.setting(asked, name)
                found[setting.name] = setting
        return found

    def _defaults(self, asked: Question) -> dict[str, Any]:
        return {**self.defaults.get("", {}), **self.defaults.get(asked.id, {})}


def setting_key(asked: Question, name: str) -> str:
    """The name of a slider or a choice in the address: each question has its own."""
    return f"{asked.id}_{name}".lower()


def choice(label: str, choices: tuple[str, ...], default: str | None = None) -> Setting:
    """One of some names, by default the first."""
    return Setting(
        name="", label=label, default=default or choices[0], kind="choice", choices=choices
    )


def switch(label: str, default: bool = False) -> Setting:
    return Setting(name="", label=label, default=default, kind="switch")


def setting_of(key: str, parameter: Parameter, value: float) -> Setting:
    """A slider as a setting; one with marks is a choice of numbers."""
    if parameter.marks:
        marks = tuple(map(mark_text, sorted({*parameter.marks, value})))
        return replace(choice(parameter.label, marks, mark_text(value)), name=key)
    kind: Any = "whole" if parameter.whole else "number"
    return Setting(
        name=key,
        label=parameter.label,
        default=int(value) if parameter.whole else float(value),
        kind=kind,
        low=parameter.low,
        high=parameter.high,
    )


def mark_text(value: float) -> str:
    """A slider's position as it stands in the address."""
    return f"{value:.15g}"
