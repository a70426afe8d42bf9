"""What a communication library makes of a link: NCCL's protocols, calibrated for each kind of link.

A collective's bytes do not move at the data sheet's rate. A protocol takes time to start and for
every step, puts flags between the data, and drives the link at a part of its rate; the library
takes the algorithm and the protocol that end first. `choose` says what that adds up to: wait
`latency_s`, then move `factor` times the bytes. The constants are in hardware/data/protocols.toml.

Not modelled: the library's own guess of which protocol ends first, which misses around the sizes
where it switches; the number of channels; that NCCL keeps LL128 out of direct exchanges (without
it there, all-to-all is predicted a little worse).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from triosim.catalogue import check_keys, number, positive, read_data, source
from triosim.errors import ConfigError

IN_NETWORK = "in-network"
PROTOCOLS = ("ll", "ll128", "simple")
_SOURCES = ("payload", "efficiency", "base_s", "step_s", "own_block")


@dataclass(frozen=True, kw_only=True, slots=True)
class Protocol:
    """One way to move data: base_s + steps step_s + bytes / (payload efficiency B).

    `payload` is the share of data among the bytes on the wire and `efficiency` what part of the
    data sheet's bandwidth B those reach, both in (0, 1].
    """

    name: str
    payload: float
    efficiency: float
    base_s: float
    step_s: float

    @property
    def share(self) -> float:
        """The part of the data sheet's bandwidth that data moves at."""
        return self.payload * self.efficiency


