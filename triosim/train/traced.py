"""A recorded step on the mesh: its operators by layer, with the times that the trace has.

Times and activations grow with the batch, as in TrioSim's cases. A trace does not tell how
operators divide, so that it can be spread over data parallelism and pipeline stages only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from triosim.trace.memory import Buffer, Role, find_memory
from triosim.trace.parameters import find_parameters
from triosim.train.blocks import BACKWARD, FORWARD, Blocks, Memory
from triosim.train.costs import Costs
from triosim.train.layers import find_layers
from triosim.train.network import Wires
from triosim.train.owned import Owned
from triosim.train.passes import PassWriter, Step
from triosim.train.plan import Plan, Unit
from triosim.train.recompute import ALL, NOTHING, mode_of

PART = "traced"


@dataclass(frozen=True, kw_only=True, eq=False)
class _Timed:
    """An operator that takes what the trace says."""

    name: str
    phase: str
    seconds: float

    def write(self, writer: PassWriter, costs: Costs, wires: Wires) -> None:
        writer.kernel(self.name, self.phase, self.seconds)


class TracedBlocks(Blocks):
    """The same questions as of a described model, answered by a trace."""

    def __init__(self, plan: Plan, wires: Wires) -> None:
        super().__init__(plan, wires)
        assert plan.trace is not None
        self._trace = plan.trace
        self._layers = find_layers(plan.trace)
        self._share = plan.scenario.micro_batch_size / plan.trace.batch_size

    def _modes(self, unit: Unit) -> tuple[tuple[str, str], ...]:
        mode = mode_of(self.plan.scenario.recompute, PART if unit.layer >= 0 else "", unit.layer)
        return ((f"{unit.parts[0]} {unit.layer}", mode),)

    def _place(self, unit: Unit) -> int:
        """A unit's number among the trace's layers."""
        if unit.layer >= 0:
            return unit.layer
        return -1 if unit.parts == ("embedding",) else self._layers.count

    def _steps(self, unit: Unit, kind: str) -> Iterator[Step]:
        place = self._place(unit)
        if kind == FORWARD:
            yield from self._timed(place, FORWARD, FORWARD)
            return
        if self._modes(unit)[0][1] == ALL:
            yield from self._timed(place, FORWARD, "recompute")
        yield from self._timed(place, BACKWARD, BACKWARD)

    def _timed(self, place: int, phase: str, shown: str) -> Iterator[Step]:
        for i in self._layers.operators(place, phase):
            op = self._trace.operators[i]
            if op.time_s > 0:
                yield _Timed(name=op.name, phase=shown, seconds=op.time_s * self._share)

    def _buffers(self) -> Iterator[tuple[Buffer, int, float]]:
        """Activations, where they were made or first seen, and their bytes in a micro-batch."""
        for buffer in find_memory(self._trace).buffers:
            if buffer.role == Role.ACTIVATIONS:
                size = buffer.bytes * (self._share if buffer.scales else 1.0)
                yield buffer, self._layers.of[buffer.uses[0]], size

    def _is_kept(self, buffer: Buffer) -> bool:
        phases = [self._trace.operators[i].phase for i in (buffer.uses[0], buffer.uses[-1])]
        return phases[-1] == BACKWARD and (phases[0] == FORWARD or buffer.origin == "saved")

    def _measure(self, unit: Unit) -> Memory:
        place = self._place(unit)
        own = [(b, size) for b, at, size in self._buffers() if at == place]
        kept = sum(size for b, size in own if self._is_kept(b))
        forward, backward = (
            self._peak([(b, s) for b, s in own if not self._is_kept(b)], phase)
            for phase in (FORWARD, BACKWARD)
        )
        if self._modes(unit)[0][1] != NOTHING:
            entry = min(kept, self.handed_bytes)
            kept, backward = entry, backward + kept - entry
        return Memory(kept=round(kept), forward=round(forward), backward=round(backward))

    def _peak(self, buffers: Sequence[tuple[Buffer, float]], phase: str) -> float:
        """The most alive at once of what one pass makes."""
        changes: dict[int, float] = {}
        for buffer, size in buffers:
            if self._trace.operators[buffer.uses[0]].phase == phase:
                changes[buffer.uses[0]] = changes.get(buffer.uses[0], 0.0) + size
                changes[buffer.uses[-1] + 1] = changes.get(buffer.uses[-1] + 1, 0.0) - size
        level = most = 0.0
        for at in sorted(changes):
            level += changes[at]
            most = max(most, level)
        return most

    def owned(self, unit: Unit) -> Owned:
        """The parameters that a unit's forward pass reads first."""
        place = self._place(unit)
        key = (PART, str(place))
        if key not in self._owned:
            tensors = find_parameters(self._trace).tensors
            first: dict[int, int] = {}
            for buffer in find_memory(self._trace).buffers:
                if buffer.role == Role.PARAMETERS and buffer.parameter is not None:
                    first.setdefault(buffer.parameter, self._layers.of[buffer.uses[0]])
            dense = tuple(
                t.shape or (t.numel,) for i, t in enumerate(tensors) if first.get(i, -1) == place
            )
            self._owned[key] = Owned(dense=dense, experts=())
        return self._owned[key]

    @property
    def handed_bytes(self) -> float:
        """What crosses the widest boundary between two layers."""
        crossing = [0.0] * (self._layers.count + 1)
        for buffer, at, size in self._buffers():
            reached = [
                self._layers.of[i] for i in buffer.uses if self._trace.operators[i].phase == FORWARD
            ]
            for boundary in range(at + 1, max(reached, default=at) + 1):
                crossing[boundary] += size
        return max(crossing[1:-1], default=0.0)

    def flops_again(self, unit: Unit) -> float:
        if self._modes(unit)[0][1] != ALL:
            return 0.0
        return self._flops(self._layers.operators(self._place(unit), FORWARD))

    @property
    def flops_per_sample(self) -> float:
        """What the trace counted, forward and backward; 0 where it did not."""
        both = [*self._trace.phase(FORWARD), *self._trace.phase(BACKWARD)]
        return self._flops(both) / self.plan.scenario.micro_batch_size

    def _flops(self, operators: Sequence[int]) -> float:
        return self._share * sum(self._trace.operators[i].flops or 0.0 for i in operators)
