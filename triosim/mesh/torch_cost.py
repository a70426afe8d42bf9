"""torch 2.13's estimate of a redistribution, in microseconds: it decides paths, it is no forecast.

DTensor compares ways to redistribute with fixed links: 87.7 GB/s and 0.6 us inside a host, 22 % of
that bandwidth and 2.7 us for every axis that reaches beyond one, rings, and 6.6 us a collective.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from triosim.mesh.placements import Partial, Placement, Replicate, Shard

GIB = 2**30


@dataclass(frozen=True, slots=True)
class AxisLink:
    """How torch sees one axis of a mesh."""

    size: int
    gb_per_s: float
    latency_us: float

    def ring_us(self, gib: float, hops: int) -> float:
        """`hops` messages of 1/size of the array, one after the other."""
        seconds = (gib * hops / self.size) / self.gb_per_s
        return 6.6 + hops * self.latency_us + seconds * 1e6


def axis_links(shape: Sequence[int], gpus_per_host: int) -> list[AxisLink]:
    """An axis leaves the host where it and the axes to its right have more ranks than a host."""
    links = []
    for axis, size in enumerate(shape):
        if math.prod(shape[axis:]) > gpus_per_host:
            links.append(AxisLink(size, 87.7 * 0.22, 2.7))
        else:
            links.append(AxisLink(size, 87.7, 0.6))
    return links


def transition_us(
    before: Placement, after: Placement, link: AxisLink, gib: float
) -> tuple[float, float]:
    """The estimate for one axis, and the GiB that a rank holds afterwards.

    Infinite where no single step leads from one placement to the other.
    """
    if before == after:
        return 0.0, gib
    one_way = link.size - 1
    match before, after:
        case Shard(), Replicate():
            gib *= link.size
            return link.ring_us(gib, one_way), gib
        case Shard(), Shard():
            # An all-to-all counts as an all-gather of the shard, plus 1 us.
            return link.ring_us(gib, one_way) + 1.0, gib
        case Partial(), Replicate():
            return link.ring_us(gib, 2 * one_way), gib
        case Partial(), Shard():
            return link.ring_us(gib, one_way), gib / link.size
        case Shard() | Partial(), Partial():
            return math.inf, gib
        case Replicate(), Shard():
            return 0.0, gib / link.size
    return 0.0, gib
