"""Topologies by name, by file and in words: generic ones of any size, and machines.

Generic names are made of the caller's link. What a name leaves open is chosen here and said in
`GENERIC`; a colon sets it, as in torus:4x8. Each tier of switches that a message climbs pays the
link's latency once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from triosim.network.topology.base import LinkSpec, Topology
from triosim.network.topology.build import build
from triosim.network.topology.description import Description
from triosim.network.topology.machines import load_machine, machine_names
from triosim.network.topology.tiered import Tier
from triosim.network.topology.vocabulary import MAX_DIMENSIONS, MAX_GPUS, bad, whole

__all__ = [
    "DEFAULT_LINK", "GENERIC", "Description", "describe", "is_generic", "machine_names",
    "natural_topology", "squarest", "topology_names", "topology_of",
]  # fmt: skip

DEFAULT_LINK = LinkSpec(bytes_per_s=100e9)
LARGE_RANKS = 16_384
HOST = 8  # GPUs of a host where a name leaves that open
PORTS = 64  # of a switch: NVIDIA's QM9700 has 64 of 400 Gb/s (DGX SuperPOD RA-11333-001)

Maker = Callable[[tuple[int, ...], int, LinkSpec], Description]


@dataclass(frozen=True, slots=True)
class Entry:
    """A name for any number of GPUs; `counts` says how many numbers may stand behind its colon."""

    about: str
    make: Maker
    choice: str = "nothing: this name is complete"
    counts: tuple[int, ...] = ()


Source = str | os.PathLike[str] | Mapping[str, object] | Description


def topology_of(source: Source, ranks: int, link: LinkSpec | None = None) -> Topology:
    """The topology of that name, file (.toml or .json), dict or description, for so many GPUs.

    `link` is what generic names are made of (`DEFAULT_LINK` where None); everything else has
    links of its own. Equal topologies are built once.

    Raises `ConfigError` on field "topology", `Infeasible` where GPUs are not joined.
    """
    whole("GPUs", ranks)
    built = _built_large if ranks > LARGE_RANKS else _built
    return built(describe(source, ranks, link), ranks)


def is_file_name(name: str) -> bool:
    """Whether a topology's name is that of a file which describes it."""
    return name.casefold().endswith((".toml", ".json"))


def describe(source: Source, ranks: int, link: LinkSpec | None = None) -> Description:
    """What `topology_of` builds: a description that can be saved and changed."""
    if isinstance(source, Description):
        return source
    if isinstance(source, Mapping):
        return Description.from_dict(source)
    if isinstance(source, os.PathLike) or is_file_name(str(source)):
        return Description.from_file(Path(source))
    if not isinstance(source, str):
        raise bad(source, "must be a name, a file, a table or a description")
    name, choice = _name_and_choice(source)
    if name in machine_names() and not choice:
        return load_machine(name).description
    generic = GENERIC.get(name)
    if generic is None:
        known = ", ".join((*GENERIC, *machine_names()))
        raise bad(source, f"no such topology; known are {known}, or a .toml or .json file")
    sides = _sides(source, choice) if choice else ()
    if choice and len(sides) not in generic.counts:
        raise bad(source, f"behind the colon stands {generic.choice}")
    return generic.make(sides, ranks, link or DEFAULT_LINK)


def is_generic(name: str) -> bool:
    """Whether a name is of a topology made of the caller's link."""
    return _name_and_choice(name)[0] in GENERIC


def _name_and_choice(source: str) -> tuple[str, str]:
    name, _, choice = source.strip().casefold().partition(":")
    return name.replace("optimized", "optimised"), choice


def natural_topology(algorithm: str, ranks: int, link: LinkSpec) -> Topology:
    """The links that a collective algorithm is made for; a step pays the link's latency once.

    A ring, a torus, hosts of eight with a link of its own for each GPU to the network between
    them, or one switch, which adds up what passes for "in-network".
    """
    if "ring" in algorithm:
        return topology_of("ring", ranks, link)
    if algorithm == "torus":
        return topology_of("torus", ranks, link)
    if not algorithm.startswith("hierarchical"):
        reduces = algorithm == "in-network"
        tiers: tuple[Tier, ...] = (Tier(name="switch", children=0, link=link, reduces=reduces),)
    else:
        host = Tier(name="host", children=HOST, link=link)
        # The latency is paid below, so that a step between hosts pays it once as well.
        up = replace(link, latency_s=0.0)
        tiers = (host, Tier(name="network", children=0, link=up, links=HOST, per_gpu=True))
    return topology_of(Description(kind="tiers", tiers=tiers), ranks)


def topology_names() -> dict[str, str]:
    """Every generic name with a line on what it is."""
    return {name: generic.about for name, generic in GENERIC.items()}


# Topologies are asked for again and again; one of 65,000 GPUs takes 20 MB.
_built = lru_cache(maxsize=8)(build)
_built_large = lru_cache(maxsize=2)(build)


def squarest(ranks: int, dimensions: int) -> tuple[int, ...]:
    """Sides, ascending, that multiply to `ranks` and have the least sum; 7 is 1 x 7."""
    return min(_factorisations(ranks, dimensions, 1), key=sum)


