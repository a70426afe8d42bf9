"""A collective made concrete: which algorithm carries a message of a size, and what that costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from triosim.errors import ConfigError
from triosim.network.collectives import library
from triosim.network.collectives.choose import candidates, cheapest, lay_out
from triosim.network.collectives.library import Cost, Library
from triosim.network.collectives.pattern import Pattern
from triosim.network.topology.base import Ints, Topology

AUTO = "auto"


@dataclass(frozen=True, kw_only=True, eq=False)
class Planned:
    """One collective of a size on a topology.

    `candidates_s` are the times of all algorithms compared ("auto"); `why` says in a sentence what
    decided. `busiest_share` of the array passes the link that is busy longest.
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


class Planner:
    """Plans collectives on one topology; each operation on the same groups is laid out once."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self._library = Library(topology)
        self._patterns: dict[tuple[object, ...], dict[str, Pattern]] = {}

    def plan(
        self,
        operation: str,
        groups: Ints,
        size_bytes: float,
        algorithm: str = AUTO,
        *,
        protocol: bool = False,
    ) -> Planned:
        """The collective in every group at once, each over an array of that size.

        With `protocol` the links have the calibrated costs of a communication library, and "auto"
        chooses among the algorithms which that has.

        Raises `ConfigError` on field "algorithm" where it cannot do that here.
        """
        patterns = self._laid(operation, groups, algorithm)
        ranks = groups.shape[1]
        hosts = bool(self.topology.units(groups[0]))
        costs: dict[int, Cost] = {}
        for name, pattern in patterns.items():
            if not protocol:
                costs[id(pattern)] = library.ideal(pattern)
                continue
            cost = self._library.cost(name, pattern, ranks, size_bytes)
            known = algorithm != AUTO or library.has(operation, name, hosts=hosts)
            if cost is not None and (known or cost.protocol is None):
                costs[id(pattern)] = cost
        patterns = {name: k for name, k in patterns.items() if id(k) in costs}
        if not patterns:
            raise ConfigError("algorithm", algorithm, "the library of these links does not have it")
        choice = cheapest(patterns, size_bytes, lambda k, size: costs[id(k)].time_s(k, size))
        return Planned(
            operation=operation,
            algorithm=choice.algorithm,
            size_bytes=size_bytes,
            group_size=ranks,
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

    def _busiest(self, pattern: Pattern) -> float:
        shares = pattern.shares()
        used = np.flatnonzero(shares)
        if not len(used):
            return 0.0
        busy = shares[used] / self.topology.capacity_bytes_per_s[used]
        return float(shares[used[np.argmax(busy)]])
