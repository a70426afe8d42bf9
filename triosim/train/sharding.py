"""Data parallelism of one stage: what is gathered before use, what is reduced, what that holds.

DDP all-reduces gradients in buckets. ZeRO-1 and 2 gather updated parameters before their first use
in a step and reduce-scatter gradients; ZeRO-3 (FSDP) gathers parameters of a unit before each pass
and gives them back after it. Under ZeRO-2 and 3 one unit's gradients may be on their way while the
next one's are made: backward waits for the reduce-scatter before, as FSDP2's does. In a pipeline
parameters stay gathered for the step and gradients are reduced after the last micro-batch, as
torchtitan does. Replicas of shards (HSDP) all-reduce theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from triosim.engine.tiling import repeat_ranges
from triosim.train.groups import Group
from triosim.train.network import Wires
from triosim.train.plan import Plan
from triosim.train.stage import Handle, Stage
from triosim.train.state import State

# Units that are gathered ahead of the one in use: FSDP2 fetches the next one, FSDP1's rate limiter
# lets two be under way.
PREFETCH = {1: 2, 2: 1}
SCATTERS = 1
GATHER, SCATTER, REDUCE = "all-gather", "reduce-scatter", "all-reduce"


class Written(NamedTuple):
    """How much has been written: lengths of lists, and what the bucket holds."""

    computed: int
    reduced: int
    at_end: int
    bucket: float
    scattered: int

    def alike(self, before: Written, after: Written) -> bool:
        """Whether as much was added since as before, and nothing that is for the step's end."""
        steps = [(a - b, b - c) for a, b, c in zip(after, self, before, strict=True)]
        return all(a == b for a, b in steps) and steps[2][0] == steps[3][0] == 0

    def then_one_pass(self, after: Written) -> bool:
        """Whether one pass has been written since and nothing else that counts."""
        return after == self._replace(computed=self.computed + 1)


