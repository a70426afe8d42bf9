"""What the collectives of a plan cost: planned once for each operation, axis, stage and size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from triosim.network.cluster import Cluster, Pending
from triosim.network.collectives.planned import AUTO, Planned, Planner
from triosim.network.links import Link, Load
from triosim.network.topology.base import Ints, one_group
from triosim.train.plan import Plan

EVERYONE = "everyone"


class Wires:
    """The groups of a plan on its topology.

    Sibling groups of a stage communicate at the same time and share links; other stages and other
    axes are taken to be silent while one pass is simulated, but not in the step's own program.
    """

    def __init__(self, plan: Plan, *, fold: bool = True) -> None:
        self._plan = plan
        self._fold = fold
        self._cluster = Cluster(plan.topology, protocol=True, fold=fold)
        self._planner = Planner.of(plan.topology)
        self._groups: dict[tuple[str, int], Ints] = {}
        self._planned: dict[tuple[str, str, int, float], Planned] = {}
        self._loads: dict[int, Load] = {}

    def __reduce__(self) -> tuple[object, ...]:
        """What has been planned is worked out again, so that a result travels light."""
        return _wires, (self._plan, self._fold)

    def groups(self, axis: str, stage: int = 0) -> Ints:
        key = (axis, stage)
        if key not in self._groups:
            everyone = axis == EVERYONE
            self._groups[key] = (
                one_group(self._plan.topology.ranks) if everyone else self._plan.groups(axis, stage)
            )
        return self._groups[key]

    def size(self, axis: str) -> int:
        """Ranks of a group."""
        return int(self.groups(axis).shape[1])

    def planned(self, operation: str, axis: str, size_bytes: float, stage: int = 0) -> Planned:
        """A collective of a stage's groups; "send" goes to the next rank, from the last to the
        first."""
        key = (operation, axis, stage, size_bytes)
        if key not in self._planned:
            groups, algorithm = self.groups(axis, stage), AUTO
            if operation == "send":
                groups = np.stack((groups.ravel(), np.roll(groups, -1, axis=1).ravel()), axis=1)
                algorithm = "direct"
            elif stage:
                # NOTE: stages lie alike; choosing among all algorithms again for each of 16 stages
                # of 1,024 ranks took a third of the whole simulation
                algorithm = self.planned(operation, axis, size_bytes).algorithm
            self._planned[key] = self._planner.plan(
                operation, groups, size_bytes, algorithm, protocol=True
            )
        return self._planned[key]

    def load(self, operation: str, axis: str, stage: int, size_bytes: float) -> Load:
        """A collective of a stage in the step's program."""
        return self._pending(self.planned(operation, axis, size_bytes, stage))

    def handover(self, source: int, target: int, size_bytes: float) -> Load:
        """Every rank of a stage sends to the rank at its place in another one."""
        ranks = self._plan.stage_ranks
        pairs = np.stack((ranks(source).ravel(), ranks(target).ravel()), axis=1)
        planned = self._planner.plan("send", pairs, size_bytes, "direct", protocol=True)
        # A pattern's share is a mean over senders and receivers; here a sender's is told.
        return replace(self._pending(planned), sent_bytes=size_bytes)

    def pairs(self, one: int, other: int, size_bytes: float) -> Load:
        """An all-reduce between each rank of a stage and the rank at its place in another one."""
        ranks = self._plan.stage_ranks
        groups = np.stack((ranks(one).ravel(), ranks(other).ravel()), axis=1)
        return self._pending(
            self._planner.plan("all-reduce", groups, size_bytes, AUTO, protocol=True)
        )

    def settle(self, loads: Sequence[Load]) -> tuple[list[Link], list[Load]]:
        """The links that some loads use, and the loads with their bytes on them."""
        different = list({id(load): load for load in loads}.values())
        links, settled = self._cluster.settle(different, 0)
        of = {id(load): done for load, done in zip(different, settled, strict=True)}
        return links, [of[id(load)] for load in loads]

    def _pending(self, planned: Planned) -> Load:
        key = id(planned)
        if key not in self._loads:
            self._loads[key] = Pending(
                bytes_by_link=(),
                latency_s=planned.latency_s,
                sent_bytes=planned.pattern.sent_share * planned.size_bytes,
                planned=planned,
            )
        return self._loads[key]


def _wires(plan: Plan, fold: bool) -> Wires:
    return Wires(plan, fold=fold)
