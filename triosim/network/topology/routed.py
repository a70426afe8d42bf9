"""What a topology answers about single links, so that some of them can fail."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from triosim.network.topology.base import Floats, Ints, Topology


@runtime_checkable
class Routed(Topology, Protocol):
    """A topology that tells which pairs of ranks use a link."""

    def passing(self, link: int, source: Ints, target: Ints) -> Floats:
        """The share of what each source sends to its target that passes the link."""
        ...

    def strands(self) -> Ints:
        """Parallel connections that each link stands for; traffic spreads evenly over them."""
        ...


def routed(topology: Topology) -> Routed:
    assert isinstance(topology, Routed)  # all of ours are
    return topology
