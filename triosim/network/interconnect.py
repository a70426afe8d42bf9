"""GPU-to-GPU networks of TrioSim's cases: electrical or optical, ring or chain.

Both answer the same two questions: what does an all-reduce over all ranks load, and what does a
transfer between two ranks load. Remote memory is a link of its own for every GPU.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

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


class Network(Protocol):
    """What a parallelism asks of the network between GPUs."""

    @property
    def links(self) -> Sequence[Link]: ...

    def all_reduce(self, size_bytes: float) -> Load:
        """All-reduce of an array of that size over all ranks."""
        ...

    def send(self, source: int, target: int, size_bytes: float) -> Load:
        """A transfer from one rank to another."""
        ...


class Interconnect:
    """Ranks joined by directed links.

    `links[i]` carries what `Load.bytes_by_link` calls i. `places[r]` is the GPU of an optical mesh
    that rank r runs on, rank r itself where None.
    """

    def __init__(
        self, wire: Wire, links: Sequence[Link], ranks: int, places: Sequence[int] | None = None
    ) -> None:
        self.wire = wire
        self._places = range(ranks) if places is None else places
        # One tuple for all all-reduces: the circuit switch knows a set that stands by identity.
        self._ring = self._circuits((r, (r + 1) % ranks) for r in range(ranks))
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
            circuits=self._ring,
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
            circuits=self._circuits([(source, target)]),
        )

    def _circuits(self, pairs: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
        if not self.wire.optical:
            return ()
        return tuple((self._places[source], self._places[target]) for source, target in pairs)


def ring(
    wire: Wire, ranks: int, places: Sequence[int] | None = None, *, folded: bool
) -> Interconnect:
    """Each rank sends to the next. Folded: the links carry the same, so one stands for all."""
    if ranks == 1:
        return Interconnect(wire, [], ranks, places)
    if folded:
        links = [Link(name="ring", bytes_per_s=wire.bytes_per_s, source=0, target=1, members=ranks)]
    else:
        links = [_link(wire, rank, (rank + 1) % ranks) for rank in range(ranks)]
    return Interconnect(wire, links, ranks, places)


def chain(wire: Wire, ranks: int, places: Sequence[int] | None = None) -> Interconnect:
    """Each rank is joined to the next, in both directions."""
    pairs = [(rank, rank + 1) for rank in range(ranks - 1)]
    links = [_link(wire, a, b) for pair in pairs for a, b in (pair, pair[::-1])]
    return Interconnect(wire, links, ranks, places)


def _link(wire: Wire, source: int, target: int) -> Link:
    return Link(
        name=f"{source} to {target}",
        bytes_per_s=wire.bytes_per_s,
        source=source,
        target=target,
    )
