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
from triosim.network.topology.base import Floats, Ints, Topology

AUTO = "auto"
KEPT_TOPOLOGIES, KEPT_NUMBERS = 2, 6_000_000  # up to 48 MB of patterns on each


@dataclass(frozen=True, kw_only=True, eq=False)
class Planned:
    """One collective of a size on a topology, in each of some groups: shape (groups, members).

    `candidates_s` are the times of all algorithms compared ("auto"); `why` says in a sentence what
    decided. The pattern's links can carry `capacity_bytes_per_s`.
    """

    operation: str
    algorithm: str
    size_bytes: float
    groups: Ints
    pattern: Pattern
    cost: Cost
    why: str
    candidates_s: Mapping[str, float]
    capacity_bytes_per_s: Floats

    @property
    def group_size(self) -> int:
        return int(self.groups.shape[1])

    @property
    def latency_s(self) -> float:
        return self.cost.latency_s

    @property
    def time_s(self) -> float:
        """The time on an otherwise idle network."""
        return self.cost.time_s(self.pattern, self.size_bytes)

    @property
    def busiest_share(self) -> float:
        """The share of the array that passes the link that is busy longest."""
        shares = self.pattern.shares()
        used = np.flatnonzero(shares)
        if not len(used):
            return 0.0
        busy = shares[used] / self.capacity_bytes_per_s[used]
        return float(shares[used[np.argmax(busy)]])


class Planner:
    """Plans collectives on one topology; each operation on the same groups is laid out once."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self._library = Library(topology)
        # None for what cannot be done on this topology.
        self._patterns: dict[tuple[object, ...], dict[str, Pattern | None]] = {}
        self._numbers = 0

    @classmethod
    def of(cls, topology: Topology) -> Planner:
        """The topology's planner with what it has laid out for earlier steps.

        The last two are kept, as long as they are small.
        """
        planner = _kept.pop(topology, None) or cls(topology)
        _kept[topology] = planner
        for other in list(_kept)[:-KEPT_TOPOLOGIES]:
            _kept.pop(other, None)
        return planner

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
            groups=groups,
            pattern=choice.pattern,
            cost=costs[id(choice.pattern)],
            why=choice.why,
            candidates_s=choice.times_s,
            capacity_bytes_per_s=self.topology.capacity_bytes_per_s,
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
            names = [algorithm]
            if laid.get(algorithm) is None:
                made = lay_out(operation, algorithm, groups, self.topology)
                self._add(laid, algorithm, groups, made)
        elif names is None:
            names = compared(operation, groups.shape[1])
        for name in names:
            if name not in laid:
                self._add(laid, name, groups, attempt(operation, name, groups, self.topology))
        return {name: pattern for name in names if (pattern := laid[name]) is not None}

    def _add(
        self, laid: dict[str, Pattern | None], name: str, groups: Ints, pattern: Pattern | None
    ) -> None:
        """Note a pattern; a planner that has grown large is not kept for later steps."""
        laid[name] = pattern
        for phase in pattern.phases if pattern is not None else ():
            self._numbers += 2 * (len(phase.links) + groups.size * len(phase.moves))
        if self._numbers > KEPT_NUMBERS:
            _kept.pop(self.topology, None)


_kept: dict[Topology, Planner] = {}
