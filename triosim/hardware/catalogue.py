"""The GPUs of data/gpus.toml, joined with the fits of data/generations.toml, both validated."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any

from triosim.errors import ConfigError
from triosim.hardware.gpu import DTYPES, Gpu, MatmulFit
from triosim.hardware.kinds import KINDS, MATRIX_KINDS

_NUMBERS = ("memory_gib", "memory_gb_per_s", "link_gb_per_s", "power_w", "processors")
# Matrix kinds stand in `matmul`; "memory" is their memory side.
_EFFICIENCIES = ("memory", *(kind for kind in KINDS if kind not in MATRIX_KINDS))
_SOURCES = (
    "peak_flops", "memory_bytes", "memory_bytes_per_s", "link_bytes_per_s", "power_w", "processors",
)  # fmt: skip


def load_gpu(name: str) -> Gpu:
    """The GPU of that name or alias, in whatever case, with or without the maker's name.

    Raises `ConfigError` on field "gpu" naming the legal ones.
    """
    found = _by_alias().get(_key(name)) if isinstance(name, str) else None
    if found is None:
        raise ConfigError("gpu", name, f"no such GPU; known are {', '.join(gpu_names())}")
    return _catalogue()[found]


def gpu_names() -> tuple[str, ...]:
    """Every GPU's name, in the order of the data file."""
    return tuple(_catalogue())


def _key(name: str) -> str:
    words = name.strip().casefold().replace("_", " ").replace("-", " ").split()
    return "-".join(word for word in words if word not in ("nvidia", "amd", "tesla", "instinct"))


@lru_cache(maxsize=1)
def _by_alias() -> dict[str, str]:
    known: dict[str, str] = {}
    for name, gpu in _catalogue().items():
        for alias in (name, *gpu.aliases):
            if known.setdefault(_key(alias), name) != name:
                raise ConfigError("gpu", alias, f"stands for {known[_key(alias)]} and for {name}")
    return known


@lru_cache(maxsize=1)
def _catalogue() -> dict[str, Gpu]:
    data = files("triosim.hardware") / "data"
    gpus = tomllib.loads((data / "gpus.toml").read_text(encoding="utf-8"))
    fits = tomllib.loads((data / "generations.toml").read_text(encoding="utf-8"))
    return read_catalogue(gpus, fits)


def read_catalogue(gpus: Mapping[str, Any], fits: Mapping[str, Any]) -> dict[str, Gpu]:
    """GPUs by name from the two parsed data files.

    Raises `ConfigError` naming the GPU or generation and the entry that is missing or not a number.
    """
    return {name: _gpu(name, entry, fits) for name, entry in gpus.items()}


def _gpu(name: str, entry: Mapping[str, Any], fits: Mapping[str, Any]) -> Gpu:
    place = f"gpus.toml [{name}]"
    number = {key: _number(place, entry, key) for key in _NUMBERS}
    generation = str(_entry(place, entry, "generation"))
    fit = _generation(fits, generation)
    sources = {key: _text(place, _entry(place, entry, "sources"), key) for key in _SOURCES}
    fitted_at = f"generations.toml [{generation}]"
    for key in ("launch_s", "efficiency", "matmul"):
        sources[key] = _text(fitted_at, _entry(fitted_at, fit, "sources"), key)
    return Gpu(
        name=name,
        aliases=tuple(entry.get("aliases", ())),
        generation=generation,
        peak_flops=_peaks(place, _entry(place, entry, "peak_tflops")),
        memory_bytes=round(number["memory_gib"] * 2**30),
        memory_bytes_per_s=number["memory_gb_per_s"] * 1e9,
        link_bytes_per_s=number["link_gb_per_s"] * 1e9,
        power_w=number["power_w"],
        processors=round(number["processors"]),
        launch_s=_number(fitted_at, fit, "launch_us") * 1e-6,
        efficiency=_efficiencies(fitted_at, _entry(fitted_at, fit, "efficiency")),
        matmul=_matmuls(fitted_at, _entry(fitted_at, fit, "matmul")),
        sources=sources,
    )


def _generation(fits: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A generation's entry, with what it takes from the one that it is like."""
    own = dict(_entry("generations.toml", fits, name))
    if "like" not in own:
        return own
    merged = _generation(fits, own.pop("like"))
    for key, value in own.items():
        merged[key] = {**merged.get(key, {}), **value} if isinstance(value, dict) else value
    return merged


def _peaks(place: str, entry: Mapping[str, Any]) -> dict[str, float]:
    unknown = sorted(set(entry) - set(DTYPES))
    if unknown or "fp32" not in entry:
        raise ConfigError(place, unknown or "peak_tflops", f"needs fp32, may have {DTYPES[1:]}")
    return {dtype: _number(place, entry, dtype) * 1e12 for dtype in entry}


def _efficiencies(place: str, entry: Mapping[str, Any]) -> dict[str, float]:
    return {kind: _share(place, entry, kind) for kind in _EFFICIENCIES}


def _matmuls(place: str, entry: Mapping[str, Any]) -> dict[str, MatmulFit]:
    if "default" not in entry:
        raise ConfigError(place, "matmul", "needs a fit called default")
    return {
        dtype: MatmulFit(
            efficiency=_share(place, fit, "efficiency"),
            ramp_k=_number(place, fit, "ramp_k", least=0),
            small_tile=_number(place, fit, "small_tile", least=0),
            overhead_s=_number(place, fit, "overhead_us", least=0) * 1e-6,
        )
        for dtype, fit in entry.items()
    }


def _entry(place: str, entry: Mapping[str, Any], key: str) -> Any:
    if key not in entry:
        raise ConfigError(place, key, "is missing")
    return entry[key]


def _text(place: str, entry: Mapping[str, Any], key: str) -> str:
    text = _entry(place, entry, key)
    if not isinstance(text, str) or not text.strip():
        raise ConfigError(place, key, "must say where the number is from")
    return text


def _number(place: str, entry: Mapping[str, Any], key: str, least: float = 1e-9) -> float:
    value = _entry(place, entry, key)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ConfigError(place, f"{key} = {value}", "must be a number")
    if not least <= value < math.inf:
        raise ConfigError(place, f"{key} = {value}", f"must be a number from {least:g}")
    return float(value)


def _share(place: str, entry: Mapping[str, Any], key: str) -> float:
    value = _number(place, entry, key)
    if value > 1:
        raise ConfigError(place, f"{key} = {value}", "must be at most 1")
    return value
