"""GPU-to-GPU networks of TrioSim's cases: electrical or optical, ring or chain.

Both answer the same two questions: what does an all-reduce over all ranks load, and what does a
transfer between two ranks load. Remote memory is a link of its own for every GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from triosim.network.closed_forms import ring_all_reduce
from triosim.network.links import Link, Load
from triosim.network.topology.graph import Edge, Graph


@dataclass(frozen=True, kw_only=True, slots=True)
class Wire:
    """The technology: bandwidth per link and direction, latency per step or hop.

    With `circuit_setup_s` None the links are electrical; otherwise they are optical circuits, and 0
    means that the circuits of the layout stand before the step begins.
    """

    bytes_per_s: float
    latency_s: float
    circuit_setup_s: float | None = None

    @property
    def optical(self) -> bool:
        return self.circuit_setup_s is not None


class Interconnect:
    """Ranks joined by directed links.

    `links[i]` carries what `Load.bytes_by_link` calls i. `ring` are the positions of the links that
    an all-reduce loads, one in each direction of travel.
    """

    def __init__(self, wire: Wire, links: Sequence[Link], ranks: int) -> None:
        self.wire = wire
        self.links = list(links)
        self.ranks = ranks
        self._topology = Graph(
            Edge(source=k.source, target=k.target, bytes_per_s=k.bytes_per_s) for k in links
        )

    def all_reduce(self, size_bytes: float) -> Load:
        """Ring all-reduce of an array of that size over all ranks."""
        cost = ring_all_reduce(self.ranks, size_bytes)
        return Load(
            bytes_by_link=tuple((i, cost.link_bytes) for i in range(len(self.links))),
            latency_s=cost.steps * self.wire.latency_s,
            sent_bytes=cost.link_bytes,
            # All circuits of the ring are needed at the same instant, so one speaks for them all.
            circuits=((0, 1),) if self.wire.optical else (),
        )

    def send(self, source: int, target: int, size_bytes: float) -> Load:
        """A transfer from one rank to another."""
        if self.wire.optical:
            (link,) = (
                i for i, k in enumerate(self.links) if (k.source, k.target) == (source, target)
            )
            route: tuple[int, ...] = (link,)
        else:
            route = self._topology.route(source, target)
        return Load(
            bytes_by_link=tuple((i, size_bytes) for i in route),
            latency_s=len(route) * self.wire.latency_s,
            sent_bytes=size_bytes,
            circuits=((source, target),) if self.wire.optical else (),
        )


def ring(wire: Wire, ranks: int, *, folded: bool) -> Interconnect:
    """Each rank sends to the next. Folded: the links carry the same, so one stands for all."""
    if ranks == 1:
        return Interconnect(wire, [], ranks)
    if folded:
        links = [Link(name="ring", bytes_per_s=wire.bytes_per_s, source=0, target=1, members=ranks)]
    else:
        links = [_link(wire, rank, (rank + 1) % ranks) for rank in range(ranks)]
    return Interconnect(wire, links, ranks)


def chain(wire: Wire, ranks: int) -> Interconnect:
    """Each rank is joined to the next, in both directions."""
    pairs = [(rank, rank + 1) for rank in range(ranks - 1)]
    return Interconnect(
        wire, [_link(wire, a, b) for pair in pairs for a, b in (pair, pair[::-1])], ranks
    )


def _link(wire: Wire, source: int, target: int) -> Link:
    return Link(
        name=f"{source} to {target}",
        bytes_per_s=wire.bytes_per_s,
        source=source,
        target=target,
    )
