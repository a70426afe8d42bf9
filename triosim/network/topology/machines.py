"""The machines of hardware/data/machines.toml: real topologies, with a source for every number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from triosim.catalogue import check_keys, inherited, read_data, source
from triosim.errors import ConfigError
from triosim.hardware import load_gpu
from triosim.network.topology.description import Description

BISECTION = "bisection"
ALL_REDUCE = "all-reduce"
MEASURED = "measured all-reduce"
_KEYS = ("about", "gpu", "gpus_per_host", "assumptions", "topology", "sources", "stated")


@dataclass(frozen=True, kw_only=True, slots=True)
class Stated:
    """What a source says a machine reaches with `gpus` GPUs, in one direction.

    `quantity` is "bisection" (bytes/s between two halves), "all-reduce" (bus bandwidth of its links
    without any cost of a protocol) or "measured all-reduce" (the best bus bandwidth measured).
    """

    quantity: str
    gpus: int
    bytes_per_s: float
    source: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """A host and the network that joins hosts of its kind.

    `gpu` is a name of `triosim.hardware`. `assumptions` are sentences about what no source states.
    `sources` says for each tier of switches, and for what is "inside", where its numbers are from.
    """

    name: str
    about: str
    gpu: str
    gpus_per_host: int
    description: Description
    assumptions: tuple[str, ...]
    sources: Mapping[str, str]
    stated: tuple[Stated, ...]


def load_machine(name: str) -> Machine:
    """The machine of that name, in whatever case.

    Raises `ConfigError` on field "topology" naming the known ones.
    """
    found = _catalogue().get(name.strip().casefold()) if isinstance(name, str) else None
    if found is None:
        known = ", ".join(_catalogue())
        raise ConfigError("topology", name, f"no such machine; known are {known}")
    return found


def machine_names() -> dict[str, str]:
    """Every machine's name with a line on what it is, in the order of the data file."""
    return {name: machine.about for name, machine in _catalogue().items()}


@lru_cache(maxsize=1)
def _catalogue() -> dict[str, Machine]:
    return read_machines(read_data("triosim.hardware", "machines.toml"))


def read_machines(entries: Mapping[str, Any]) -> dict[str, Machine]:
    """Machines by name from the parsed data file; `like` takes over what is not given.

    Raises `ConfigError` naming the machine and the entry that is missing or wrong.
    """
    return {name: _machine(name, inherited("machines.toml", entries, name)) for name in entries}


def _machine(name: str, entry: Mapping[str, Any]) -> Machine:
    place = f"machines.toml [{name}]"
    check_keys(place, entry, _KEYS)
    description = Description.from_dict(entry["topology"])
    parts = [tier.name for tier in description.tiers]
    parts += ["inside"] if description.inside is not None else []
    for tier in parts:
        source(place, entry["sources"], tier)
    return Machine(
        name=name,
        about=str(entry["about"]),
        gpu=load_gpu(entry["gpu"]).name,
        gpus_per_host=int(entry["gpus_per_host"]),
        description=description,
        assumptions=tuple(entry["assumptions"]),
        sources=dict(entry["sources"]),
        stated=tuple(_stated(place, figure) for figure in entry["stated"]),
    )


def _stated(place: str, figure: Mapping[str, Any]) -> Stated:
    missing = [key for key in ("quantity", "gpus", "gb_per_s", "source") if not figure.get(key)]
    if missing or figure["quantity"] not in (BISECTION, ALL_REDUCE, MEASURED):
        raise ConfigError(
            place,
            f"stated {figure}",
            f"needs quantity ({BISECTION}, {ALL_REDUCE} or {MEASURED}), gpus, gb_per_s and source",
        )
    return Stated(
        quantity=figure["quantity"],
        gpus=int(figure["gpus"]),
        bytes_per_s=figure["gb_per_s"] * 1e9,
        source=figure["source"],
    )