def _factorisations(ranks: int, dimensions: int, least: int) -> Iterator[tuple[int, ...]]:
    if dimensions == 1:
        yield (ranks,)
        return
    for side in range(least, round(ranks ** (1 / dimensions)) + 1):
        if ranks % side == 0 and side**dimensions <= ranks:
            for rest in _factorisations(ranks // side, dimensions - 1, side):
                yield (side, *rest)


def _sides(source: str, choice: str) -> tuple[int, ...]:
    """The whole numbers behind the colon of a name."""
    parts = choice.split("x")
    if not all(part.isascii() and part.isdigit() and len(part) < 8 for part in parts):
        raise bad(source, "behind the colon stand whole numbers with x between, as in torus:4x8")
    return tuple(whole(source, int(part), high=MAX_GPUS) for part in parts)


def _plain(kind: str) -> Maker:
    return lambda choice, ranks, link: Description(kind=kind, links=(link,))


def _grid(kind: str, dimensions: int) -> Maker:
    def make(choice: tuple[int, ...], ranks: int, link: LinkSpec) -> Description:
        return Description(kind=kind, shape=choice or squarest(ranks, dimensions), links=(link,))

    return make


def _above(name: str, children: int, below: Tier, oversubscription: int = 1) -> Tier:
    """A tier whose uplinks carry what comes from below, divided by the oversubscription."""
    # A switch of a rail has one link to each of its children, whatever the number of rails.
    downlinks = below.children * (1 if below.rails else below.links)
    links = max(1, downlinks // oversubscription)
    rest = downlinks / (oversubscription * links)
    link = replace(below.link, bytes_per_s=below.link.bytes_per_s * rest)
    return Tier(name=name, children=children, link=link, links=links)


def _fat_tree(choice: tuple[int, ...], ranks: int, link: LinkSpec) -> Description:
    ports = choice[0] if choice else PORTS
    if ports < 4 or ports % 2:
        raise bad(f"{ports} ports", "a switch of a fat tree needs an even number of 4 or more")
    names = ("leaf", "spine", "core")
    tiers: list[Tier] = []
    size = 1
    while size < ranks or not tiers:
        top = size * ports >= ranks  # with nothing above it, a switch uses all ports downwards
        children = ports if top else ports // 2
        name = names[len(tiers)] if len(tiers) < 3 else f"core {len(tiers) - 1}"
        if tiers:
            tiers.append(_above(name, children, tiers[-1]))
        else:
            tiers.append(Tier(name=name, children=children, link=link))
        size *= children
    return Description(kind="tiers", tiers=tuple(tiers))


def _leaf_spine(choice: tuple[int, ...], ranks: int, link: LinkSpec) -> Description:
    per_leaf, ratio = (*choice, *(PORTS // 2, 1)[len(choice) :])
    leaf = Tier(name="leaf", children=per_leaf, link=link)
    return Description(kind="tiers", tiers=(leaf, _above("spine", 0, leaf, ratio)))


def _rails(choice: tuple[int, ...], ranks: int, link: LinkSpec) -> Description:
    per_host, hosts = (*choice, *(HOST, PORTS // 2)[len(choice) :])
    host = Tier(name="host", children=per_host, link=link)
    rail = Tier(name="rail", children=hosts, link=link, links=per_host, per_gpu=True, rails=True)
    return Description(kind="tiers", tiers=(host, rail, _above("spine", 0, rail)))


def _dragonfly(choice: tuple[int, ...], ranks: int, link: LinkSpec) -> Description:
    # Balanced after Kim, Dally, Scott and Abts (ISCA 2008): p GPUs and p global links on each of
    # the 2p routers of a group, 2p^2 + 1 groups.
    p = next(p for p in range(1, MAX_GPUS) if 2 * p * p * (2 * p * p + 1) >= ranks)
    groups, routers, gpus = choice or (2 * p * p + 1, 2 * p, p)
    return Description(
        kind="dragonfly", groups=groups, routers=routers, gpus_per_router=gpus, links=(link,)
    )


_SIDES = "one side for each dimension, as in 4x8"
_DIMENSIONS = tuple(range(1, MAX_DIMENSIONS + 1))
GENERIC: Mapping[str, Entry] = {
    "ring": Entry("each GPU joined to the next one, the last to the first", _plain("ring")),
    "switch": Entry("all GPUs on one switch; a step pays the latency once", _plain("switch")),
    "fully-connected": Entry("a link between any two GPUs", _plain("fully-connected")),
    "mesh": Entry(
        "a 2-D mesh as square as the GPUs allow, or mesh:2x8",
        _grid("mesh", 2), _SIDES, _DIMENSIONS,
    ),
    "torus": Entry(
        "a 2-D torus as square as the GPUs allow, or torus:4x8",
        _grid("torus", 2), _SIDES, _DIMENSIONS,
    ),
    "mesh-3d": Entry(
        "a 3-D mesh as even as the GPUs allow, or mesh-3d:2x4x4",
        _grid("mesh", 3), _SIDES, _DIMENSIONS,
    ),
    "torus-3d": Entry(
        "a 3-D torus as even as the GPUs allow, or torus-3d:4x4x4",
        _grid("torus", 3), _SIDES, _DIMENSIONS,
    ),
    "hybrid-cube-mesh": Entry(
        "up to eight GPUs joined as in a DGX-1", _plain("hybrid-cube-mesh")
    ),
    "fat-tree": Entry(
        "tiers of switches with 64 ports at full bandwidth, or fat-tree:32",
        _fat_tree, "the ports of a switch, as in 32", (1,),
    ),
    "leaf-spine": Entry(
        "32 GPUs on a leaf, full bandwidth above; leaf-spine:16x2 has 16, oversubscribed 2 to 1",
        _leaf_spine, "the GPUs of a leaf and the oversubscription, as in 16x2", (1, 2),
    ),
    "rail-optimised": Entry(
        "hosts of 8, GPU i of 32 hosts on rail i, full bandwidth above; or rail-optimised:4x16",
        _rails, "the GPUs of a host and the hosts of a rail, as in 8x32", (1, 2),
    ),
    "dragonfly": Entry(
        "the smallest balanced dragonfly with room, or dragonfly:9x4x2",
        _dragonfly, "groups, routers and GPUs of a router, as in 9x4x2", (3,),
    ),
}  # fmt: skip
