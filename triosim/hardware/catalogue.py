"""The GPUs of data/gpus.toml, joined with the fits of data/generations.toml, both validated."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from triosim.catalogue import inherited, number, part, positive, read_data, source
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
    gpus, fits = (read_data("triosim.hardware", f"{name}.toml") for name in ("gpus", "generations"))
    return read_catalogue(gpus, fits)


def read_catalogue(gpus: Mapping[str, Any], fits: Mapping[str, Any]) -> dict[str, Gpu]:
    """GPUs by name from the two parsed data files.

    Raises `ConfigError` naming the GPU or generation and the entry that is missing or not a number.
    """
    return {name: _gpu(name, entry, fits) for name, entry in gpus.items()}


def _gpu(name: str, entry: Mapping[str, Any], fits: Mapping[str, Any]) -> Gpu:
    place = f"gpus.toml [{name}]"
    given = {key: positive(place, entry, key) for key in _NUMBERS}
    generation = str(part(place, entry, "generation"))
    part("generations.toml", fits, generation)
    fit = inherited("generations.toml", fits, generation)
    sources = {key: source(place, part(place, entry, "sources"), key) for key in _SOURCES}
    fitted_at = f"generations.toml [{generation}]"
    for key in ("host_speed", "launch_s", "efficiency", "matmul"):
        sources[key] = source(fitted_at, part(fitted_at, fit, "sources"), key)
    shares = part(fitted_at, fit, "efficiency")
    return Gpu(
        name=name,
        aliases=tuple(entry.get("aliases", ())),
        generation=generation,
        peak_flops=_peaks(place, part(place, entry, "peak_tflops")),
        memory_bytes=round(given["memory_gib"] * 2**30),
        memory_bytes_per_s=given["memory_gb_per_s"] * 1e9,
        link_bytes_per_s=given["link_gb_per_s"] * 1e9,
        power_w=given["power_w"],
        processors=round(given["processors"]),
        host_speed=positive(fitted_at, fit, "host_speed"),
        launch_s=positive(fitted_at, fit, "launch_us") * 1e-6,
        efficiency={kind: positive(fitted_at, shares, kind, most=1) for kind in _EFFICIENCIES},
        matmul=_matmuls(fitted_at, part(fitted_at, fit, "matmul")),
        sources=sources,
    )


def _peaks(place: str, entry: Mapping[str, Any]) -> dict[str, float]:
    unknown = sorted(set(entry) - set(DTYPES))
    if unknown or "fp32" not in entry:
        raise ConfigError(place, unknown or "peak_tflops", f"needs fp32, may have {DTYPES[1:]}")
    return {dtype: positive(place, entry, dtype) * 1e12 for dtype in entry}


def _matmuls(place: str, entry: Mapping[str, Any]) -> dict[str, MatmulFit]:
    if "default" not in entry:
        raise ConfigError(place, "matmul", "needs a fit called default")
    return {
        dtype: MatmulFit(
            efficiency=positive(place, fit, "efficiency", most=1),
            ramp_k=number(place, fit, "ramp_k"),
            small_tile=number(place, fit, "small_tile"),
            overhead_s=number(place, fit, "overhead_us") * 1e-6,
        )
        for dtype, fit in entry.items()
    }
