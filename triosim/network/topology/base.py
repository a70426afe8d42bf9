"""What every topology answers: which directed links traffic between ranks loads.

Ranks are 0 .. ranks-1. Links are positions in arrays: one entry for each direction of a connection,
so that opposite directions never share. Everything takes and returns whole arrays, so that a
collective over 100,000 ranks is a few array operations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkSpec:
    """One direction of a connection.

    `efficiency` is the share of `bytes_per_s` that payload can reach (framing, encoding);
    `protocol` names the calibrated protocol constants of this kind of link, None for an ideal one.
    """

    bytes_per_s: float
    latency_s: float = 0.0
    efficiency: float = 1.0
    protocol: str | None = None

    @property
    def capacity_bytes_per_s(self) -> float:
        return self.bytes_per_s * self.efficiency


@dataclass(frozen=True, kw_only=True, slots=True)
class Reduction:
    """The links that an in-network reduction over some ranks loads, in shares of the array.

    `up` carries partial sums towards the switch that sees every rank, `down` the result back.
    """

    up: Floats
    down: Floats
    latency_s: float


class Topology(Protocol):
    """Ranks joined by directed links.

    `capacity_bytes_per_s[i]` is what link i can carry, `link_latency_s[i]` what a message pays to
    pass it. A method raises `Infeasible` naming a pair
    of ranks where no path joins them.
    """

    @property
    def ranks(self) -> int: ...

    @property
    def capacity_bytes_per_s(self) -> Floats: ...

    @property
    def link_latency_s(self) -> Floats: ...

    def traffic(self, source: Ints, target: Ints, size_bytes: Floats) -> Floats:
        """Bytes on each link when `size_bytes[i]` go from rank source[i] to rank target[i].

        A rank that sends to itself loads nothing.
        """
        ...

    def exchange(self, groups: Ints, size_bytes: float) -> Floats:
        """Bytes on each link when in each group every rank sends `size_bytes` to every other one.

        `groups` has one row for each group of ranks.
        """
        ...

    def latency_s(self, source: Ints, target: Ints) -> Floats:
        """Seconds from each source to its target for an empty message."""
        ...

    def diameter_s(self, groups: Ints) -> float:
        """The largest `latency_s` between two ranks of one group."""
        ...

    def protocol(self, groups: Ints) -> str | None:
        """The calibrated protocol of the outermost links that traffic inside the groups crosses."""
        ...

    def units(self, ranks: Ints) -> list[Ints]:
        """For each tier from the inside out, the switch (host, rack, ...) that each rank is under.

        Only tiers that split the ranks: an empty list where all of them are equally near.
        """
        ...

    def shape(self) -> tuple[int, ...] | None:
        """The sides of a grid (rank numbers run along the last one first), None for no grid."""
        ...

    def reduction(self, groups: Ints) -> Reduction | None:
        """In-network reduction inside each group, all at once; None where switches cannot."""
        ...

    def passing(self, link: int, source: Ints, target: Ints) -> Floats:
        """The share of what each source sends to its target that passes the link."""
        ...

    def strands(self) -> Ints:
        """Parallel connections that each link stands for; traffic spreads evenly over them."""
        ...

    def ends(self) -> tuple[Ints, Ints]:
        """Source and target node of each link; nodes below `ranks` are the ranks."""
        ...

    def node_name(self, node: int) -> str:
        """What a person calls a node: "GPU 3", "leaf 0"."""
        ...


def one_group(ranks: int) -> Ints:
    """All ranks as one group."""
    return np.arange(ranks, dtype=np.int64)[None, :]
