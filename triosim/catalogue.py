"""Reading the data files of catalogues: what is missing, unknown or out of range is named.

A `place` says where something stands, as in "gpus.toml [a100]"; a `ConfigError` has it as field.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Collection, Mapping
from importlib.resources import files
from typing import Any

from triosim.errors import ConfigError


def read_data(package: str, name: str) -> dict[str, Any]:
    """A parsed TOML file in the folder "data" of a package."""
    return tomllib.loads((files(package) / "data" / name).read_text(encoding="utf-8"))


def inherited(file: str, entries: Mapping[str, Any], name: str) -> dict[str, Any]:
    """An entry with what it does not give taken from the one it is `like`, also inside tables."""
    own = dict(entries[name])
    like = own.pop("like", None)
    if like is None:
        return own
    others = {key: entry for key, entry in entries.items() if key != name}
    if like not in others:
        raise ConfigError(f"{file} [{name}]", f"like = {like}", "must be another entry")
    merged = inherited(file, others, like)
    for key, value in own.items():
        merged[key] = {**merged.get(key, {}), **value} if isinstance(value, dict) else value
    return merged


def check_keys(place: str, entry: Mapping[str, Any], needed: Collection[str], *more: str) -> None:
    """Raise where a needed key is missing, or where one is neither needed nor among `more`."""
    for key in needed:
        part(place, entry, key)
    for key in entry:
        if key not in needed and key not in more:
            known = ", ".join((*needed, *more))
            raise ConfigError(place, key, f"no such entry; known are {known}")


def part(place: str, entry: Mapping[str, Any], key: str) -> Any:
    if key not in entry:
        raise ConfigError(place, key, "is missing")
    return entry[key]


def number(
    place: str, entry: Mapping[str, Any], key: str, *, least: float = 0.0, most: float = math.inf
) -> float:
    """A finite number from `least` to `most`."""
    value = part(place, entry, key)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ConfigError(place, f"{key} = {value}", "must be a number")
    if not least <= value <= most or math.isinf(value):
        legal = f"from {least:g}" + (f" to {most:g}" if math.isfinite(most) else "")
        raise ConfigError(place, f"{key} = {value}", f"must be a number {legal}")
    return float(value)


def positive(place: str, entry: Mapping[str, Any], key: str, *, most: float = math.inf) -> float:
    """A number above 0."""
    value = number(place, entry, key, most=most)
    if not value:
        raise ConfigError(place, f"{key} = {value:g}", "must be above 0")
    return value


def source(place: str, sources: Mapping[str, Any], key: str) -> str:
    """What a table of sources says of a figure."""
    text = sources.get(key)
    if not isinstance(text, str) or not text.strip():
        raise ConfigError(place, f"sources of {key}", "must say where the number is from")
    return text
