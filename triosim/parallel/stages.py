"""Cut a trace into pipeline stages: which operators each runs, and what crosses each cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise

import numpy as np

from triosim.errors import ConfigError, counted
from triosim.trace.memory import Buffer, Origin, find_memory
from triosim.trace.model import Trace
from triosim.trace.parameters import find_parameters
from triosim.trace.partners import find_partners


@dataclass(frozen=True, kw_only=True, eq=False)
class Stages:
    """Operators of each stage, in trace order, by phase.

    `optimizer_share[s]` is the part of every optimizer operator that stage s runs, None where whole
    operators were dealt out (`optimizer[s]`).
    """

    trace: Trace
    forward: Sequence[Sequence[int]]
    backward: Sequence[Sequence[int]]
    optimizer: Sequence[Sequence[int]]
    optimizer_share: Sequence[float] | None

    @property
    def count(self) -> int:
        return len(self.forward)

    @cached_property
    def stage_of(self) -> dict[int, int]:
        """The stage that runs each forward and backward operator."""
        return {
            i: stage
            for phase in (self.forward, self.backward)
            for stage, operators in enumerate(phase)
            for i in operators
        }

    @cached_property
    def owner(self) -> dict[int, int]:
        """The stage that holds each trained parameter: the one that reads it first."""
        index = find_parameters(self.trace).index
        owner: dict[int, int] = {}
        for stage, operators in enumerate(self.forward):
            for i in operators:
                for tensor in self.trace.operators[i].inputs:
                    if tensor.id in index:
                        owner.setdefault(index[tensor.id], stage)
        return owner

    @cached_property
    def crossings(self) -> tuple[list[dict[int, None]], list[dict[int, None]]]:
        """Buffers that cross each cut: (with forward, with backward); cut i lies before stage i+1.

        Whatever is made on one side of a cut and used on the other crosses it, and every cut in
        between. Tensors from remote memory do not: each stage fetches its own.
        """
        forward: list[dict[int, None]] = [{} for _ in range(self.count - 1)]
        backward: list[dict[int, None]] = [{} for _ in range(self.count - 1)]
        memory = find_memory(self.trace)
        for buffer in memory.buffers:
            if buffer.origin is Origin.EXISTING or buffer.bytes == 0:
                continue
            where = [self.stage_of[use] for use in buffer.uses if use in self.stage_of]
            made = self.home(buffer)
            if not where or made is None:
                continue
            phase = self.trace.operators[buffer.uses[0]].phase
            if phase == "forward" or buffer.origin is Origin.SAVED:
                for cut in range(made, max(where)):
                    forward[cut][buffer.index] = None
            for cut in range(min(where), made):
                backward[cut][buffer.index] = None
        return forward, backward

    def home(self, buffer: Buffer) -> int | None:
        """The stage that makes a buffer; what only backward names was made by its partner."""
        first = buffer.uses[0]
        if buffer.origin is Origin.SAVED:
            first = find_partners(self.trace).get(first, first)
        return self.stage_of.get(first)

    def sent_bytes(self, cut: int, phase: str) -> float:
        """Bytes that one batch of the trace's size moves over a cut."""
        crossing = self.crossings[0 if phase == "forward" else 1][cut]
        memory = find_memory(self.trace)
        return float(sum(memory.buffers[b].bytes for b in crossing))


@dataclass(frozen=True, kw_only=True, eq=False)
class CountedStages(Stages):
    """TrioSim's cut: only the outputs of the operator before the cut move."""

    def sent_bytes(self, cut: int, phase: str) -> float:
        if phase == "forward":
            return self._output_bytes(self.forward[cut])
        ends_in_backward = not self.optimizer[cut + 1]
        return self._output_bytes(self.backward[cut + 1]) if ends_in_backward else 0.0

    def optimizer_bytes(self, cut: int) -> float:
        """What moves over a cut between two optimizer operators."""
        return self._output_bytes(self.optimizer[cut + 1])

    def _output_bytes(self, operators: Sequence[int]) -> float:
        if not operators:
            return 0.0
        return float(sum(t.bytes for t in self.trace.operators[operators[-1]].outputs))


