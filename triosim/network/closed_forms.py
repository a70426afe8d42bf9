"""What a collective costs: bytes on the busiest link of each rank, and latency steps.

Sizes are of the full array; B is a rank's link bandwidth in one direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cost:
    """`link_bytes` pass each rank's link, in `steps` that each pay the latency once."""

    link_bytes: float
    steps: int

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.link_bytes + other.link_bytes, self.steps + other.steps)

    def time_s(self, bytes_per_s: float, latency_s: float = 0.0) -> float:
        """The time on otherwise idle links."""
        return self.steps * latency_s + self.link_bytes / bytes_per_s


def ring_reduce_scatter(ranks: int, size_bytes: float) -> Cost:
    """(n-1) a + (n-1)/n S/B: n-1 steps, each moving 1/n of the array to the next rank."""
    return Cost((ranks - 1) / ranks * size_bytes, ranks - 1)


def ring_all_gather(ranks: int, size_bytes: float) -> Cost:
    """The same traffic as a reduce-scatter, without the additions."""
    return ring_reduce_scatter(ranks, size_bytes)


def ring_all_reduce(ranks: int, size_bytes: float) -> Cost:
    """A reduce-scatter, then an all-gather: 2(n-1) a + 2(n-1)/n S/B (Patarasu and Yuan, 2009)."""
    return ring_reduce_scatter(ranks, size_bytes) + ring_all_gather(ranks, size_bytes)


def switch_all_to_all(ranks: int, size_bytes: float) -> Cost:
    """Every rank sends 1/n of its array to each other one, through a switch: (n-1)/n S/B."""
    return Cost((ranks - 1) / ranks * size_bytes, ranks - 1)


def ring_all_to_all(ranks: int, size_bytes: float) -> Cost:
    """The same by the shorter way around a ring with links in both directions.

    A message of S/n to distance d loads d links; per link and direction the distances add up to
    n^2/8 (even n; half of the messages to the opposite rank go each way) or (n^2-1)/8 (odd n).
    """
    distances = (ranks**2 - ranks % 2) / 8
    return Cost(distances * size_bytes / ranks, ranks // 2)


def tree_all_reduce(ranks: int, size_bytes: float) -> Cost:
    """Up and down a binomial tree without pipelining: 2 ceil(log2 n) (a + S/B)."""
    levels = (ranks - 1).bit_length()
    return Cost(2 * levels * size_bytes, 2 * levels)


def halving_doubling_all_reduce(ranks: int, size_bytes: float) -> Cost:
    """2 log2(q) a + 2(q-1)/q S/B with q = n; where n is no power of two, q the next lower one.

    Then two exchanges of the whole array more, one before and one after (Thakur et al., 2005).
    """
    levels = ranks.bit_length() - 1
    folded = ranks != 1 << levels
    cost = Cost(2 * (1 - 0.5**levels) * size_bytes, 2 * levels)
    return cost + Cost(2 * size_bytes, 2) if folded else cost


def tree_beats_ring_below_bytes(ranks: int, bytes_per_s: float, latency_s: float) -> float:
    """The size at which an unpipelined tree takes as long as a ring all-reduce.

    (n-1-l) a = (l - (n-1)/n) S/B with l = ceil(log2 n); 0 where the tree saves no step.
    """
    levels = (ranks - 1).bit_length()
    fewer, more = ranks - 1 - levels, levels - (ranks - 1) / ranks
    return fewer * latency_s * bytes_per_s / more if fewer else 0.0


def torus_all_reduce(shape: Sequence[int], size_bytes: float) -> Cost:
    """Ring by dimension: the sum of their all-reduces, each on what the one before has left."""
    cost, left = Cost(0.0, 0), size_bytes
    for side in shape:
        cost += ring_all_reduce(side, left)
        left /= side
    return cost


def hierarchical_all_reduce_s(
    hosts: int, gpus: int, size_bytes: float, inside_bytes_per_s: float, nic_bytes_per_s: float
) -> float:
    """(G-1)/G S/B1 + 2(N-1)/N S/G/B2 + (G-1)/G S/B1, without latency; B2 one NIC for each GPU."""
    inside = ring_all_reduce(gpus, size_bytes).time_s(inside_bytes_per_s)
    return inside + ring_all_reduce(hosts, size_bytes / gpus).time_s(nic_bytes_per_s)


def pipelined_all_gather_s(
    hosts: int, gpus: int, size_bytes: float, inside_bytes_per_s: float, nic_bytes_per_s: float
) -> float:
    """max((N-1)/N S/(G B2), (GN-1)/(GN) S/B1): NICs and links inside work at the same time."""
    between = ring_all_gather(hosts, size_bytes / gpus).time_s(nic_bytes_per_s)
    return max(between, ring_all_gather(hosts * gpus, size_bytes).time_s(inside_bytes_per_s))


def bus_factor(ranks: int, op: str = "all-reduce") -> float:
    """busbw / algbw as nccl-tests defines it.

    2(n-1)/n for an all-reduce; (n-1)/n for reduce-scatter, all-gather and all-to-all; 1 where one
    rank has all of the data: broadcast, reduce, send.
    """
    passes = {"all-reduce": 2, "reduce-scatter": 1, "all-gather": 1, "all-to-all": 1}.get(op)
    return 1.0 if passes is None else passes * (ranks - 1) / ranks
