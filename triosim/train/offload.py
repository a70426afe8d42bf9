"""Activations that wait for backward in the host's memory.

Each unit's copy leaves after its forward pass and comes back before its backward pass, over a link
of the GPU's own, beside computation and the network. One unit is fetched ahead, and forward goes on
while one copy is under way.
"""

from __future__ import annotations

from triosim.network.links import Load
from triosim.train.groups import Group
from triosim.train.plan import Plan
from triosim.train.stage import Handle, Stage

AHEAD = 1
CATEGORY = "activations"
PURPOSE = "offload"


class Offload:
    """Writes the copies of one stage. What the last part of the model keeps stays on the GPU."""

    def __init__(self, plan: Plan, stage: Stage) -> None:
        self._stage = stage
        self._bytes_per_s = plan.stack.host_gb_per_s.value * 1e9
        self._stored: dict[tuple[int, int], Handle] = {}
        self._stores: list[Handle] = []
        self.active = plan.scenario.offload

    def room(self) -> list[Handle]:
        """What a unit's forward pass waits for, so that copies do not pile up on the GPU."""
        return self._stores[: max(0, len(self._stores) - AHEAD)][-1:]

    def store(self, group: Group, microbatch: int, computed: Handle) -> None:
        size = group.held.get(CATEGORY, 0.0)
        if size:
            handle = self._copy("store", group, size, [computed])
            self._stage.free(handle, CATEGORY, size)
            self._stored[id(group), microbatch] = handle
            self._stores.append(handle)

    def fetch(self, group: Group, microbatch: int, earlier: list[Handle]) -> list[Handle]:
        """Bring a unit's activations back while the passes before its own are computed."""
        size = group.held.get(CATEGORY, 0.0)
        if not size:
            return []
        stored = self._stored.pop((id(group), microbatch))
        before = earlier[: max(0, len(earlier) - AHEAD)][-1:]
        handle = self._copy("fetch", group, size, [stored, *before])
        self._stage.allocate(handle, CATEGORY, size)
        return [handle]

    def _copy(self, phase: str, group: Group, size: float, waits: list[Handle]) -> Handle:
        load = Load(bytes_by_link=(), latency_s=size / self._bytes_per_s, sent_bytes=0.0)
        return self._stage.communicate(
            phase, f"{phase} activations of {group.name}", PURPOSE, size, load, waits
        )
