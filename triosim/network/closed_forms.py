"""What a collective costs: bytes on the busiest link of each rank, and latency steps.

Sizes are of the full array; B is a rank's link bandwidth in one direction.
"""

from __future__ import annotations

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


def bus_factor(ranks: int) -> float:
    """busbw / algbw of an all-reduce, 2(n-1)/n, as nccl-tests defines it."""
    return 2 * (ranks - 1) / ranks
