"""GPUs on a topology: what collectives and transfers between them ask of its links.

While a program is written the cluster hands out `Pending` loads. Which links are loaded alike shows
only when all of them are known; `settle` then makes the links and puts each load's bytes on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from triosim.network.collectives.pattern import Pattern
from triosim.network.collectives.planned import AUTO, Planned, Planner
from triosim.network.fold import LinkClasses, classes_of
from triosim.network.links import Link, Load
from triosim.network.topology.base import Ints, Topology, one_group


@dataclass(frozen=True, kw_only=True, slots=True)
class Pending(Load):
    """A load whose links are not numbered yet: `planned` on the cluster's topology."""

    planned: Planned


@dataclass(frozen=True, kw_only=True, slots=True)
class Carried(Load):
    """A load on numbered links, and what carries it; `protocol` is None for ideal links.

    `groups` are the ranks that take part, shape (groups, members); of a send source and target.
    """

    operation: str
    groups: Ints = field(compare=False)
    algorithm: str
    protocol: str | None


class Cluster:
    """The GPUs of one job on a topology.

    `algorithm` is a name or "auto", the cheapest for each size. `protocol` adds the calibrated
    protocol costs of the topology's links. Without `fold` every link stands for itself.
    """

    def __init__(
        self, topology: Topology, *, algorithm: str = AUTO, protocol: bool, fold: bool = True
    ) -> None:
        self.topology = topology
        self._algorithm = algorithm
        self._planner = Planner.of(topology)
        self._protocol = protocol
        self._fold = fold
        self._everyone = one_group(topology.ranks)
        self.links: Sequence[Link] = ()

    def all_reduce(self, size_bytes: float) -> Load:
        """All-reduce of an array of that size over all ranks."""
        return self.collective("all-reduce", self._everyone, size_bytes)

    def send(self, source: int, target: int, size_bytes: float) -> Load:
        """A transfer from one rank to another."""
        pair = np.array([[source, target]], dtype=np.int64)
        return self.collective("send", pair, size_bytes)

    def collective(self, operation: str, groups: Ints, size_bytes: float) -> Load:
        """An operation on every group at once; `size_bytes` is the full array of one group."""
        algorithm = "direct" if operation == "send" else self._algorithm
        planned = self._planner.plan(
            operation, groups, size_bytes, algorithm, protocol=self._protocol
        )
        return Pending(
            bytes_by_link=(),
            latency_s=planned.latency_s,
            # Of two ranks only one sends; elsewhere the pattern's mean over ranks is each one's.
            sent_bytes=size_bytes * (1.0 if operation == "send" else planned.pattern.sent_share),
            planned=planned,
        )

    def settle(self, loads: Sequence[Load], first: int) -> tuple[list[Link], list[Load]]:
        """The links, to be numbered from `first`, and the loads with their bytes on them."""
        patterns = {
            id(load.planned.pattern): load.planned.pattern
            for load in loads
            if isinstance(load, Pending)
        }
        phases = [phase for pattern in patterns.values() for phase in pattern.phases]
        classes = classes_of(phases, self.topology.capacity_bytes_per_s, fold=self._fold)
        spread = _Spread(patterns, classes, first)
        # NOTE: all ends at once: a topology of 16,384 GPUs takes 0.2 ms to tell them
        ends = np.stack(self.topology.ends())[:, classes.first].T.tolist()
        links = [
            self._link(*found)
            for found in zip(classes.first.tolist(), classes.members.tolist(), ends, strict=True)
        ]
        settled = [spread.load(k) if isinstance(k, Pending) else k for k in loads]
        return links, settled

    def _link(self, link: int, members: int, ends: Sequence[int]) -> Link:
        source, target = ends
        name = f"{self.topology.node_name(source)} to {self.topology.node_name(target)}"
        return Link(
            name=name if members == 1 else f"{name} and {members - 1:,} like it",
            bytes_per_s=float(self.topology.capacity_bytes_per_s[link]),
            source=source,
            target=target,
            members=members,
        )


class _Spread:
    """Turns planned collectives into bytes on link classes."""

    def __init__(self, patterns: dict[int, Pattern], classes: LinkClasses, first: int) -> None:
        self._shares: dict[int, list[list[tuple[int, float]]]] = {}
        of_phase = iter(classes.of_phase)
        for key, pattern in patterns.items():
            self._shares[key] = []
            for _ in pattern.phases:
                links, share = next(of_phase)
                pairs = zip((links + first).tolist(), share.tolist(), strict=True)
                self._shares[key].append(list(pairs))

    def load(self, pending: Pending) -> Load:
        planned = pending.planned
        pattern, cost, size = planned.pattern, planned.cost, planned.size_bytes
        parts = [
            Load(
                bytes_by_link=tuple((link, share * factor * size) for link, share in shares),
                latency_s=latency_s,
                sent_bytes=0.0,
            )
            for shares, factor, latency_s in zip(
                self._shares[id(pattern)], cost.factors, cost.latencies_s, strict=True
            )
        ]
        return Carried(
            bytes_by_link=parts[0].bytes_by_link if parts else (),
            latency_s=parts[0].latency_s if parts else 0.0,
            sent_bytes=pending.sent_bytes,
            then=tuple(parts[1:]),
            operation=planned.operation,
            groups=planned.groups,
            algorithm=planned.algorithm,
            protocol=cost.protocol,
        )
