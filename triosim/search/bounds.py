"""What a plan cannot undercut, without simulating it: time and memory.

Time: a stage computes all its passes one after the other, begins when its first micro-batch has
come through the stages before it, and its last gradient goes back through them before the step
ends. Waits, optimizer, transfers of parameters and gradients, and the slow-down beside them come on
top in the simulation, so that no step is shorter.

Memory: what is there over the whole step, and the activations of the micro-batches that the order
of the schedule has in flight at once. Buffers come on top.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import lcm

import numpy as np

from triosim.mesh import training_mesh
from triosim.network.topology.base import LinkSpec
from triosim.network.topology.describe import topology_of
from triosim.network.topology.tiered import Tiered
from triosim.search.orders import Order, Passes, orders_of
from triosim.train.blocks import FORWARD, Blocks
from triosim.train.network import Wires
from triosim.train.plan import Plan, Unit
from triosim.train.scenario import layer_period
from triosim.train.state import State

Key = tuple[object, ...]
Passed = dict[Key, tuple[float, float]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Bound:
    """Least seconds of a step.

    Of the stage that takes longest, `busy_s` is what its own passes take, and `sent_s` what of that
    are transfers between tensor- and context-parallel ranks; `mean_busy_s` is over all stages.
    """

    seconds: float
    busy_s: float
    mean_busy_s: float
    sent_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Held:
    """Least bytes of the fullest rank, and its stage."""

    bytes: float
    stage: int


class Bounds:
    """Bounds of many plans of one model, whose ranks all run at full speed.

    What plans have in common is worked out once.
    """

    def __init__(self) -> None:
        self._orders: dict[Key, list[Order]] = {}
        self._alike: dict[Key, Alike] = {}
        self._forward: dict[Key, Passed] = {}

    def held(self, plan: Plan) -> Held:
        """Memory alone, which is quick."""
        alike = self._alike_of(plan)
        state = State(Blocks(plan, Wires(plan)))
        keeps = not (plan.scenario.offload or plan.scenario.prefill)
        kept = [
            sum(n * alike.kept(unit) for unit, n in _distinct(plan, units)) if keeps else 0
            for units in plan.virtual_stages
        ]
        resident: dict[Key, int] = {}
        most, fullest = 0.0, 0
        for stage, order in enumerate(self._orders_of(plan)):
            made_of = tuple(Counter(unit.parts for unit in plan.units(stage)).items())
            if made_of not in resident:
                resident[made_of] = sum(state.resident(stage).values())
            flying = max(sum(n * kept[part] for (_, part), n in one.items()) for one in order.held)
            if resident[made_of] + flying > most:
                most, fullest = resident[made_of] + flying, stage
        return Held(bytes=most, stage=fullest)

    def time(self, plan: Plan) -> Bound:
        """The least time of a step."""
        alike = self._alike_of(plan)
        orders = self._orders_of(plan)
        together = plan.scenario.optimizer_sync == "global" or plan.stages == 1
        # In a pair, what one of them sends may hide behind what the other computes.
        paired = any(order.paired for order in orders)
        known: dict[tuple[str, int], tuple[float, float]] = {}

        def total(passes: Passes) -> tuple[float, float]:
            seconds = sent = 0.0
            for (kind, part), count in passes.items():
                if (kind, part) not in known:
                    known[kind, part] = alike.part(plan, kind, plan.virtual_stages[part])
                alone_s, inside_s = known[kind, part]
                seconds += count * (alone_s - inside_s if paired else alone_s)
                sent += 0.0 if paired else count * inside_s
            return seconds, sent

        longest = all_busy = busy_there = sent_there = 0.0
        for order in orders:
            passes = _forward_only(order.passes) if plan.scenario.prefill else order.passes
            busy, sent = total(passes)
            seconds = busy
            if together:
                seconds += total(order.before)[0]
                seconds += 0.0 if plan.scenario.prefill else total(order.after)[0]
            all_busy += busy
            if seconds > longest:
                longest, busy_there, sent_there = seconds, busy, sent
        return Bound(
            seconds=longest,
            busy_s=busy_there,
            mean_busy_s=all_busy / len(orders),
            sent_s=sent_there,
        )

    def _orders_of(self, plan: Plan) -> list[Order]:
        schedule = plan.schedule
        key = schedule.name, schedule.stages, schedule.microbatches, schedule.chunks
        if plan.scenario.grid is not None:
            return orders_of(schedule)
        if key not in self._orders:
            self._orders[key] = orders_of(schedule)
        return self._orders[key]

    def _alike_of(self, plan: Plan) -> Alike:
        """What plans share whose ranks do the same inside a layer."""
        scenario, sizes = plan.scenario, plan.sizes
        forward = (
            sizes["tp"], sizes["cp"], sizes["ep"], scenario.micro_batch_size, scenario.context,
            plan.implementation, plan.fused, plan.layout,
            () if isinstance(plan.topology, Tiered) else tuple(sizes.values()),
        )  # fmt: skip
        key = (forward, scenario.recompute)
        if key not in self._alike:
            # What runs again belongs to backward: forward passes are the same in all modes.
            passed = self._forward.setdefault(forward, {})
            self._alike[key] = Alike(alone(plan), passed)
        return self._alike[key]


class Alike:
    """Passes and activations of the units of a model on one rank."""

    def __init__(self, plan: Plan, forward: Passed) -> None:
        self._blocks = Blocks(plan, Wires(plan))
        self._forward = forward
        self._passes: Passed = {}
        self._kept: dict[Key, int] = {}

    def part(self, plan: Plan, kind: str, units: Sequence[Unit]) -> tuple[float, float]:
        """Seconds of a pass through a part of the model without copies, and of what it sends."""
        seconds = sent = 0.0
        for unit, count in _distinct(plan, units):
            one = self._pass(unit, kind)
            seconds += count * one[0]
            sent += count * one[1]
        return seconds, sent

    def _pass(self, unit: Unit, kind: str) -> tuple[float, float]:
        passed = self._forward if kind == FORWARD else self._passes
        key = (unit.parts, kind) if kind == FORWARD else (unit, kind)
        if key not in passed:
            made = self._blocks.simulate(unit, kind)
            sent = sum(part.seconds for part in made.parts if part.kind != "compute")
            passed[key] = made.seconds, sent
        return passed[key]

    def kept(self, unit: Unit) -> int:
        """Bytes that a unit keeps of a micro-batch from forward to backward."""
        key = (unit,)
        if key not in self._kept:
            self._kept[key] = self._blocks.memory(unit).kept
        return self._kept[key]


def alone(plan: Plan) -> Plan:
    """The plan on one group of ranks that communicate inside a layer, without all others.

    Neighbours share links and do not make them faster, so that its passes are not longer. Where
    links follow from the number of GPUs, as in grids, all of them stay.
    """
    topology = plan.topology
    if isinstance(topology, Tiered):
        together = lcm(plan.sizes["cp"], plan.sizes["ep"])
        sizes = {**plan.sizes, "dp_replicate": 1, "dp_shard": together // plan.sizes["cp"], "pp": 1}
        count = together * plan.sizes["tp"]
        mesh = training_mesh(count, cp=sizes["cp"], tp=sizes["tp"])
        link = LinkSpec(bytes_per_s=plan.gpu.link_bytes_per_s)
        return replace(
            plan,
            mesh=mesh,
            sizes=sizes,
            topology=topology_of(plan.scenario.machine or plan.machine, count, link),
        )
    return plan


def _distinct(plan: Plan, units: Sequence[Unit]) -> Iterator[tuple[Unit, int]]:
    """Units that are alike once, with their number."""
    by_layer = bool(layer_period(plan.scenario.recompute))
    counts: Counter[object] = Counter()
    first: dict[object, Unit] = {}
    for unit in units:
        key = unit if by_layer else unit.parts
        counts[key] += 1
        first.setdefault(key, unit)
    return ((first[key], count) for key, count in counts.items())


def within_a_host(plan: Plan) -> bool:
    together = plan.sizes["tp"] * plan.sizes["cp"]
    tiers = plan.topology.units(np.arange(plan.scenario.gpus))
    if not tiers:  # all are equally near
        return True
    hosts = tiers[0].reshape(-1, together)
    return bool((hosts == hosts[:, :1]).all())


def _forward_only(passes: Passes) -> Mapping[tuple[str, int], int]:
    return {one: count for one, count in passes.items() if one[0] == FORWARD}
