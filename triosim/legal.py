"""What both kinds of scenario check alike: numbers, ranks' speeds, saved fields, JSON files."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from triosim.errors import ConfigError, on_one_line

SCHEMA_VERSION = 1
SPEEDS = (1e-3, 1e3)
MAX_WORKERS = 1024  # processes at once


def as_whole(value: object) -> int | None:
    """A whole number, also as 8.0 or a NumPy number; None for anything else."""
    fits = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if isinstance(value, bool):
        return None
    try:
        return int(value) if fits or hasattr(value, "__index__") else None  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        return None


def number(name: str, value: object, low: float, high: float) -> float:
    """A number in a range."""
    legal = f"must be a number from {low:g} to {high:g}"
    if isinstance(value, (bool, str)) or not hasattr(value, "__float__"):
        raise ConfigError(name, value, legal)
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if not low <= found <= high:
        raise ConfigError(name, value, legal)
    return found


def number_of(name: str, entry: object, value: object, low: float, high: float) -> float:
    """A number in a range, of one entry of several; the sentence has the entry as it is typed."""
    try:
        return number(name, value, low, high)
    except ConfigError as error:
        said = on_one_line(value).removesuffix(".0")
        raise ConfigError(name, f"{entry}={said}", error.rule) from None


def rank_speeds(given: Any, gpus: int) -> tuple[tuple[int, float], ...] | None:
    """Ranks that are not at full speed, as sorted pairs; None where all are."""
    if given is None:
        return None
    try:
        pairs = dict(given).items()
    except (TypeError, ValueError):
        raise ConfigError("rank_speed", given, "must map ranks to speeds, as in {3: 0.5}") from None
    speeds = {}
    for rank, speed in pairs:
        if isinstance(rank, bool) or rank not in range(gpus):
            raise ConfigError("rank_speed", rank, f"ranks go from 0 to {gpus - 1}")
        speeds[int(rank)] = number_of("rank_speed", rank, speed, *SPEEDS)
    return tuple((rank, speed) for rank, speed in sorted(speeds.items()) if speed != 1) or None


def saved_fields(values: object, known: Collection[str]) -> dict[str, Any]:
    """The fields of a saved scenario by name, the version checked and taken off."""
    if not isinstance(values, Mapping):
        raise ConfigError("scenario", type(values).__name__, "must be a JSON object")
    given = dict(values)
    version = given.pop("schema_version", SCHEMA_VERSION)
    if version != SCHEMA_VERSION:
        raise ConfigError("schema_version", version, f"this program reads version {SCHEMA_VERSION}")
    for name in given:
        if name not in known:
            raise ConfigError("scenario", name, f"no such field; known are {', '.join(known)}")
    if isinstance(given.get("rank_speed"), Mapping):
        given["rank_speed"] = {_rank(rank): speed for rank, speed in given["rank_speed"].items()}
    return given


def read_json(field: str, path: str | os.PathLike[str]) -> Any:
    """What a JSON file holds; `ConfigError` on that field where it cannot be read."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ConfigError(field, path, error.strerror or "cannot be read") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(field, path, f"not a JSON file ({error})") from None


def _rank(text: object) -> int:
    try:
        return int(str(text))
    except ValueError:
        raise ConfigError("rank_speed", text, "a rank is a whole number from 0") from None
