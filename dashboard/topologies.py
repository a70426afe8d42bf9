"""Networks of the simulation page: their names, what they are, and the connections in them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from triosim.errors import ConfigError, Infeasible
from triosim.joined import topology_with_faults, whole_topology
from triosim.network.collectives.choose import lay_out
from triosim.network.topology.base import Topology, one_group
from triosim.network.topology.describe import describe, topology_names
from triosim.network.topology.machines import machine_names
from triosim.scenario import Scenario

NAMES = (*topology_names(), *machine_names())
BAD_LINKS_HELP = (
    "A connection by its two ends. Without a share it is dead; 0.5 leaves half of the bandwidth. "
    "Several are separated by commas."
)
# Laying out more than this takes longer than a person waits for a link to open.
MAX_CHECKED = 4096
MAX_LISTED = 600


def read_name(text: str) -> str:
    """A network's name as the engine writes it.

    A link or a server must not read files, so the names of those are refused. Raises `ConfigError`
    on field "topology".
    """
    name = text.strip().casefold().replace("optimized", "optimised")
    if name.partition(":")[0] not in NAMES:
        known = ", ".join(NAMES)
        raise ConfigError("topology", text or "(empty)", f"must be one of {known}; or torus:4x8")
    describe(name, 8)  # says what may stand behind the colon
    return name


def about(name: str) -> str:
    """What a network is, in a line; empty where there is none of that name."""
    return {**topology_names(), **machine_names()}.get(name.partition(":")[0], "")


def check_network(scenario: Scenario) -> None:
    """Raise `ConfigError` where the network cannot have so many GPUs, those faults or algorithm."""
    if not scenario.on_topology or scenario.gpus > MAX_CHECKED:
        return
    network = topology_with_faults(scenario)
    if scenario.algorithm not in (None, "auto") and scenario.case != 4:
        try:
            lay_out("all-reduce", scenario.algorithm, one_group(scenario.gpus), network)
        except Infeasible:
            return  # an answer, which the result gives


@lru_cache(maxsize=64)
def connections(scenario: Scenario) -> tuple[str, ...]:
    """The connections of a scenario's network as `dead_links` names them, the first few hundred.

    Empty where the network has no names to fail: one GPU, or a choice that does not exist.
    """
    if scenario.gpus == 1 or scenario.gpus > MAX_CHECKED:
        return ()
    try:
        network = whole_topology(scenario)
    except ConfigError:
        return ()
    return names_of(network)


def names_of(network: Topology) -> tuple[str, ...]:
    """The connections of a network by name, the first few hundred; empty where there are none.

    Of parallel ones all together have a name, and the first has one of its own.
    """
    source, target = network.ends()
    if not len(source):
        return ()
    low, high = np.minimum(source, target), np.maximum(source, target)
    _, first, both_ways = np.unique(
        low * (high.max() + 1) + high, return_index=True, return_counts=True
    )
    parallel = network.strands()[first] * both_ways > 2
    found = []
    for link, several in zip(first[:MAX_LISTED].tolist(), parallel.tolist(), strict=False):
        name = f"{_short(network, int(low[link]))}-{_short(network, int(high[link]))}"
        found += [name, f"{name}:0"] if several else [name]
    return tuple(found)


def bad_links_text(names: Sequence[str]) -> str:
    """What an empty field for bad links says, with a connection that there is."""
    return f"none; {names[0]}=0.5 is half" if names else "none"


def _short(network: Topology, node: int) -> str:
    return str(node) if node < network.ranks else network.node_name(node)
