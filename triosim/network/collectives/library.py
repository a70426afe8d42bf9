"""What a communication library's protocols cost on a pattern: calibrated latency and extra bytes.

The calibrations of `triosim.network.protocol` are for one kind of link. A pattern over several
tiers takes the steps of each tier at that tier's step time, the bytes of each phase at the share of
the bandwidth reached on its outermost links, and the base time of the outermost tier once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from triosim.network.collectives.moves import Exchange, InNetwork, Move, Sends
from triosim.network.collectives.pattern import Pattern, PhaseLoad
from triosim.network.protocol import IN_NETWORK, Calibration, Protocol, load_calibration
from triosim.network.topology.base import Topology

_WITHIN = ("ring", IN_NETWORK)
_BETWEEN = (*_WITHIN, "hierarchical", "hierarchical-pipelined", "double-binary-tree")


def has(operation: str, algorithm: str, *, hosts: bool) -> bool:
    """Whether NCCL uses an algorithm inside one switch, or between `hosts`.

    The step times were calibrated with these, so that others would look too fast.
    """
    if operation in ("all-to-all", "send"):
        return algorithm == "direct"
    return algorithm in (_BETWEEN if hosts else _WITHIN)


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """Of each phase of a pattern: seconds to wait, and by what factor its bytes grow on the wire.

    `protocol` is None for ideal links.
    """

    latencies_s: tuple[float, ...]
    factors: tuple[float, ...]
    protocol: str | None = None

    @property
    def latency_s(self) -> float:
        return sum(self.latencies_s)

    def time_s(self, pattern: Pattern, size_bytes: float) -> float:
        """The time on an otherwise idle network."""
        moving = sum(
            factor * phase.seconds_per_byte
            for factor, phase in zip(self.factors, pattern.phases, strict=True)
        )
        return self.latency_s + size_bytes * moving


def ideal(pattern: Pattern) -> Cost:
    """Latency and bytes as the topology's links have them."""
    return Cost(
        latencies_s=tuple(phase.latency_s for phase in pattern.phases),
        factors=(1.0,) * len(pattern.phases),
    )


class Library:
    """The costs of patterns on one topology; each pattern is looked at once."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._parts: dict[int, tuple[Pattern, list[_Part]]] = {}
        self._calibrations: dict[int, tuple[Move, Calibration | None]] = {}

    def cost(self, algorithm: str, pattern: Pattern, ranks: int, size_bytes: float) -> Cost | None:
        """The protocol that ends first for this size.

        Costs are ideal where the links have no calibration, None where their library lacks this.
        """
        if id(pattern) not in self._parts:
            parts = [self._part(algorithm, phase, ranks) for phase in pattern.phases]
            self._parts[id(pattern)] = pattern, parts
        _, parts = self._parts[id(pattern)]
        if any(part.calibration is None for part in parts):
            return ideal(pattern)
        names = dict.fromkeys(
            protocol.name for part in parts for protocol in part.protocols(algorithm)
        )
        costs = [_cost(algorithm, name, parts) for name in names]
        return min(
            (cost for cost in costs if cost is not None),
            key=lambda cost: cost.time_s(pattern, size_bytes),
            default=None if parts else ideal(pattern),
        )

    def _part(self, algorithm: str, phase: PhaseLoad, ranks: int) -> _Part:
        steps = [(_steps(algorithm, move), self._calibration(move)) for move in phase.moves]
        own = 1 / phase.steps if algorithm.startswith(("ring", "direct", "hier")) else 0.0
        if algorithm == IN_NETWORK and all(_sums(move) for move in phase.moves):
            # Each rank also takes part in the sums of its own 1/n: (1 + 1/n) S, as measured.
            more = 1 + 1 / ranks
        else:
            more = 1.0
        known = [calibration for _, calibration in steps if calibration is not None]
        return _Part(
            steps=tuple((count, c) for count, c in steps if c is not None),
            # The outermost links are the slowest ones: the others wait for them.
            calibration=max(known, key=_slowness) if len(known) == len(steps) else None,
            own=own,
            more=more,
            pipelined=phase.pipelined,
        )

    def _calibration(self, move: Move) -> Calibration | None:
        # The way back of an all-reduce repeats moves of the way there.
        if id(move) not in self._calibrations:
            self._calibrations[id(move)] = move, self._look_up(move)
        return self._calibrations[id(move)][1]

    def _look_up(self, move: Move) -> Calibration | None:
        if isinstance(move, Sends):
            pairs = np.stack((move.source.ravel(), move.target.ravel()), axis=1)
            name = self._topology.protocol(pairs)
        else:
            name = self._topology.protocol(move.groups)
        return None if name is None else load_calibration(name)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Part:
    """One phase: its moves' steps and links, the outermost links, and the extra bytes.

    `own` is a rank's own block as a share of what it sends; `more` a factor on top.
    """

    steps: tuple[tuple[int, Calibration], ...]
    calibration: Calibration | None
    own: float
    more: float
    pipelined: bool

    def protocols(self, algorithm: str) -> tuple[Protocol, ...]:
        assert self.calibration is not None
        return _protocols(self.calibration, algorithm)


def _protocols(calibration: Calibration, algorithm: str) -> tuple[Protocol, ...]:
    if algorithm != IN_NETWORK:
        return calibration.protocols
    return () if calibration.in_network is None else (calibration.in_network,)


def _cost(algorithm: str, name: str, parts: list[_Part]) -> Cost | None:
    """All phases with the protocol of that name; None where one of their links lacks it."""
    latencies_s, factors, base_s = [], [], 0.0
    for part in parts:
        assert part.calibration is not None
        found = [_named(calibration, algorithm, name) for _, calibration in part.steps]
        outer = _named(part.calibration, algorithm, name)
        if outer is None or None in found:
            return None
        waits = [
            count * protocol.step_s
            for (count, _), protocol in zip(part.steps, found, strict=True)
            if protocol is not None
        ]
        latencies_s.append(sum(waits) if part.pipelined else max(waits))
        own = part.calibration.own_block * part.own
        factors.append(part.more * (1 + own) / outer.share)
        base_s = max(base_s, outer.base_s)
    if latencies_s:
        latencies_s[0] += base_s
    return Cost(latencies_s=tuple(latencies_s), factors=tuple(factors), protocol=name)


def _named(calibration: Calibration, algorithm: str, name: str) -> Protocol | None:
    known = _protocols(calibration, algorithm)
    return next((protocol for protocol in known if protocol.name == name), None)


def _steps(algorithm: str, move: Move) -> int:
    """Messages to all peers leave together; NCCL's were calibrated as one step."""
    return 1 if algorithm == "direct" and isinstance(move, Exchange) else move.steps


def _sums(move: Move) -> bool:
    return isinstance(move, InNetwork) and move.up >= 1 and move.down >= 1


def _slowness(calibration: Calibration) -> float:
    return max((protocol.step_s for protocol in calibration.protocols), default=math.inf)