@lru_cache(maxsize=64)
def cut_stages(trace: Trace, stages: int, rule: str) -> Stages:
    """Cut by "time" (the largest stage is as small as possible) or by "count" (as TrioSim)."""
    check_stages(trace, stages)
    return _by_count(trace, stages) if rule == "count" else _by_time(trace, stages)


def check_stages(trace: Trace, stages: int) -> None:
    """Raises `ConfigError` on the number of GPUs where not every stage gets an operator."""
    forward = trace.phase("forward")
    if stages > len(forward):
        raise ConfigError(
            "gpus",
            stages,
            f"case 4 needs a forward operator for every stage and the trace has {len(forward)}; "
            f"use at most {counted(len(forward), 'GPU')}"
            if forward
            else "case 4 needs forward operators and the trace has none",
        )


def _by_count(trace: Trace, stages: int) -> Stages:
    forward = trace.phase("forward")
    rest = [*trace.phase("backward"), *trace.phase("optimizer")]
    is_backward = set(trace.phase("backward"))
    parts = _deal(rest, stages)[::-1]
    return CountedStages(
        trace=trace,
        forward=_deal(forward, stages),
        backward=[[i for i in part if i in is_backward] for part in parts],
        optimizer=[[i for i in part if i not in is_backward] for part in parts],
        optimizer_share=None,
    )


def _deal(items: Sequence[int], parts: int) -> list[list[int]]:
    cuts = [len(items) * i // parts for i in range(parts + 1)]
    return [list(items[a:b]) for a, b in pairwise(cuts)]


def _by_time(trace: Trace, stages: int) -> Stages:
    forward = trace.phase("forward")
    partners = find_partners(trace)
    seconds = {i: trace.operators[i].time_s for i in forward}
    for i, partner in partners.items():
        seconds[partner] += trace.operators[i].time_s
    cuts = smallest_maximum([seconds[i] for i in forward], stages)
    parts = [forward[a:b] for a, b in pairwise(cuts)]
    stage_of = {i: stage for stage, part in enumerate(parts) for i in part}
    backward: list[list[int]] = [[] for _ in parts]
    for i, partner in partners.items():
        backward[stage_of[partner]].append(i)
    optimizer = trace.phase("optimizer")
    result = Stages(
        trace=trace,
        forward=parts,
        backward=backward,
        optimizer=[optimizer] * stages,
        optimizer_share=[1 / stages] * stages,
    )
    parameters = find_parameters(trace)
    if not parameters.bytes:
        return result
    owned = [0] * stages
    for parameter, stage in result.owner.items():
        owned[stage] += parameters.tensors[parameter].bytes
    return Stages(
        trace=trace,
        forward=parts,
        backward=backward,
        optimizer=result.optimizer,
        optimizer_share=[part / parameters.bytes for part in owned],
    )


def smallest_maximum(costs: Sequence[float], parts: int) -> list[int]:
    """Cut points (0, ..., len) of the contiguous partition whose largest part is smallest.

    No part is empty. Bisection on the largest part, each trial a greedy packing.
    """
    sums = np.array([0.0, *accumulate(costs)])
    low, high = max(max(costs), sums[-1] / parts), float(sums[-1])
    for _ in range(100):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if len(_pack(sums, middle)) - 1 <= parts:
            high = middle
        else:
            low = middle
    bound = low if len(_pack(sums, low)) - 1 <= parts else high
    cuts = _pack(sums, bound)
    return _split_further(cuts, sums, parts)


def _pack(sums: np.ndarray, bound: float) -> list[int]:
    """Greedy cut points with every part at most `bound` (up to rounding)."""
    cuts = [0]
    while cuts[-1] < len(sums) - 1:
        limit = (sums[cuts[-1]] + bound) * (1 + 1e-12)
        cuts.append(max(cuts[-1] + 1, int(np.searchsorted(sums, limit, side="right")) - 1))
    return cuts


def _split_further(cuts: list[int], sums: np.ndarray, parts: int) -> list[int]:
    """Use every part: halve the largest part that has more than one element."""
    while len(cuts) - 1 < parts:
        spans = [(sums[b] - sums[a], a, b) for a, b in pairwise(cuts) if b - a > 1]
        _, a, b = max(spans)
        middle = int(np.searchsorted(sums, (sums[a] + sums[b]) / 2))
        cuts = sorted([*cuts, min(max(middle, a + 1), b - 1)])
    return cuts
