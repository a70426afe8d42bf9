"""A collective made concrete: which algorithm carries a message of a size, and what that costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from triosim.errors import ConfigError
from triosim.network.collectives.choose import candidates, cheapest, lay_out
from triosim.network.collectives.pattern import Pattern
from triosim.network.protocol import IN_NETWORK, Calibration, Candidate, load_calibration
from triosim.network.protocol import choose as choose_protocol
from triosim.network.topology.base import Ints, Topology

AUTO = "auto"
# What NCCL has for a group inside one switch; its step times were calibrated with these.
_LIBRARY = ("ring", "direct", "in-network", "hierarchical", "hierarchical-pipelined")


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """`latency_s` to wait, then `factor` times the bytes on every link."""

    latency_s: float
    factor: float = 1.0
    protocol: str | None = None

    def time_s(self, pattern: Pattern, size_bytes: float) -> float:
        """The time on an otherwise idle network."""
        return self.latency_s + self.factor * size_bytes * pattern.seconds_per_byte


@dataclass(frozen=True, kw_only=True, eq=False)
class Planned:
    """One collective of a size on a topology.

    `candidates_s` are the times of all algorithms compared ("auto"); `why` says in a sentence what
    decided.
    """

    operation: str
    algorithm: str
    size_bytes: float
    group_size: int
    pattern: Pattern
    cost: Cost
    why: str
    candidates_s: Mapping[str, float]
    busiest_share: float

    @property
    def latency_s(self) -> float:
        return self.cost.latency_s

    @property
    def time_s(self) -> float:
        """The time on an otherwise idle network."""
        return self.cost.time_s(self.pattern, self.size_bytes)

    @cached_property
    def phase_latencies_s(self) -> tuple[float, ...]:
        """The latency of each phase: in proportion to its steps where a protocol gives the sum."""
        phases = self.pattern.phases
        if self.cost.protocol is None:
            return tuple(phase.latency_s for phase in phases)
        steps = sum(phase.steps for phase in phases)
        return tuple(self.cost.latency_s * phase.steps / steps for phase in phases)


class Planner:
    """Plans collectives on one topology; each operation on the same groups is laid out once.

    With `protocol` the topology's links have the calibrated costs of a communication library, and
    "auto" chooses among the algorithms which that has.
    """

    def __init__(self, topology: Topology, *, protocol: bool = False) -> None:
        self.topology = topology
        self._protocol = protocol
        self._patterns: dict[tuple[object, ...], dict[str, Pattern]] = {}

    def plan(
        self, operation: str, groups: Ints, size_bytes: float, algorithm: str = AUTO
    ) -> Planned:
        """Raises `ConfigError` on field "algorithm" where it cannot do that here."""
        patterns = self._laid(operation, groups, algorithm)
        name = self.topology.protocol(groups) if self._protocol else None
        calibration = None if name is None else load_calibration(name)
        if calibration is not None and algorithm == AUTO:
            patterns = _in_library(patterns, calibration)
        size = groups.shape[1]
        costs = {
            id(pattern): self._cost(operation, name, pattern, size, size_bytes, calibration)
            for name, pattern in patterns.items()
        }
        choice = cheapest(patterns, size_bytes, lambda k, s: costs[id(k)].time_s(k, s))
        return Planned(
            operation=operation,
            algorithm=choice.algorithm,
            size_bytes=size_bytes,
            group_size=size,
            pattern=choice.pattern,
            cost=costs[id(choice.pattern)],
            why=choice.why,
            candidates_s=choice.times_s,
            busiest_share=self._busiest(choice.pattern),
        )

    def _laid(self, operation: str, groups: Ints, algorithm: str) -> dict[str, Pattern]:
        key = (operation, algorithm, groups.shape, groups.tobytes())
        if key not in self._patterns:
            self._patterns[key] = (
                candidates(operation, groups, self.topology)
                if algorithm == AUTO
                else {algorithm: lay_out(operation, algorithm, groups, self.topology)}
            )
        return self._patterns[key]

    def _cost(
        self,
        operation: str,
        algorithm: str,
        pattern: Pattern,
        ranks: int,
        size_bytes: float,
        calibration: Calibration | None,
    ) -> Cost:
        if calibration is None or not pattern.phases:
            return Cost(latency_s=pattern.latency_s)
        # Bytes as if one link of 1 byte/s carried them: their time is the pattern's at full rate.
        moving = size_bytes * pattern.seconds_per_byte
        own = (
            moving / max(ranks - 1, 1) / _passes(operation)
            if algorithm in ("ring", "direct")
            else 0.0
        )
        if algorithm == IN_NETWORK and operation == "all-reduce":
            # Each rank also takes part in the sums of its own 1/n: (1 + 1/n) S, as measured.
            moving *= 1 + 1 / ranks
        chosen = choose_protocol(
            calibration,
            [Candidate(algorithm=algorithm, steps=pattern.steps, link_bytes=moving, own_bytes=own)],
            1.0,
        )
        factor = chosen.factor * (
            moving / (size_bytes * pattern.seconds_per_byte) if moving else 1.0
        )
        name = None if chosen.protocol is None else chosen.protocol.name
        return Cost(latency_s=chosen.latency_s, factor=factor, protocol=name)

    def _busiest(self, pattern: Pattern) -> float:
        """The share of the array on the link that is busy longest."""
        shares = pattern.shares()
        if not len(shares):
            return 0.0
        return float(shares[np.argmax(shares / self.topology.capacity_bytes_per_s)])


def _passes(operation: str) -> int:
    return 2 if operation == "all-reduce" else 1


def _in_library(patterns: dict[str, Pattern], calibration: Calibration) -> dict[str, Pattern]:
    """Those that the library has on these links; all where it has none of them."""
    kept = {
        name: pattern
        for name, pattern in patterns.items()
        if name in _LIBRARY and (name != IN_NETWORK or calibration.in_network is not None)
    }
    if not kept:
        raise ConfigError("algorithm", AUTO, f"{calibration.name} links have none for this")
    return kept
