"""A network is its links; a communication is the bytes it puts on each of them.

One `Link` stands for one direction, so that opposite directions never share. `members` links that
carry the same load at the same time (the ring of symmetric ranks) are one `Link`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """One direction of a connection, or `members` of them with identical load."""

    name: str
    bytes_per_s: float
    source: int
    target: int
    members: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """What a transfer asks of the network.

    `bytes_by_link` maps positions in the network's link list to bytes; the transfer moves over all
    of them at once and ends when the last byte has arrived, `latency_s` later than the bytes alone
    would. `sent_bytes` is what one participating rank sends. `circuits` are the optical circuits
    that must stand before the first byte moves. `then` are loads that follow, one after the other;
    they belong to the same transfer, which ends with the last of them.
    """

    bytes_by_link: tuple[tuple[int, float], ...]
    latency_s: float
    sent_bytes: float
    circuits: tuple[tuple[int, int], ...] = ()
    then: tuple[Load, ...] = ()

    @property
    def parts(self) -> tuple[Load, ...]:
        """This load and what follows."""
        return (self, *self.then)
