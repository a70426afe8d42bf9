"""The end of a step: gradients that two stages share, their norm, and the optimizer."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from triosim.engine.program import Part, Program
from triosim.train.network import EVERYONE
from triosim.train.plan import Plan
from triosim.train.sharding import REDUCE, Sharding
from triosim.train.stage import Handle, Stage
from triosim.train.state import State

SCALAR_BYTES = 4.0
COPIES = "add up copies"


class Update:
    """Writes the optimizer of all stages, once their passes are written."""

    def __init__(
        self,
        plan: Plan,
        program: Program,
        stages: Sequence[Stage],
        sharding: Sequence[Sharding],
        state: State,
    ) -> None:
        self._plan = plan
        self._program = program
        self._stages = stages
        self._sharding = sharding
        self._state = state

    def write(self) -> None:
        """Clip and update; under "global" not before every stage has its gradients."""
        for own in self._sharding:
            own.reduce_late()
        waits = [[own.computed[-1], *own.reduced] for own in self._sharding]
        self._add_copies(waits)
        if self._plan.scenario.optimizer_sync == "global" and self._plan.scenario.gpus > 1:
            waits = self._norm(waits)
        for stage, before, sharding in zip(self._stages, waits, self._sharding, strict=True):
            seconds = self._state.optimizer_s(stage.number)
            parts = (Part("compute", ("optimizer", ""), seconds),)
            handle = stage.compose("optimizer", "optimizer", parts, before)
            for category, size in sharding.at_end:
                stage.free(handle, category, size)

    def _add_copies(self, waits: list[list[Handle]]) -> None:
        """What two stages hold alike has its gradients added up before the optimizer.

        The table that embedding and head share; under DualPipe the whole of two mirrored stages.
        """
        state, last = self._state, len(self._stages) - 1
        if self._plan.schedule.parameter_copies > 1:
            for s in range(len(self._stages) // 2):
                size = state.sharded(s) * state.sizes.reduced
                self._add_up(self._stages[s], self._stages[last - s], size, waits)
        elif self._plan.model.tied and last:
            table = self._state.blocks.block("embedding").parameters[0].numel
            size = table * state.sizes.reduced / state.ways
            self._add_up(self._stages[0], self._stages[last], size, waits)

    def _add_up(self, one: Stage, other: Stage, size: float, waits: list[list[Handle]]) -> None:
        """An all-reduce between the ranks of two stages, which the optimizer then waits for."""
        load = self._state.blocks.wires.pairs(one.number, other.number, size)
        ends = [(c, REDUCE, REDUCE) for stage in (one, other) for c in stage.classes]
        before = [
            tuple(handle[i] for handle in waits[stage.number])
            for stage in (one, other)
            for i in range(len(stage.classes))
        ]
        first, middle = len(self._program), len(self._program) + len(one.classes)
        self._program.communicate(ends, COPIES, "gradients", size, load, before)
        waits[one.number].append(range(first, middle))
        waits[other.number].append(range(middle, len(self._program)))

    def _norm(self, waits: list[list[Handle]]) -> list[list[Handle]]:
        """The norm of all gradients: an all-reduce of one number over all ranks."""
        ends, before = [], []
        for stage, own in zip(self._stages, waits, strict=True):
            ends += [(c, "norm", REDUCE) for c in stage.classes]
            before += [tuple(handle[i] for handle in own) for i in range(len(stage.classes))]
        load = self._state.blocks.wires.load(REDUCE, EVERYONE, 0, SCALAR_BYTES)
        first = len(self._program)
        name = "norm of gradients"
        self._program.communicate(ends, name, "norm", SCALAR_BYTES, load, before)
        bounds = list(accumulate((len(stage.classes) for stage in self._stages), initial=first))
        return [[range(*own)] for own in pairwise(bounds)]
