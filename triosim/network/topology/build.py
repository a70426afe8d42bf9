"""From a description to the topology it describes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from triosim.network.topology.base import Topology
from triosim.network.topology.description import Description
from triosim.network.topology.dragonfly import Dragonfly
from triosim.network.topology.full import FullyConnected
from triosim.network.topology.graph import Edge, Graph, connection, hybrid_cube_mesh
from triosim.network.topology.grid import Grid
from triosim.network.topology.hosts import Hosts
from triosim.network.topology.tiered import Tier, Tiered
from triosim.network.topology.vocabulary import bad

MAX_LINKS = 2**24  # what fits into memory many times over


def build(description: Description, ranks: int) -> Topology:
    """The first `ranks` GPUs of a described topology.

    Raises `ConfigError` on field "topology" where it has fewer places.
    """
    return _BUILDERS[description.kind](description, ranks)


def _ring(d: Description, ranks: int) -> Topology:
    return Grid((ranks,), True, d.links[0])


def _grid(d: Description, ranks: int) -> Topology:
    links = d.links if len(d.links) == len(d.shape) else d.links * len(d.shape)
    return Grid(d.shape, d.kind == "torus", links, ranks)


def _switch(d: Description, ranks: int) -> Topology:
    return Tiered((Tier(name="switch", children=0, link=d.links[0]),), ranks)


def _fully_connected(d: Description, ranks: int) -> Topology:
    return FullyConnected(ranks, d.links[0])


def _hybrid_cube_mesh(d: Description, ranks: int) -> Topology:
    whole_box = hybrid_cube_mesh(d.links[0])
    names = [whole_box.node_name(gpu) for gpu in range(whole_box.ranks)]
    return _first(ranks, whole_box.edges, names, whole_box.ranks)


def _graph(d: Description, ranks: int) -> Topology:
    names = list(dict.fromkeys((*d.gpus, *(end for c in d.connections for end in c.between))))
    node = {name: i for i, name in enumerate(names)}
    edges = [
        edge
        for c in d.connections
        for edge in connection(node[c.between[0]], node[c.between[1]], c.link, c.count)
    ]
    return _first(ranks, edges, names, len(d.gpus))


def _first(ranks: int, edges: Sequence[Edge], names: Sequence[str], gpus: int) -> Graph:
    """A graph of which the first `ranks` GPUs are used; the others only pass traffic on."""
    if ranks > gpus:
        raise bad(f"{ranks:,} GPUs", f"this topology joins at most {gpus:,}")
    return Graph(edges, ranks, names)


def _hosts(d: Description, ranks: int) -> Topology:
    assert d.inside is not None
    assert d.gpus_per_host is not None
    inside = build(d.inside, d.gpus_per_host)
    hosts = -(-ranks // d.gpus_per_host)
    _check_links("inside of all hosts", hosts * len(inside.capacity_bytes_per_s))
    _check_tiers(d.tiers, ranks, d.gpus_per_host)
    return Hosts(inside, d.tiers, ranks)


def _tiers(d: Description, ranks: int) -> Topology:
    _check_tiers(d.tiers, ranks, 1)
    return Tiered(d.tiers, ranks)


def _dragonfly(d: Description, ranks: int) -> Topology:
    assert d.groups is not None
    assert d.routers is not None
    assert d.gpus_per_router is not None
    inside = d.groups * d.routers * (d.routers - 1)
    _check_links("a dragonfly", inside + d.groups * (d.groups - 1))
    gpu, local, across = d.links * (1 if len(d.links) == 3 else 3)
    return Dragonfly(
        d.groups,
        d.routers,
        d.gpus_per_router,
        gpu_link=gpu,
        local_link=local,
        global_link=across,
        ranks=ranks,
    )


def _check_tiers(tiers: Sequence[Tier], ranks: int, inside: int) -> None:
    """Links that are the ways of single GPUs are counted one by one."""
    for tier in tiers:
        if tier.per_gpu or tier.rails:
            _check_links(tier.name, -(-ranks // inside) * tier.links)
        inside *= tier.children


def _check_links(what: str, links: int) -> None:
    if links > MAX_LINKS:
        raise bad(f"{what}: {links:,} links", f"must be at most {MAX_LINKS:,}")


_BUILDERS: Mapping[str, Callable[[Description, int], Topology]] = {
    "ring": _ring,
    "switch": _switch,
    "fully-connected": _fully_connected,
    "hybrid-cube-mesh": _hybrid_cube_mesh,
    "graph": _graph,
    "hosts": _hosts,
    "dragonfly": _dragonfly,
    "mesh": _grid,
    "torus": _grid,
    "tiers": _tiers,
}
