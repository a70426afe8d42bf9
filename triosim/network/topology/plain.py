"""Descriptions of topologies as plain values, the same in Python, TOML and JSON.

`gb_per_s` counts 10^9 bytes/s in one direction, `latency_us` microseconds. Hosts of eight under a
leaf for every four of them, and a spine that carries half of what the leaves could send:

    kind = "tiers"
    [[tiers]]
    name = "NVSwitch"
    children = 8
    reduces = true  # adds up what passes
    link = { gb_per_s = 450, latency_us = 0.6, protocol = "nvlink4" }
    [[tiers]]
    name = "leaf"
    children = 4  # hosts
    links = 8
    per_gpu = true  # a network card for each GPU, not a bundle for all
    link = { gb_per_s = 50, latency_us = 2 }
    [[tiers]]
    name = "spine"
    children = 0  # all there are
    oversubscription = 2
"""

from __future__ import annotations

import json
import stat
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from triosim.network.topology.base import LinkSpec
from triosim.network.topology.tiered import Tier
from triosim.network.topology.vocabulary import (
    KINDS,
    MAX_GB_PER_S,
    MAX_LATENCY_US,
    MIN_EFFICIENCY,
    MIN_GB_PER_S,
    NEEDS,
    Connection,
    bad,
    missing,
    number,
    whole,
    wrong,
)

_SWITCHES = ("per_gpu", "rails", "reduces")
_TIER = ("name", "children", "link", "links", *_SWITCHES, "oversubscription")
_LINK = ("gb_per_s", "latency_us", "efficiency", "protocol")
TOO_DEEP = "its values are nested too deeply for a description"
T = TypeVar("T")


def read_file(path: str | Path) -> dict[str, Any]:
    """The values of a TOML or JSON file, by its ending."""
    try:
        mode = Path(path).stat().st_mode
        endless = not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))  # a pipe or a device may be
        text = "" if endless else Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise bad(path, error.strerror or "cannot be read") from None
    except ValueError:  # a null byte in the path, or bytes that are no UTF-8
        raise bad(path, "must be a readable text file") from None
    if endless:
        raise bad(path, "must be a regular file")
    is_json = str(path).lower().endswith(".json")
    try:
        values = json.loads(text) if is_json else tomllib.loads(text)
    except RecursionError:
        raise bad(path, TOO_DEEP) from None
    except ValueError as error:
        raise bad(path, f"not a {'JSON' if is_json else 'TOML'} file ({error})") from None
    if not isinstance(values, dict):
        raise bad(path, "must hold a JSON object")
    return values


def read_fields(values: object) -> dict[str, Any]:
    """The fields of a description; `inside` is read by the caller, who knows the class."""
    table = _table("topology", values)
    if "kind" not in table:
        raise missing("a description", "kind")
    kind = table["kind"]
    if not isinstance(kind, str) or kind not in KINDS:
        raise bad(kind, f"no such kind of topology; known are {', '.join(KINDS)}")
    needs = NEEDS[kind]
    _only(table, ("kind", *needs, *(("link",) if "links" in needs else ())), kind)
    readers: Mapping[str, Callable[[str, Any], Any]] = {
        "links": lambda place, value: tuple(_each(place, value, read_link)),
        "shape": lambda place, value: tuple(_each(place, value, whole)),
        "tiers": lambda place, value: _tiers(_each(place, value, _table)),
        "inside": _table,
        "gpus": lambda place, value: tuple(_each(place, value, _text)),
        "connections": lambda place, value: tuple(_each(place, value, _connection)),
    }
    found: dict[str, Any] = {"kind": kind}
    for name in needs:
        if name == "links" and "link" in table:
            if "links" in table:
                raise bad(kind, "has either link (one for all) or links")
            found[name] = (read_link("link", table["link"]),)
        elif name in table:
            found[name] = readers.get(name, whole)(name, table[name])
        else:
            raise missing(kind, name)
    return found


def read_link(place: str, value: object, base: LinkSpec | None = None) -> LinkSpec:
    """A link; with `base`, it has that bandwidth, and what is not given is as there."""
    table = _table(place, value)
    _only(table, _LINK if base is None else _LINK[1:], place)
    if base is None:
        if "gb_per_s" not in table:
            raise missing(place, "gb_per_s")
        gb_per_s = number(f"{place}.gb_per_s", table["gb_per_s"], MIN_GB_PER_S, MAX_GB_PER_S)
        base = LinkSpec(bytes_per_s=gb_per_s * 1e9)
    latency_s, efficiency, protocol = base.latency_s, base.efficiency, base.protocol
    if "latency_us" in table:
        latency_s = number(f"{place}.latency_us", table["latency_us"], 0, MAX_LATENCY_US) * 1e-6
    if "efficiency" in table:
        efficiency = number(f"{place}.efficiency", table["efficiency"], MIN_EFFICIENCY, 1)
    if "protocol" in table:
        protocol = _text(f"{place}.protocol", table["protocol"])
    return LinkSpec(
        bytes_per_s=base.bytes_per_s,
        latency_s=latency_s,
        efficiency=efficiency,
        protocol=protocol,
    )


