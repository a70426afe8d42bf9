"""A result that `--json` has written, read back: its figures and tables, and the step again.

The file has no timeline, so there are no Gantt and no memory over time; `SavedResult.run` simulates
the scenario again and has both.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from triosim.analysis.breakdown import CLASSES
from triosim.analysis.checks import Check
from triosim.analysis.communication import Communication
from triosim.errors import ConfigError
from triosim.jitter import StepTimes
from triosim.legal import SCHEMA_VERSION, number, read_json
from triosim.resolved import AnyScenario, is_traced, run, scenario_from
from triosim.result import Result
from triosim.shown import Shown
from triosim.train import TrainScenario

FIELD = "result"
WHOLE = "result itself"
_LARGEST = 1e300
_SAID = {str: "text", bool: "true or false", dict: "an object"}


def _numbers(*names: str) -> dict[str, type]:
    return dict.fromkeys(names, float)


# What a file must have, that the views read: objects or lists of objects, and their entries.
Rows = Mapping[str, tuple[type, Mapping[str, type]]]
_CLASSES_MS = _numbers(*(f"{name}_ms" for name in CLASSES))
_TIMES = _numbers(*(field.name for field in fields(StepTimes)))
_ROWS: Rows = {
    "communication": (
        list,
        {"kind": str, "purpose": str, **_numbers("transfers", "bytes", "busy_ms", "exposed_ms")},
    ),
    "checks": (list, {"id": str, "detail": str, "passed": bool}),
    "provenance": (dict, {}),
    "warnings": (list, {}),
    "assumptions": (list, {}),
}
_TRACE_ROWS: Rows = {
    WHOLE: (
        dict,
        _CLASSES_MS
        | _numbers("total_ms", "communication_bytes", "fetched_bytes", "peak_memory_bytes"),
    ),
    "per_rank": (list, {**_CLASSES_MS, **_numbers("rank", "total_ms", "peak_memory_bytes")}),
}
_TRAIN_ROWS: Rows = {
    WHOLE: (
        dict,
        _numbers(
            "step_ms", "tokens_per_s_per_gpu", "samples_per_s", "model_tflops_per_gpu", "mfu",
            "hfu", "peak_memory_bytes", "peak_memory_gib", "capacity_bytes", "communication_bytes",
        ),
    ),
    "breakdown": (dict, _numbers(*CLASSES)),
    "breakdown_splits": (dict, {"compute": dict}),
    "band": (dict, _numbers("low_ms", "high_ms")),
    "memory_breakdown_gib": (dict, {}),
    "plan": (dict, {"model": str, "machine": str, "sizes": dict}),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SavedResult(Shown):
    """What a file says of a step; every entry of `values` is an attribute as well.

    They have the names that they have on the result. `scenario` is checked as it always is.
    """

    values: Mapping[str, Any]
    scenario: AnyScenario

    def __getattr__(self, name: str) -> Any:
        values = self.__dict__.get("values", {})  # not there yet while it is unpickled
        if name not in values:
            raise AttributeError(f"the saved result has no {name}; run() simulates it again")
        return values[name]

    @property
    def trained(self) -> bool:
        """Whether it is a training step of a language model and not of a trace."""
        return isinstance(self.scenario, TrainScenario)

    @property
    def total_ms(self) -> float:
        return float(self.values["step_ms" if self.trained else "total_ms"])

    @property
    def breakdown(self) -> dict[str, float]:
        """Milliseconds of each class, means over ranks; they sum to the step."""
        held = self.values["breakdown"] if self.trained else self.values
        return {name: float(held[name if self.trained else f"{name}_ms"]) for name in CLASSES}

    @cached_property
    def communication(self) -> list[Communication]:
        """As on a result, in seconds."""
        return [
            Communication(
                kind=str(row["kind"]),
                purpose=str(row["purpose"]),
                transfers=int(row["transfers"]),
                bytes=float(row["bytes"]),
                busy_s=row["busy_ms"] / 1e3,
                exposed_s=row["exposed_ms"] / 1e3,
            )
            for row in self.values["communication"]
        ]

    @cached_property
    def checks(self) -> tuple[Check, ...]:
        return tuple(
            Check(id=row["id"], passed=row["passed"], detail=row["detail"])
            for row in self.values["checks"]
        )

    @property
    def step_times(self) -> StepTimes | None:
        times = self.values.get("step_times")
        return None if times is None else StepTimes(**{name: times[name] for name in _TIMES})

    def run(self) -> Result:
        """The same scenario simulated again, by the program as it is now."""
        return run(self.scenario)

    def to_dict(self) -> dict[str, Any]:
        """What the file holds."""
        return dict(self.values)


def read_result(path: str | os.PathLike[str]) -> SavedResult:
    """Read what `--json` or `to_json` has written of a step of `simulate` or `train`.

    Raises `ConfigError` for a file that is no such result or is of another version; its field is
    the entry that is odd.
    """
    values = read_json(FIELD, path)
    if not isinstance(values, Mapping):
        raise ConfigError(FIELD, path, "must be a JSON object, as --json writes it")
    version = values.get("schema_version")
    if version != SCHEMA_VERSION or isinstance(version, bool):
        raise ConfigError("schema_version", version, f"this program reads version {SCHEMA_VERSION}")
    scenario = values.get("scenario")
    if not isinstance(scenario, Mapping) or "checks" not in values:
        raise ConfigError(FIELD, path, "must be a result of simulate or train, as --json writes it")
    checks = _TRACE_ROWS if is_traced(scenario) else _TRAIN_ROWS
    for name, (kind, entries) in {**checks, **_ROWS}.items():
        _check(name, _held(values, name), kind, entries)
    times = values.get("step_times")
    if times is not None:
        _check("step_times", times, dict, _TIMES)
    return SavedResult(values=values, scenario=scenario_from(scenario))


def _held(values: Mapping[str, Any], name: str) -> Any:
    return values if name == WHOLE else values.get(name)


def _check(name: str, held: Any, kind: type, entries: Mapping[str, type]) -> None:
    """That an object, or each object of a list, has the entries that the views read."""
    if not isinstance(held, kind):
        raise ConfigError(name, held, f"must be {'an object' if kind is dict else 'a list'}")
    for row in (held if isinstance(held, list) else [held]) if entries else ():
        if not isinstance(row, dict):
            raise ConfigError(name, row, "must be an object")
        for entry, of in entries.items():
            value = row.get(entry)
            if of is float:
                number(entry, value, -_LARGEST, _LARGEST)
            elif not isinstance(value, of):
                raise ConfigError(entry, value, f"must be {_SAID[of]}")
