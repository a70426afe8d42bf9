"""Preset files: named scenarios and questions in order, for presenting. TOML, as in `presets/`:

    title = "Pipelines in ten minutes"
    minutes = 10

    [scenarios.two-hosts]
    title = "Two hosts"
    page = "network"
    settings = { net = "seminar-h100", ranks = 16 }

    [[steps]]
    scenario = "two-hosts"
    note = "Which links cross?"

    [[steps]]
    question = "P1"
    settings = { view = "Memory per stage" }
    reveal = ["class", "answer", "picture"]
    note = "Collect guesses first."

A page is named as in its address, and settings as there. Those of a question are the lab's own.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from triosim.errors import ConfigError
from triosim.lab import QUESTIONS

FOLDER = Path(__file__).parents[2] / "presets"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,59}")
MAX_BYTES = 64_000
MAX_STEPS = 99
MAX_TEXT = 2000
MAX_TITLE = 80
CLASS, ANSWER, PICTURE = REVEALS = ("class", "answer", "picture")
PAGES = ("simulate", "train", "traces", "network", "validation", "compare", "sweep")
PRESET_FIELDS = ("title", "minutes", "scenarios", "steps")
SCENARIO_FIELDS = ("title", "page", "settings")
STEP_FIELDS = ("scenario", "question", "settings", "note", "reveal")


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One thing to show: a question, or a scenario on some page.

    `settings` are those of the page, by their names in the address; for a question those of the
    lab. `reveal` are the parts of a question's answer, in the order in which they are shown.
    """

    title: str
    page: str = ""
    question: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    note: str = ""
    reveal: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Preset:
    """A title, how long it takes (0: not said), and what to show in order."""

    name: str
    title: str
    minutes: int
    steps: tuple[Step, ...]

    @property
    def questions(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(step.question for step in self.steps if step.question))


def read_folder(folder: Path = FOLDER) -> tuple[Mapping[str, Preset], Sequence[str]]:
    """The presets of a folder by name, shortest first, and what is wrong with the other files."""
    found, wrong = [], []
    for file in sorted(folder.glob("*.toml")):
        try:
            found.append(read_preset(file.stem, file.read_bytes()))
        except (ConfigError, OSError) as error:
            said = error.strerror if isinstance(error, OSError) else str(error)
            wrong.append(f"{file.name}: {said}")
    found.sort(key=lambda preset: (preset.minutes or MAX_TEXT, preset.name))
    return {preset.name: preset for preset in found}, wrong


def read_preset(name: str, content: bytes) -> Preset:
    """A file's preset; raises `ConfigError` with one sentence that says what is wrong."""
    if not NAME.fullmatch(name):
        raise ConfigError("name", name, "must be letters, digits, - and _, at most 60")
    if len(content) > MAX_BYTES:
        raise ConfigError("file", f"of {len(content):,} bytes", f"has at most {MAX_BYTES:,} bytes")
    try:
        table = tomllib.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ConfigError("file", name, f"is no TOML ({error})") from None
    _only("preset", table, PRESET_FIELDS)
    minutes = table.get("minutes", 0)
    if type(minutes) is not int or not 0 <= minutes <= 1000:
        raise ConfigError("minutes", minutes, "must be a whole number from 0 to 1000")
    scenarios = _table("scenarios", table.get("scenarios", {}))
    shown = {key: _scenario(key, value) for key, value in scenarios.items()}
    steps = table.get("steps")
    if not isinstance(steps, list) or not 1 <= len(steps) <= MAX_STEPS:
        count = len(steps) if isinstance(steps, list) else _said(steps)
        raise ConfigError("steps", count, f"must be 1 to {MAX_STEPS} tables [[steps]]")
    return Preset(
        name=name,
        title=_text("title", table.get("title", name), MAX_TITLE),
        minutes=minutes,
        steps=tuple(_step(f"step {n}", step, shown) for n, step in enumerate(steps, 1)),
    )


def name_of_file(file_name: str) -> str:
    """A preset's name out of the name of an uploaded file, which may be anything."""
    stem = file_name.rsplit("/")[-1].rsplit("\\")[-1].removesuffix(".toml")
    letters = "".join(c if NAME.fullmatch(f"a{c}") else "-" for c in stem)
    return letters.strip("-_")[:60] or "uploaded"


def _scenario(key: str, value: object) -> Step:
    place = f"scenario {key}"
    table = _table(place, value)
    _only(place, table, SCENARIO_FIELDS)
    page = table.get("page")
    if page not in PAGES:
        raise ConfigError(f"{place}, page", _said(page), f"must be one of {', '.join(PAGES)}")
    return Step(
        title=_text(f"{place}, title", table.get("title", key), MAX_TITLE),
        page=page,
        settings=_settings(place, table),
    )


def _step(place: str, value: object, scenarios: Mapping[str, Step]) -> Step:
    table = _table(place, value)
    _only(place, table, STEP_FIELDS)
    if ("scenario" in table) == ("question" in table):
        both = "scenario" in table
        said = "with a scenario and a question" if both else "with neither scenario nor question"
        raise ConfigError(place, said, "must have one of the two")
    note = _text(f"{place}, note", table.get("note", ""), MAX_TEXT)
    if "question" in table:
        return _question(place, table, note)
    found = scenarios.get(table["scenario"]) if isinstance(table["scenario"], str) else None
    if found is None:
        known = ", ".join(scenarios) or "none"
        legal = f"must be the name of a scenario of this file, which has {known}"
        raise ConfigError(f"{place}, scenario", table["scenario"], legal)
    for name in ("settings", "reveal"):
        if name in table:
            raise ConfigError(f"{place}, {name}", table[name], "is for a question")
    return Step(title=found.title, page=found.page, settings=found.settings, note=note)


def _question(place: str, table: Mapping[str, Any], note: str) -> Step:
    name = table["question"]
    if not isinstance(name, str) or name not in QUESTIONS:
        known = ", ".join(QUESTIONS)
        raise ConfigError(f"{place}, question", name, f"must be one of {known}")
    reveal = table.get("reveal", list(REVEALS))
    if not isinstance(reveal, list) or not set(map(str, reveal)) <= set(REVEALS):
        legal = f"must be a list of {', '.join(REVEALS)}"
        raise ConfigError(f"{place}, reveal", reveal, legal)
    if len(set(reveal)) < len(reveal):
        raise ConfigError(f"{place}, reveal", reveal, "has a part twice")
    return Step(
        title=name, question=name, settings=_settings(place, table), note=note,
        reveal=tuple(reveal),
    )  # fmt: skip


def _settings(place: str, table: Mapping[str, Any]) -> Mapping[str, str]:
    """Settings as an address writes them."""
    found = _table(f"{place}, settings", table.get("settings", {}))
    for name, value in found.items():
        if not isinstance(value, str | int | float) or len(str(value)) > MAX_TEXT:
            legal = "must be a short text, a number, true or false"
            raise ConfigError(f"{place}, setting {name}", value, legal)
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in found.items()
    }


def _said(value: object) -> object:
    """What a file says, or that it does not."""
    return "(missing)" if value is None else value


def _text(place: str, value: object, longest: int) -> str:
    if not isinstance(value, str) or not len(value) <= longest:
        raise ConfigError(place, value, f"must be a text of at most {longest:,} characters")
    return value


def _table(place: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError(place, value, "must be a table")
    return value


def _only(place: str, table: Mapping[str, Any], known: Sequence[str]) -> None:
    for name in table:
        if name not in known:
            raise ConfigError(place, name, f"has no such field; known are {', '.join(known)}")
