"""The address of the page Validation: the source, and what is being looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dashboard.address import Raw, here, put_right, read_parameters
from dashboard.links import Link, Parameters
from dashboard.settings import VERSION
from triosim.errors import ConfigError
from triosim.validation import source_names
from triosim.validation.compile_question import MECHANISMS

BUBBLES = "bubble-rates"
TABS = ("One source", "All sources", "Why does compile gain more on 128 GPUs?")
SWITCHES: Mapping[str, str] = {f"why_{name}": name for name in MECHANISMS}
CHOICES: Mapping[str, Sequence[str]] = {
    "source": (*source_names(), BUBBLES),
    "aspect": TABS,
    **dict.fromkeys(("every_source", *SWITCHES), ("true", "false")),
}


def read_view(raw: Raw) -> Link:
    """What an address means; parts that are not accepted count as absent, with a sentence each."""
    return read_parameters(raw, _value)


def _value(name: str, texts: Sequence[str]) -> str:
    said = " and ".join(texts) or "(empty)"
    if name not in CHOICES:
        raise ConfigError(name, said, "this page has no such setting")
    if len(texts) != 1:
        raise ConfigError(name, said, "a setting has one value")
    if texts[0] not in CHOICES[name]:
        raise ConfigError(name, said, f"must be one of {', '.join(CHOICES[name])}")
    return texts[0]


def set_to() -> Mapping[str, Sequence[str]]:
    """What is being looked at, as the address has it."""
    return {name: texts for name, texts in here().items() if name in CHOICES}


def parameters_here() -> Parameters:
    """The address of this view."""
    return {"v": VERSION, **{name: list(texts) for name, texts in set_to().items()}}


def read_address(arrived: bool) -> None:
    """Note what is wrong with the address and put it right, before the first widget."""
    put_right("validation", read_view(here()), CHOICES, arrived=arrived)