@dataclass(frozen=True, kw_only=True, slots=True)
class Calibration:
    """The protocols of one kind of link.

    `in_network` serves reductions inside the switches, None where there are none. A rank that
    copies its own block of the result spends `own_block` of the time of sending one; that is why
    two GPUs reach less than eight. `sources` says for each constant where it is from.
    """

    name: str
    protocols: tuple[Protocol, ...]
    in_network: Protocol | None
    own_block: float
    sources: Mapping[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """An algorithm that could carry a collective: what it asks of the busiest link.

    `steps` follow each other; messages that leave together count as one. `link_bytes` pass the
    busiest link in one direction. `own_bytes` is the block that each rank copies for itself: 1/n
    of the array in a ring and in a direct exchange. `algorithm` is a name, of which "in-network"
    alone has a meaning here.
    """

    algorithm: str
    steps: int
    link_bytes: float
    own_bytes: float = 0.0

    def __post_init__(self) -> None:
        for field in ("steps", "link_bytes", "own_bytes"):
            value = getattr(self, field)
            if not 0 <= value < math.inf:
                raise ConfigError(field, value, "must be a number from 0")
        if self.steps == 0 and self.link_bytes > 0:
            raise ConfigError("steps", self.steps, "must be at least 1 where bytes move")


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """What ends first: after `latency_s`, the link carries `factor` (at least 1) times the bytes.

    `protocol` is None when nothing moves.
    """

    candidate: Candidate
    protocol: Protocol | None
    latency_s: float
    factor: float

    def time_s(self, bytes_per_s: float) -> float:
        """The time on an otherwise idle link of that data-sheet bandwidth."""
        return self.latency_s + self.factor * self.candidate.link_bytes / bytes_per_s


def choose(calibration: Calibration, candidates: Sequence[Candidate], bytes_per_s: float) -> Choice:
    """The algorithm and protocol that end first on a link of that data-sheet bandwidth.

    Each pair is affine in the bytes, so the best time grows steadily with the size of the message
    and has no jumps. A candidate without steps (one rank) costs nothing.

    Raises `ConfigError` when no candidate is left: in-network ones need a calibration that has
    `in_network`.
    """
    if not 0 < bytes_per_s < math.inf:
        raise ConfigError("bytes_per_s", bytes_per_s, "must be a number above 0")
    best: tuple[Candidate, Protocol] | None = None
    least_s = math.inf
    for candidate in candidates:
        if candidate.steps == 0:
            return Choice(candidate=candidate, protocol=None, latency_s=0.0, factor=1.0)
        moved = candidate.link_bytes + calibration.own_block * candidate.own_bytes
        for protocol in _protocols(calibration, candidate):
            seconds = (
                protocol.base_s
                + candidate.steps * protocol.step_s
                + moved / (protocol.payload * protocol.efficiency * bytes_per_s)
            )
            if seconds < least_s:
                best, least_s = (candidate, protocol), seconds
    if best is None:
        names = ", ".join(candidate.algorithm for candidate in candidates) or "none"
        raise ConfigError("algorithm", names, f"{calibration.name} links cannot carry it")
    return _choice(calibration, *best)


def _protocols(calibration: Calibration, candidate: Candidate) -> tuple[Protocol, ...]:
    if candidate.algorithm != IN_NETWORK:
        return calibration.protocols
    return () if calibration.in_network is None else (calibration.in_network,)


def _choice(calibration: Calibration, candidate: Candidate, protocol: Protocol) -> Choice:
    sent = candidate.link_bytes
    own = calibration.own_block * candidate.own_bytes / sent if sent else 0.0
    return Choice(
        candidate=candidate,
        protocol=protocol,
        latency_s=protocol.base_s + candidate.steps * protocol.step_s,
        factor=(1 + own) / protocol.share,
    )


def switch_candidates(
    operation: str, ranks: int, size_bytes: float, *, in_network: bool = False
) -> tuple[Candidate, ...]:
    """What NCCL has for ranks around one switch; the calibrations were fitted with these.

    `size_bytes` is of the full array, as nccl-tests counts it. A ring takes n-1 steps and carries
    (n-1)/n S, an all-reduce both twice. Reduced in the switches, each rank gives all of its array
    and its 1/n of the sums: (1 + 1/n) S. All-to-all messages leave together.
    """
    if ranks < 1:
        raise ConfigError("ranks", ranks, "must be at least 1")
    own = size_bytes / ranks
    hops = ranks - 1
    if operation in ("all-gather", "reduce-scatter"):
        return (Candidate(algorithm="ring", steps=hops, link_bytes=hops * own, own_bytes=own),)
    if operation == "all-to-all":
        steps = min(1, hops)
        return (Candidate(algorithm="direct", steps=steps, link_bytes=hops * own, own_bytes=own),)
    if operation != "all-reduce":
        known = "all-reduce, all-gather, reduce-scatter, all-to-all"
        raise ConfigError("operation", operation, f"must be one of {known}")
    ring = Candidate(algorithm="ring", steps=2 * hops, link_bytes=2 * hops * own, own_bytes=own)
    if not in_network:
        return (ring,)
    return (ring, Candidate(algorithm=IN_NETWORK, steps=2, link_bytes=size_bytes + own))


def load_calibration(name: str) -> Calibration:
    """The calibration of that name.

    Raises `ConfigError` on field "calibration" naming the known ones.
    """
    found = _catalogue().get(name)
    if found is None:
        known = ", ".join(calibration_names())
        raise ConfigError("calibration", name, f"no such kind of link; known are {known}")
    return found


def calibration_names() -> tuple[str, ...]:
    """Every calibration's name, in the order of the data file."""
    return tuple(_catalogue())


@lru_cache(maxsize=1)
def _catalogue() -> dict[str, Calibration]:
    return read_calibrations(read_data("triosim.hardware", "protocols.toml"))


def read_calibrations(entries: Mapping[str, Any]) -> dict[str, Calibration]:
    """Calibrations by name from the parsed data file.

    Raises `ConfigError` naming the calibration and the entry that is missing or out of range.
    """
    return {name: _calibration(name, entry) for name, entry in entries.items()}


def _calibration(name: str, entry: Mapping[str, Any]) -> Calibration:
    place = f"protocols.toml [{name}]"
    check_keys(place, entry, ("own_block", "sources"), "in_network", *PROTOCOLS)
    protocols = tuple(_protocol(place, p, entry[p]) for p in PROTOCOLS if p in entry)
    if not protocols:
        raise ConfigError(place, "protocols", f"needs at least one of {', '.join(PROTOCOLS)}")
    reduces = "in_network" in entry
    return Calibration(
        name=name,
        protocols=protocols,
        in_network=_protocol(place, "in_network", entry["in_network"]) if reduces else None,
        own_block=number(place, entry, "own_block", most=1),
        sources={key: source(place, entry["sources"], key) for key in _SOURCES},
    )


def _protocol(place: str, name: str, entry: Mapping[str, Any]) -> Protocol:
    where = f"{place[:-1]}.{name}]"
    return Protocol(
        name=name,
        payload=positive(where, entry, "payload", most=1),
        efficiency=positive(where, entry, "efficiency", most=1),
        base_s=number(where, entry, "base_us") * 1e-6,
        step_s=number(where, entry, "step_us") * 1e-6,
    )
