"""What a sweep goes through: a scenario and the values that some of its fields take in turn."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from pathlib import Path
from typing import Any

from triosim.errors import ConfigError
from triosim.resolved import AnyScenario, read_any_scenario, scenario_from

MAX_POINTS = 100_000
MAX_VALUES = 10_000
_LARGEST = 1e30  # ratios of such numbers and their counts are still numbers
_RANGE = ("from", "to", "step", "factor")


@dataclass(frozen=True, kw_only=True)
class Axis:
    """A field of the scenario and its values in order, each of them once."""

    field: str
    values: tuple[Any, ...]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A point: what is set, and the scenario or, where that is not legal, why not."""

    index: int
    settings: Mapping[str, Any]
    scenario: AnyScenario | None
    problem: str | None


@dataclass(frozen=True, kw_only=True)
class SweepSpec:
    """Every combination of the axes' values on a base scenario; the last axis varies fastest.

    `made` builds one from {field: values}, where values are a list or
    {"from": a, "to": b, "step": c} or, each `factor` times the last, {"from", "to", "factor"}.
    """

    base: AnyScenario
    axes: tuple[Axis, ...]

    @classmethod
    def made(cls, base: AnyScenario, over: Mapping[str, Any]) -> SweepSpec:
        """Raises `ConfigError` for unknown fields, empty lists and too many points."""
        if not isinstance(over, Mapping) or not over:
            raise ConfigError("sweep", over, 'must map fields to values, as in {"gpus": [8, 16]}')
        known = [field.name for field in fields(base)]
        axes = []
        for name, values in over.items():
            if name not in known:
                legal = f"no such field of the scenario; known are {', '.join(known)}"
                raise ConfigError("sweep", name, legal)
            axes.append(Axis(field=name, values=_values(name, values)))
        spec = cls(base=base, axes=tuple(axes))
        if len(spec) > MAX_POINTS:
            legal = f"a sweep has at most {MAX_POINTS:,} points"
            raise ConfigError("sweep", f"{len(spec):,} points", legal)
        return spec

    def __len__(self) -> int:
        return math.prod(len(axis.values) for axis in self.axes)

    def points(self) -> Iterator[Asked]:
        """Every point in order."""
        names = [axis.field for axis in self.axes]
        for index, values in enumerate(product(*(axis.values for axis in self.axes))):
            settings = dict(zip(names, values, strict=True))
            scenario: AnyScenario | None
            try:
                scenario, problem = replace(self.base, **settings), None
            except ConfigError as error:
                scenario, problem = None, str(error)
            yield Asked(index=index, settings=settings, scenario=scenario, problem=problem)


def read_spec(path: str | Path) -> SweepSpec:
    """A sweep from a TOML file.

    `scenario` is a table of fields or the path of a saved scenario (from where the file lies), and
    `[sweep]` maps fields to lists or ranges. Raises `ConfigError`.
    """
    try:
        values = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError("sweep", path, error.strerror or "cannot be read") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError("sweep", path, f"not a TOML file ({error})") from None
    for name in values:
        if name not in ("scenario", "sweep"):
            raise ConfigError("sweep", name, "no such table; known are scenario and sweep")
    given = values.get("scenario", {})
    if isinstance(given, str):
        base = read_any_scenario(Path(path).parent / given)
    else:
        base = scenario_from(given)
    return SweepSpec.made(base, values.get("sweep", {}))


def _values(name: str, given: Any) -> tuple[Any, ...]:
    values = _ranged(name, given) if isinstance(given, Mapping) else given
    if isinstance(values, (str, bytes)) or not isinstance(values, (Sequence, range)):
        raise ConfigError(name, given, "must be a list of values, or a range with from and to")
    if not values:
        raise ConfigError(name, given, "must have at least one value")
    if len(values) > MAX_VALUES:
        legal = f"a field takes at most {MAX_VALUES:,} in a sweep"
        raise ConfigError(name, f"more than {MAX_VALUES:,} values", legal)
    plain = [tuple(v) if isinstance(v, list) else v for v in values]
    return tuple(v for i, v in enumerate(plain) if v not in plain[:i])


def _ranged(name: str, given: Mapping[str, Any]) -> list[float]:
    """From `from` to `to`, both included where they are met."""
    legal = 'must have from, to and step or factor, as in {"from": 1, "to": 8, "factor": 2}'
    if set(given) - set(_RANGE) or not {"from", "to"} <= set(given):
        raise ConfigError(name, dict(given), legal)
    if ("step" in given) == ("factor" in given) and "step" in given:
        raise ConfigError(name, dict(given), "must have step or factor, not both")
    numbers = list(given.values())
    if any(isinstance(n, bool) or not isinstance(n, (int, float)) for n in numbers):
        raise ConfigError(name, dict(given), legal)
    if not all(abs(n) <= _LARGEST and (n == 0 or abs(n) >= 1 / _LARGEST) for n in numbers):
        legal = f"must have numbers up to {_LARGEST:g}, none nearer to 0 than {1 / _LARGEST:g}"
        raise ConfigError(name, dict(given), legal)
    low, high = given["from"], given["to"]
    if "factor" in given:
        factor = given["factor"]
        if factor <= 1 or low <= 0:
            raise ConfigError(name, dict(given), "must start above 0 with a factor above 1")
        count = 1 + math.floor(math.log(max(high / low, 0.5)) / math.log(factor) + 1e-9)
        values = [low * factor**k for k in range(min(count, MAX_VALUES + 1))]
    else:
        step = given.get("step", 1)
        if step <= 0:
            raise ConfigError(name, dict(given), "must have a step above 0")
        count = 1 + math.floor((high - low) / step + 1e-9)
        values = [low + step * k for k in range(max(0, min(count, MAX_VALUES + 1)))]
    return values
