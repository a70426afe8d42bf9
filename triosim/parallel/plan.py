"""How a step is spread over GPUs: the input of every parallelism."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from triosim.engine.program import Program, RankClass
from triosim.network.interconnect import Wire
from triosim.parallel.rank import RankWriter
from triosim.parallel.residency import plan_residency
from triosim.parallel.work import Work
from triosim.trace.model import Trace


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """One step of `trace` on `gpus` GPUs; sizes in bytes, times in seconds.

    `batch_sizes` are the micro-batches (or the accumulated batches) that one step runs. `speeds`
    names the ranks that are not at full speed. `wire` is the GPU-to-GPU link technology as one link
    of the layout sees it.
    """

    trace: Trace
    gpus: int
    batch_sizes: tuple[int, ...]
    wire: Wire
    remote_bytes_per_s: float
    capacity_bytes: int
    resident: bool = False
    bucket_bytes: float = 25 * 2**20
    schedule: str = "gpipe"
    stage_cut: str = "time"
    speeds: Mapping[int, float] = field(default_factory=dict)
    fold: bool = True

    def rank_classes(self) -> list[RankClass]:
        """Ranks of equal speed behave alike; unfolded, every rank is its own class."""
        if not self.fold:
            return [
                RankClass(members=(rank,), speed=self.speeds.get(rank, 1.0))
                for rank in range(self.gpus)
            ]
        speed = np.ones(self.gpus)
        speed[list(self.speeds)] = list(self.speeds.values())
        distinct, first, of_rank = np.unique(speed, return_index=True, return_inverse=True)
        if len(distinct) == 1:
            return [RankClass(members=range(self.gpus), speed=float(distinct[0]))]
        return [
            RankClass(members=np.flatnonzero(of_rank == k).tolist(), speed=float(distinct[k]))
            for k in np.argsort(first).tolist()
        ]

    def batch_share(self, copy: int) -> float:
        """One of the batches as a part of the trace's."""
        return self.batch_sizes[copy] / self.trace.batch_size

    def writers(self, program: Program, work: Work) -> list[RankWriter]:
        """One writer per rank class; every class does the same work."""
        residency = plan_residency(work, self.capacity_bytes, resident=self.resident)
        return [
            RankWriter(program, rank_class, work, residency, self.remote_bytes_per_s)
            for rank_class in self.rank_classes()
        ]


@dataclass(frozen=True, slots=True)
class Split:
    """A trace's operators before and after the last backward operator.

    What stands after it (the optimizer) runs once a step and needs every gradient.
    """

    before: Sequence[int]
    after: Sequence[int]


def split_step(trace: Trace) -> Split:
    passes = [i for i, op in enumerate(trace.operators) if op.phase != "optimizer"]
    backward = trace.phase("backward")
    last = backward[-1] if backward else (passes[-1] if passes else -1)
    count = len(trace.operators)
    return Split(before=range(last + 1), after=range(last + 1, count))