def _tiers(tables: Iterable[Mapping[str, Any]]) -> tuple[Tier, ...]:
    tiers: list[Tier] = []
    for i, table in enumerate(tables):
        tiers.append(_tier(f"tiers[{i}]", table, tiers))
    return tuple(tiers)


def _tier(place: str, table: Mapping[str, Any], below: Sequence[Tier]) -> Tier:
    _only(table, _TIER, place)
    for name in ("name", "children"):
        if name not in table:
            raise missing(place, name)
    links = whole(f"{place}.links", table.get("links", 1))
    if "oversubscription" in table:
        ratio = number(f"{place}.oversubscription", table["oversubscription"], 0, 1e6, above=True)
        downlinks = _downlinks(place, below)
        if "links" not in table and (downlinks / ratio).is_integer():
            links = int(downlinks / ratio)
        lower = below[-1].link
        gb_per_s = lower.bytes_per_s * downlinks / (ratio * links) / 1e9
        # As read from a file: not every number of bytes is some number of GB/s in floating point.
        link = replace(lower, bytes_per_s=gb_per_s * 1e9)
        if "link" in table:
            link = read_link(f"{place}.link", table["link"], link)
    elif "link" in table:
        link = read_link(f"{place}.link", table["link"])
    else:
        raise bad(place, "needs link, as in link = { gb_per_s = 50 }, or oversubscription")
    return Tier(
        name=_text(f"{place}.name", table["name"]),
        children=whole(f"{place}.children", table["children"], low=0),
        link=link,
        links=links,
        **{name: _switch(f"{place}.{name}", table.get(name, False)) for name in _SWITCHES},
    )


def _downlinks(place: str, below: Sequence[Tier]) -> int:
    """How many links lead down from one switch of the last tier so far."""
    if not below:
        raise bad(f"{place}.oversubscription", "the innermost tier has no switches below it")
    tier = below[-1]
    if tier.rails:  # a switch of a rail has one link to each child
        return tier.children
    # The switches above rails join all rail switches of every child.
    return tier.children * tier.links * (below[-2].links if _over_rails(below) else 1)


def _over_rails(below: Sequence[Tier]) -> bool:
    return len(below) > 1 and below[-2].rails


def _connection(place: str, value: object) -> Connection:
    table = _table(place, value)
    _only(table, ("between", "link", "count"), place)
    for name in ("between", "link"):
        if name not in table:
            raise missing(place, name)
    ends = tuple(_each(f"{place}.between", table["between"], _text))
    if len(ends) != 2:
        raise bad(f"{place}.between = {list(ends)}", "must name two nodes")
    return Connection(
        between=(ends[0], ends[1]),
        link=read_link(f"{place}.link", table["link"]),
        count=whole(f"{place}.count", table.get("count", 1)),
    )


def _table(place: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise wrong(place, value, "must be a table of keys and values")
    return value


def _only(table: Mapping[str, Any], known: Sequence[str], place: str) -> None:
    for name in table:
        if name not in known:
            raise bad(f"{place}: {name}", f"no such key; known are {', '.join(known)}")


def _each(place: str, value: object, read: Callable[[str, Any], T]) -> Iterable[T]:
    if not isinstance(value, (list, tuple)) or not value:
        raise wrong(place, value, "must be a list of at least one entry")
    return [read(f"{place}[{i}]", entry) for i, entry in enumerate(value)]


def _text(place: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise wrong(place, value, "must be a text")
    if any("\ud800" <= letter <= "\udfff" for letter in value):  # JSON has them, no file can
        raise wrong(place, repr(value), "must be a text without halves of characters")
    return value


def _switch(place: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise wrong(place, value, "must be true or false")
    return value


def link_values(link: LinkSpec) -> dict[str, Any]:
    values: dict[str, Any] = {"gb_per_s": _in_units(link.bytes_per_s, 1e9)}
    if link.latency_s:
        values["latency_us"] = _in_units(link.latency_s, 1e-6)
    if link.efficiency != 1:
        values["efficiency"] = link.efficiency
    if link.protocol is not None:
        values["protocol"] = link.protocol
    return values


def tier_values(tier: Tier) -> dict[str, Any]:
    values = {"name": tier.name, "children": tier.children, "link": link_values(tier.link)}
    values |= {"links": tier.links}
    return values | {name: True for name in _SWITCHES if getattr(tier, name)}


def connection_values(connection: Connection) -> dict[str, Any]:
    link = link_values(connection.link)
    return {"between": list(connection.between), "link": link, "count": connection.count}


def _in_units(value: float, unit: float) -> float:
    """How many `unit` a value is: the shortest number that reads back as the very same value."""
    for digits in (6, 12, 15, 16, 17):
        short = float(f"{value / unit:.{digits}g}")
        if short * unit == value:
            return short
    return value / unit
