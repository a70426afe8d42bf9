"""The models of data/models.toml, validated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from triosim.catalogue import inherited, read_data
from triosim.errors import ConfigError
from triosim.workload.model import FIELDS, Transformer
from triosim.workload.parameters import count_parameters

_PUBLISHED = ("source", "parameters", "billions")


@dataclass(frozen=True, kw_only=True, slots=True)
class Published:
    """Where a model is described, and its parameters there: exactly, or in rounded billions."""

    source: str
    parameters: int | None
    billions: float | None


def load_model(name: str) -> Transformer:
    """The model of that name or alias, in whatever case.

    Raises `ConfigError` on field "model" naming the legal ones.
    """
    found = _by_alias().get(_key(name)) if isinstance(name, str) else None
    if found is None:
        raise ConfigError("model", name, f"no such model; known are {', '.join(model_names())}")
    return _catalogue()[found][0]


def model_names() -> tuple[str, ...]:
    """Every model's name, in the order of the data file."""
    return tuple(_catalogue())


def published(name: str) -> Published:
    """Where the catalogue has a model from."""
    return _catalogue()[load_model(name).name][1]


def _key(name: str) -> str:
    return name.strip().casefold().replace("_", "-").replace(" ", "-")


@lru_cache(maxsize=1)
def _by_alias() -> dict[str, str]:
    known = {_key(name): name for name in _catalogue()}
    for name, entry in _file().items():
        for alias in entry.get("aliases", ()):
            if known.setdefault(_key(alias), name) != name:
                raise ConfigError("model", alias, f"stands for {known[_key(alias)]} and for {name}")
    return known


@lru_cache(maxsize=1)
def _file() -> Mapping[str, Mapping[str, Any]]:
    return read_data("triosim.workload", "models.toml")


@lru_cache(maxsize=1)
def _catalogue() -> dict[str, tuple[Transformer, Published]]:
    return read_models(_file())


def read_models(
    entries: Mapping[str, Mapping[str, Any]],
) -> dict[str, tuple[Transformer, Published]]:
    """Models by name from the parsed data file; `like` takes another entry's values first.

    Raises `ConfigError` naming the model and the entry that is wrong, among them a published
    parameter count that the description does not have.
    """
    return {name: _model(name, entries) for name in entries if not name.startswith("_")}


def _model(name: str, entries: Mapping[str, Mapping[str, Any]]) -> tuple[Transformer, Published]:
    own, values = entries[name], inherited("models.toml", entries, name)
    source, parameters, billions = (own.get(key) for key in _PUBLISHED)
    for key in ("aliases", *_PUBLISHED):  # of the entry itself, not of those like it
        values.pop(key, None)
    place = f"models.toml [{name}]"
    if not isinstance(source, str) or not source.strip():
        raise ConfigError(place, "source", "must say where the model is from")
    unknown = sorted(set(values) - set(FIELDS))
    if unknown:
        raise ConfigError(place, ", ".join(unknown), "is no field of a transformer")
    try:
        model = Transformer(name=name, **values)
    except TypeError as error:
        raise ConfigError(place, "entry", str(error)) from None
    total = count_parameters(model).total
    if parameters is not None and total != parameters:
        raise ConfigError(place, f"parameters = {parameters}", f"the description has {total}")
    return model, Published(source=source, parameters=parameters, billions=billions)
