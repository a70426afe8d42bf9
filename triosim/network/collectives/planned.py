"""A collective made concrete: which algorithm carries a message of a size, and what that costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from triosim.errors import ConfigError
from triosim.network.collectives import library
from triosim.network.collectives.choose import attempt, cheapest, compared, lay_out
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
        # None for what cannot be done on this topology.
        self._patterns: dict[tuple[object, ...], dict[str, Pattern | None]] = {}

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
        if protocol:
            patterns, costs = self._calibrated(operation, groups, size_bytes, algorithm)
        else:
            patterns = self._laid(operation, groups, algorithm)
            costs = {id(pattern): library.ideal(pattern) for pattern in patterns.values()}
        choice = cheapest(patterns, size_bytes, lambda k, size: costs[id(k)].time_s(k, size))
        return Planned(
            operation=operation,
            algorithm=choice.algorithm,
            size_bytes=size_bytes,
            group_size=groups.shape[1],
            pattern=choice.pattern,
            cost=costs[id(choice.pattern)],
            why=choice.why,
            candidates_s=choice.times_s,
            busiest_share=self._busiest(choice.pattern),
        )

    def _calibrated(
        self, operation: str, groups: Ints, size_bytes: float, algorithm: str
    ) -> tuple[dict[str, Pattern], dict[int, Cost]]:
        """The patterns that the library has, or all where links are ideal; costs by pattern."""
        hosts = bool(self.topology.units(groups[0]))
        known = [
            k
            for k in compared(operation, groups.shape[1])
            if library.has(operation, k, hosts=hosts)
        ]
        tries = (known, None) if algorithm == AUTO else (None,)
        patterns: dict[str, Pattern] = {}
        costs: dict[int, Cost] = {}
        for names in tries:
            patterns = self._laid(operation, groups, algorithm, names)
            costs = {
                id(pattern): cost
                for name, pattern in patterns.items()
                if (cost := self._library.cost(name, pattern, groups.shape[1], size_bytes))
                and (algorithm != AUTO or name in known or cost.protocol is None)
            }
            # NOTE: the library's algorithms are half of all; the others need not be laid out.
            if costs and all(cost.protocol is not None for cost in costs.values()):
                break
        patterns = {name: k for name, k in patterns.items() if id(k) in costs}
        if not patterns:
            raise ConfigError("algorithm", algorithm, "the library of these links does not have it")
        return patterns, costs

    def _laid(
        self, operation: str, groups: Ints, algorithm: str, names: Sequence[str] | None = None
    ) -> dict[str, Pattern]:
        """The pattern of an algorithm; for "auto" those of `names` (None: all) that are possible.

        Raises `ConfigError` on field "algorithm" where the only one is not.
        """
        key = (operation, groups.shape, groups.tobytes())
        laid = self._patterns.setdefault(key, {})
        if algorithm != AUTO:
            if laid.get(algorithm) is None:
                laid[algorithm] = lay_out(operation, algorithm, groups, self.topology)
            names = [algorithm]
        elif names is None:
            names = compared(operation, groups.shape[1])
        for name in names:
            if name not in laid:
                laid[name] = attempt(operation, name, groups, self.topology)
        return {name: pattern for name in names if (pattern := laid[name]) is not None}

    def _busiest(self, pattern: Pattern) -> float:
        shares = pattern.shares()
        used = np.flatnonzero(shares)
        if not len(used):
            return 0.0
        busy = shares[used] / self.topology.capacity_bytes_per_s[used]
        return float(shares[used[np.argmax(busy)]])
