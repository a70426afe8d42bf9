"""A training plan: model, mesh, groups, what each pipeline stage holds, micro-batches.

Mesh axes from outermost to innermost are pp, dp_replicate, dp_shard, cp, tp, as torchtitan numbers
ranks; parameters are sharded over dp_shard x cp, of experts over what ep leaves of that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd, lcm

import numpy as np

from triosim.hardware import Gpu
from triosim.hardware.stacks import Stack
from triosim.mesh import DeviceMesh
from triosim.network.topology.base import Ints, Topology
from triosim.schedules import Schedule
from triosim.trace import Trace
from triosim.train.scenario import TrainScenario
from triosim.workload import Layout, Transformer

COMPUTED_IN: Mapping[str, str] = {
    "fp32": "fp32", "tf32": "tf32", "bf16": "bf16", "fp16": "fp16", "fp8-tensorwise": "bf16",
    "fp8-rowwise": "bf16",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Unit:
    """What is gathered and given back at once: a layer, the embedding, or the end of the model.

    `parts` are names of `triosim.workload.PARTS`; `layer` is the layer's number, -1 for none.
    """

    parts: tuple[str, ...]
    layer: int

    @property
    def name(self) -> str:
        return f"layer {self.layer}" if self.layer >= 0 else " + ".join(self.parts)


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """Everything that the step's program is written from.

    `sizes` has the mesh's axes with what -1 stood for, and ep; `virtual_stages[k]` are the units of
    the k-th part of the model; `seq` are the tokens of a sample. With a `trace`, `model` has only
    its name and number of layers. `machine` is what a person calls it.
    """

    scenario: TrainScenario
    model: Transformer
    gpu: Gpu
    stack: Stack
    machine: str
    topology: Topology
    mesh: DeviceMesh
    sizes: Mapping[str, int]
    zero: int
    microbatches: int
    global_batch: int
    schedule: Schedule
    virtual_stages: tuple[tuple[Unit, ...], ...]
    layout: Layout
    seq: int
    trace: Trace | None = None

    @cached_property
    def provenance(self) -> Mapping[str, float]:
        """Shares of the computing time by where it is from."""
        if self.trace is None:
            return {"roofline": 1.0}
        sums: dict[str, float] = {}
        for op in self.trace.operators:
            sums[op.provenance] = sums.get(op.provenance, 0.0) + op.time_s
        total = sum(sums.values()) or 1.0
        return {kind: seconds / total for kind, seconds in sums.items()}

    @property
    def dtype(self) -> str:
        """The type of activations and of everything but scaled products."""
        return COMPUTED_IN[self.scenario.precision]

    @property
    def fp8(self) -> bool:
        return self.scenario.precision.startswith("fp8")

    @property
    def element_bytes(self) -> int:
        return 4 if self.dtype in ("fp32", "tf32") else 2

    @property
    def fused(self) -> bool:
        """Whether kernels are those that torch.compile fuses.

        Stacks with kernels fused by hand keep them. A backward pass whose weight gradients wait is
        no graph of its own: it has the kernels that the stack assumes.
        """
        by_hand = self.stack.compiled_implementation == self.stack.implementation
        whole = self.trace is None and not any(self.schedule.split)
        return self.scenario.compiled and not by_hand and whole

    @property
    def implementation(self) -> str:
        """What blocks are built as; torch.compile fuses the one that runs eagerly."""
        stack = self.stack
        assumed = self.scenario.compiled and not self.fused
        return stack.compiled_implementation if assumed else stack.implementation

    @property
    def stages(self) -> int:
        return self.sizes["pp"]

    @property
    def shards(self) -> int:
        """Ranks that share parameters, gradients or state."""
        return self.sizes["dp_shard"] * self.sizes["cp"]

    @property
    def samples_per_rank(self) -> int:
        """Sequences that one data-parallel rank sees in a step."""
        return self.scenario.micro_batch_size * self.microbatches

    @property
    def in_tokens(self) -> bool:
        """Whether a sample has tokens: a recorded step that names none may be of pictures."""
        return self.trace is None or self.seq > 1

    @property
    def tokens(self) -> int:
        """Tokens of a step over all ranks."""
        return self.global_batch * self.seq

    @property
    def kept(self) -> bool:
        """Under ZeRO-3, whether parameters stay gathered until a micro-batch's backward has run."""
        return self.stages > 1 or not self.scenario.reshard

    @property
    def contiguous(self) -> bool:
        """Whether a ring's ranks hold contiguous parts of a sequence, with uneven causal work."""
        return self.scenario.context in ("ring", "ring-pass-q")

    @property
    def passes_queries(self) -> bool:
        """Whether queries go round a ring, instead of keys and values."""
        return self.scenario.context.endswith("pass-q")

    @property
    def rings_in_turn(self) -> bool:
        """Whether a ring's transfers and computation take turns, as the stack has it."""
        return (
            self.stack.ring_in_turn and "ring" in self.scenario.context and not self.passes_queries
        )

    @cached_property
    def ulysses(self) -> int:
        """Over how many context-parallel ranks heads are divided; a ring runs over the rest."""
        cp, context = self.sizes["cp"], self.scenario.context
        if context == "ulysses":
            return cp
        if context != "ulysses-ring":
            return 1
        return gcd(cp, gcd(self.model.heads, self.model.groups) // self.sizes["tp"] or 1)

    def stage_ranks(self, stage: int) -> Ints:
        """The ranks of a stage: shape (dp_replicate, dp_shard, cp, tp)."""
        ranks: Ints = self.mesh.ranks[stage]
        return ranks

    def groups(self, axis: str, stage: int = 0) -> Ints:
        """The groups of one stage along an axis: shape (groups, members).

        Axes are those of the mesh, "shard" (dp_shard x cp), "data" (and dp_replicate), "block"
        (all that communicate inside a layer), "ep", "expert shard" and "expert data" (what is left
        for one expert), "ulysses" and, over what that leaves of cp, "ring".
        """
        return _groups(self, axis, stage)

    def units(self, stage: int) -> list[Unit]:
        """All that a stage holds, over all of its chunks."""
        return [
            unit
            for route in self.schedule.routes
            for k, place in enumerate(route)
            if place.stage == stage
            for unit in self.virtual_stages[k]
        ]


def _groups(plan: Plan, axis: str, stage: int) -> Ints:
    ranks = plan.stage_ranks(stage)  # (dp_replicate, dp_shard, cp, tp)
    if axis in ("ulysses", "ring"):
        cp = plan.sizes["cp"]
        ways = plan.ulysses
        split = ranks.reshape(*ranks.shape[:2], cp // ways, ways, ranks.shape[3])
        return _along(split, (3,) if axis == "ulysses" else (2,))
    if axis in ("ep", "expert shard", "expert data"):
        ep = plan.sizes["ep"]
        split = ranks.reshape(ranks.shape[0], plan.shards // ep, ep, ranks.shape[3])
        return _along(split, {"ep": (2,), "expert shard": (1,), "expert data": (0, 1)}[axis])
    if axis == "block":
        together = lcm(plan.sizes["cp"], plan.sizes["ep"])
        split = ranks.reshape(ranks.shape[0], -1, together, ranks.shape[3])
        return _along(split, (2, 3))
    axes: Mapping[str, Sequence[int]] = {
        "dp_replicate": (0,), "dp_shard": (1,), "cp": (2,), "tp": (3,), "shard": (1, 2),
        "data": (0, 1, 2),
    }  # fmt: skip
    return _along(ranks, axes[axis])


def _along(ranks: Ints, axes: Sequence[int]) -> Ints:
    others = [axis for axis in range(ranks.ndim) if axis not in axes]
    members = int(np.prod([ranks.shape[axis] for axis in axes]))
    return np.ascontiguousarray(ranks.transpose([*others, *axes]).reshape(-1, members))