class Sharding:
    """Writes the transfers of one stage and the memory that goes with them.

    `reduced` is what the optimizer waits for, `at_end` memory that the optimizer gives back.
    """

    def __init__(self, plan: Plan, stage: Stage, wires: Wires, state: State) -> None:
        self._plan = plan
        self._stage = stage
        self._wires = wires
        self._sizes = state.sizes
        self._state = state
        self._bucket = 0.0
        self._axes: dict[Group, tuple[tuple[str, int], ...]] = {}
        self._in_use: set[int] = set()
        self._sharded: set[int] = set()
        self.computed: list[Handle] = []
        self.reduced: list[Handle] = []
        self._scattered: list[Handle] = []
        self.at_end: list[tuple[str, float]] = []

    @property
    def written(self) -> Written:
        return Written(
            computed=len(self.computed),
            reduced=len(self.reduced),
            at_end=len(self.at_end),
            bucket=self._bucket,
            scattered=len(self._scattered),
        )

    def repeat(self, since: Written, length: int, times: int) -> None:
        """What was written since a point has been repeated, each time so many tasks later."""
        repeat_ranges(self.computed, since.computed, length, times)
        repeat_ranges(self.reduced, since.reduced, length, times)
        repeat_ranges(self._scattered, since.scattered, length, times)

    @property
    def active(self) -> bool:
        """Whether there is anybody to share with."""
        return self._plan.shards * self._plan.sizes["dp_replicate"] > 1

    @property
    def _late(self) -> bool:
        """Whether all gradients are reduced at once, after the last backward pass."""
        return not (self._plan.zero or self._plan.stack.overlapped_reduction)

    def reduce_late(self) -> None:
        """What no backward pass has reduced."""
        if not (self._late and self.active):
            return
        stage, size, after = self._stage.number, self._sizes.reduced, self.computed[-1]
        self._all_reduce("data", size * self._state.dense_count(stage), after)
        experts = self._state.reduced_experts(stage)
        if experts:
            self._all_reduce("expert data", size * experts, after)

    def gathers_forward(self, *, first: bool) -> bool:
        plan = self._plan
        again = plan.zero == 3 and plan.stages == 1 and not (plan.scenario.prefill and plan.kept)
        return plan.zero > 0 and (first or again)

    @property
    def gathers_backward(self) -> bool:
        return self._plan.zero == 3 and not self._plan.kept

    def reduces(self, *, last: bool) -> bool:
        plan = self._plan
        if self._late:
            return False
        return self.active and (last or (plan.zero >= 2 and plan.stages == 1))

    def gather(self, group: Group) -> list[Handle]:
        """Gather one unit as soon as few enough others are waiting to be used."""
        plan, stage = self._plan, self._stage
        chosen = plan.scenario.prefetch
        ahead = PREFETCH[plan.scenario.fsdp] if chosen is None else chosen
        ready = len(self.computed) - 1 - ahead
        earlier = [self.computed[ready]] if ready >= 0 else []
        each = group.gathered / max(1, sum(group.padded))
        handle = None
        for axis, size in self._messages(group, each):
            load = self._wires.load(GATHER, axis, stage.number, size)
            name = f"gather {group.name}"
            handle = stage.communicate(GATHER, name, "parameters", size, load, earlier)
            if plan.zero == 3 and plan.scenario.fsdp == 2:
                # The network fills one flat buffer, out of which parameters are copied.
                stage.allocate(handle, "communication", size)
                stage.free(handle, "communication", size)
        if handle is None:
            return []
        if plan.zero == 3:
            stage.allocate(handle, "gathered", group.gathered)
        return [handle]

    def used_forward(self, group: Group, handle: Handle) -> None:
        """A forward pass whose parameters were gathered has run."""
        if self._plan.zero < 3 or not self._is_gathered(group):
            return
        if self._plan.stages > 1 or (self._plan.scenario.prefill and self._plan.kept):
            self.at_end.append(("gathered", group.gathered))
        elif not self._plan.kept:
            self._stage.free(handle, "gathered", group.gathered)

    def used_backward(self, group: Group, handle: Handle, *, reduces: bool) -> None:
        """A backward pass has made the gradients of some parameters."""
        plan = self._plan
        if plan.zero == 3 and plan.stages == 1 and self._is_gathered(group):
            self._stage.free(handle, "gathered", group.gathered)
        if plan.zero >= 2 and plan.stages == 1:
            if reduces:  # until they are scattered
                self._stage.allocate(handle, "communication", plan.element_bytes * group.count)
            return
        fresh = sum(
            self._state.elements(unit) for unit in group.units if self._is_new(self._in_use, unit)
        )
        if fresh and not (plan.stack.persistent_gradients and plan.zero < 2):
            self._stage.allocate(handle, "gradients", self._sizes.gradient * fresh)
            if plan.zero < 2:
                self.at_end.append(("gradients", self._sizes.gradient * fresh))

    def reduce(self, group: Group, handle: Handle, *, at_end: bool) -> None:
        """Send a unit's gradients on their way; `at_end`: it is the stage's last one."""
        if self._plan.zero:
            self._scatter(group, handle)
            return
        self._bucket += self._sizes.reduced * group.dense
        if group.experts and self._wires.size("expert data") > 1:
            self._all_reduce("expert data", self._sizes.reduced * group.experts, handle)
        full = self._bucket >= self._plan.scenario.bucket_mb * 2**20
        if self._bucket and (at_end or full):
            self._all_reduce("data", self._bucket, handle)
            self._bucket = 0.0

    def room(self) -> list[Handle]:
        """What a backward pass waits for, so that whole gradients do not pile up."""
        if self._plan.zero < 2 or self._plan.stages > 1:
            return []
        return self._scattered[: max(0, len(self._scattered) - SCATTERS)][-1:]

    def _all_reduce(self, axis: str, size: float, after: Handle) -> None:
        load = self._wires.load(REDUCE, axis, self._stage.number, size)
        name = "reduce gradients"
        handle = self._stage.communicate(REDUCE, name, "gradients", size, load, [after])
        self.reduced.append(handle)

    def _scatter(self, group: Group, handle: Handle) -> None:
        plan, sizes, stage = self._plan, self._sizes, self._stage
        done = None
        for axis, size in self._messages(group, sizes.reduced):
            load = self._wires.load(SCATTER, axis, stage.number, size)
            name = f"reduce {group.name}"
            done = stage.communicate(SCATTER, name, "gradients", size, load, [handle])
            stage.allocate(done, "communication", size)
            stage.free(done, "communication", size)
            if plan.sizes["dp_replicate"] > 1:
                self._all_reduce("dp_replicate", size / self._wires.size(axis), done)
        if done is None:
            # One rank holds each expert: nothing to reduce, and nothing else in this unit.
            done = handle
        else:
            self.reduced.append(done)
            self._scattered.append(done)
        if plan.zero >= 2:
            self._keep_shard(group, done)

    def _keep_shard(self, group: Group, done: Handle) -> None:
        """Whole gradients end, and of each unit's first ones a shard stays until the optimizer."""
        plan, sizes, stage = self._plan, self._sizes, self._stage
        if plan.stages > 1:
            stage.free(done, "gradients", sizes.gradient * group.count)
        else:
            stage.free(done, "communication", plan.element_bytes * group.count)
        fresh = sum(
            self._state.shard(unit) for unit in group.units if self._is_new(self._sharded, unit)
        )
        if fresh and not plan.stack.persistent_gradients:
            stage.allocate(done, "gradients", sizes.gradient * fresh)
            self.at_end.append(("gradients", sizes.gradient * fresh))

    def _messages(self, group: Group, each: float) -> Iterator[tuple[str, float]]:
        """Bytes of dense parameters and of experts, by the axis that shards them."""
        return ((axis, each * count) for axis, count in self._divided(group))

    def _is_gathered(self, group: Group) -> bool:
        return bool(self._divided(group))

    def _divided(self, group: Group) -> tuple[tuple[str, int], ...]:
        """How many parameters an axis shards, for the axes with anybody to share with; padded."""
        if group not in self._axes:
            counts = zip(("shard", "expert shard"), group.padded, strict=True)
            self._axes[group] = tuple(
                (axis, count) for axis, count in counts if count and self._wires.size(axis) > 1
            )
        return self._axes[group]

    @staticmethod
    def _is_new(seen: set[int], unit: object) -> bool:
        if id(unit) in seen:
            return False
        seen.add(id(unit))
        return True
