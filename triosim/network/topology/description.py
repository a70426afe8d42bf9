"""A topology in words and numbers: one value that can be saved, compared and built."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from triosim.errors import ConfigError
from triosim.network.topology.base import LinkSpec
from triosim.network.topology.plain import (
    connection_values,
    link_values,
    read_fields,
    read_file,
    tier_values,
)
from triosim.network.topology.tiered import Tier
from triosim.network.topology.vocabulary import (
    KINDS,
    MAX_CONNECTIONS,
    MAX_DIMENSIONS,
    MAX_PLACES,
    MAX_TIERS,
    MAX_UNDER_TIERS,
    NEEDS,
    Connection,
    bad,
    check_link,
    check_name,
    missing,
    whole,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Description:
    """A topology in words and numbers: hashable, so that it can be a cache key.

    `kind` is one of `KINDS`; `NEEDS` says which of the other fields it has. `links` are one for
    all, or for a grid one for each dimension, or for a dragonfly those of a GPU to its router,
    between routers of a group and between groups. In `gpus` the ranks' names stand in order; other
    names in `connections` are switches.

    Raises `ConfigError` on field "topology".
    """

    kind: str
    links: tuple[LinkSpec, ...] = ()
    shape: tuple[int, ...] = ()
    tiers: tuple[Tier, ...] = ()
    gpus_per_host: int | None = None
    inside: Description | None = None
    groups: int | None = None
    routers: int | None = None
    gpus_per_router: int | None = None
    gpus: tuple[str, ...] = ()
    connections: tuple[Connection, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise bad(self.kind, f"no such kind of topology; known are {', '.join(KINDS)}")
        for name in (field.name for field in fields(self) if field.name != "kind"):
            given = getattr(self, name) not in ((), None)
            if given and name not in NEEDS[self.kind]:
                raise bad(f"{self.kind}: {name}", f"a {self.kind} has no {name}")
            if name in NEEDS[self.kind] and not given:
                raise missing(self.kind, name)
        _check_links(self)
        _check_sizes(self)
        _check_tiers(self)
        _check_graph(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for TOML and JSON, in GB/s (10^9 bytes) and microseconds."""
        values: dict[str, Any] = {"kind": self.kind}
        for name in NEEDS[self.kind]:
            value = getattr(self, name)
            if name == "links":
                tables = [link_values(link) for link in value]
                values |= {"link": tables[0]} if len(tables) == 1 else {"links": tables}
            elif name == "tiers":
                values[name] = [tier_values(tier) for tier in value]
            elif name == "inside":
                values[name] = value.to_dict()
            elif name == "connections":
                values[name] = [connection_values(connection) for connection in value]
            else:
                values[name] = list(value) if isinstance(value, tuple) else value
        return values

    @classmethod
    def from_dict(cls, values: object) -> Description:
        """The inverse of `to_dict`; a tier may give `oversubscription` for its bandwidth."""
        given = read_fields(values)
        if "inside" in given:
            given["inside"] = cls.from_dict(given["inside"])
        return cls(**given)

    @classmethod
    def from_file(cls, path: str | Path) -> Description:
        """What a TOML file, or a JSON file by its ending, describes."""
        try:
            return cls.from_dict(read_file(path))
        except ConfigError as error:
            name = Path(path).name
            if name in str(error.value):
                raise
            raise bad(f"{name}: {error.value}", error.problem) from None


def _check_links(description: Description) -> None:
    links, kind = description.links, description.kind
    for i, link in enumerate(links):
        check_link("link" if len(links) == 1 else f"links[{i}]", link)
    most = 3 if kind == "dragonfly" else max(len(description.shape), 1)
    if len(links) not in (0, 1, most):
        raise bad(f"{kind}: {len(links)} links", f"needs one for all{_or_each(most)}")


def _or_each(most: int) -> str:
    return f" or {most}" if most > 1 else ""


def _check_sizes(description: Description) -> None:
    if len(description.shape) > MAX_DIMENSIONS:
        raise bad(f"{len(description.shape)} dimensions", f"must be at most {MAX_DIMENSIONS}")
    sizes: dict[str, int | None] = {f"shape[{i}]": n for i, n in enumerate(description.shape)}
    sizes |= {
        name: getattr(description, name)
        for name in ("gpus_per_host", "groups", "routers", "gpus_per_router")
    }
    gpus = math.prod(whole(name, size) for name, size in sizes.items() if size is not None)
    if max(gpus, len(description.gpus)) > MAX_PLACES:
        places = max(gpus, len(description.gpus))
        raise bad(f"{places:,} places for GPUs", f"must be at most {MAX_PLACES:,}")


def _check_tiers(description: Description) -> None:
    if len(description.tiers) > MAX_TIERS:
        raise bad(f"{len(description.tiers):,} tiers", f"must be at most {MAX_TIERS}")
    for i, tier in enumerate(description.tiers):
        place, last = f"tiers[{i}]", i == len(description.tiers) - 1
        if not tier.name.strip():
            raise missing(place, "name")
        check_name(f"{place}.name", tier.name)
        if tier.children == 0 and not last:
            raise bad(
                f"{place}.children = 0",
                "0 (all there are) is for the outermost tier only; say how many one "
                f"{tier.name} joins",
            )
        whole(f"{place}.children", tier.children, low=0)
        whole(f"{place}.links", tier.links)
        check_link(f"{place}.link", tier.link)
    gpus = math.prod(tier.children or 1 for tier in description.tiers)
    if gpus > MAX_UNDER_TIERS:
        raise bad(f"tiers for {gpus:,} GPUs", f"must be at most {MAX_UNDER_TIERS:,}")


def _check_graph(description: Description) -> None:
    if len(description.connections) > MAX_CONNECTIONS:
        count = len(description.connections)
        raise bad(f"{count:,} connections", f"must be at most {MAX_CONNECTIONS:,}")
    seen: set[str] = set()
    for name in description.gpus:
        check_name("gpus", name)
        if name in seen:
            raise bad(f"gpus: {name}", "every GPU needs a name of its own")
        seen.add(name)
    for i, connection in enumerate(description.connections):
        place = f"connections[{i}]"
        if connection.between[0] == connection.between[1]:
            raise bad(f"{place}.between = {connection.between[0]}", "must name two nodes")
        for end in connection.between:
            check_name(f"{place}.between", end)
        whole(f"{place}.count", connection.count)
        check_link(f"{place}.link", connection.link)
