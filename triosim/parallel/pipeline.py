"""Pipeline parallel: each rank runs one stage, micro-batches flow through them.

A stage runs one operator at a time; a micro-batch's tensors move over a cut in one transfer once
the stage is done with it, beside whatever the stage computes next. The optimizer runs once, on each
stage for the parameters it holds.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from triosim.engine.program import Program, RankClass
from triosim.network.interconnect import Network
from triosim.parallel.plan import Plan
from triosim.parallel.rank import RankWriter
from triosim.parallel.residency import plan_residency
from triosim.parallel.schedules import SCHEDULES, Step
from triosim.parallel.stages import CountedStages, Stages, cut_stages
from triosim.parallel.work import Instance, Key, Run, lay_out, per_copy, scaled_run
from triosim.trace.memory import Buffer, Origin, find_memory


def write_pipeline(plan: Plan, program: Program, network: Network) -> None:
    """Write all stages, then the transfers between them."""
    stages = cut_stages(plan.trace, plan.gpus, plan.stage_cut)
    works = _stage_works(stages, plan.schedule, plan.batch_sizes)
    ranks = [_StageWriter(plan, program, work) for work in works]
    for rank in ranks:
        rank.write()
    cuts = list(enumerate(pairwise(ranks)))
    for cut, (before, after) in cuts:
        for m in range(len(plan.batch_sizes)):
            _connect(plan, program, network, before, after, "forward", cut, m)
    for cut, (before, after) in reversed(cuts):
        for m in range(len(plan.batch_sizes)):
            _connect(plan, program, network, after, before, "backward", cut, m)
        if isinstance(stages, CountedStages):
            _chain_optimizers(program, network, stages, after, before, cut)


@dataclass(frozen=True, slots=True)
class _Block:
    """The slots of one micro-batch in one direction on one stage."""

    first: int
    end: int

    @property
    def empty(self) -> bool:
        return self.first == self.end


class _StageWork:
    """One stage's operators in the order of the schedule, and what crosses its cuts with them."""

    def __init__(
        self, stages: Stages, stage: int, schedule: str, batch_sizes: tuple[int, ...]
    ) -> None:
        self.stages = stages
        self.stage = stage
        self.batch_sizes = batch_sizes
        self.memory = find_memory(stages.trace)
        self.schedule: list[Step] = SCHEDULES[schedule](stage, stages.count, len(batch_sizes))
        self.blocks: dict[Step, _Block] = {}
        self._own_optimizer = frozenset(stages.optimizer[stage])
        self.work = lay_out(stages.trace, self._runs(), holds=self._holds)
        self.optimizer = max((block.end for block in self.blocks.values()), default=0)
        self._add_relayed()
        self._note_arrivals()
        self._make_orphans()
        self.leaving = {step: self._leaving(step) for step in self.schedule}
        self.sent = tuple(key for keys in self.leaving.values() for key in keys)

    def _runs(self) -> Iterable[Run]:
        k, trace = 0, self.stages.trace
        for phase, m in self.schedule:
            parts = self.stages.forward if phase == "forward" else self.stages.backward
            operators = parts[self.stage]
            self.blocks[phase, m] = _Block(k, k + len(operators))
            k += len(operators)
            for i in operators:
                yield scaled_run(trace, i, m, self.batch_sizes[m])
        shares = self.stages.optimizer_share
        share = 1.0 if shares is None else shares[self.stage]
        if share > 0:
            for i in self.stages.optimizer[self.stage]:
                yield scaled_run(trace, i, 0, self.batch_sizes[0], share)

    def _holds(self, operator: int, buffer: Buffer) -> bool:
        """A stage's own parameters and what it makes or receives."""
        optimizer = self.stages.trace.operators[operator].phase == "optimizer"
        if optimizer and self.stages.optimizer_share is not None:
            owner = 0 if buffer.parameter is None else self.stages.owner.get(buffer.parameter, 0)
            if owner != self.stage:
                return False
        if buffer.origin is Origin.EXISTING or buffer.uses[0] == operator:
            return True
        home = self.stages.home(buffer)
        if optimizer:
            # A gradient or an intermediate result of another stage stays there.
            own = buffer.uses[0] in self._own_optimizer
            return own or home == self.stage
        return home == self.stage or buffer.index in self._arriving(home)

    def _arriving(self, home: int | None) -> Collection[int]:
        if home is None:
            return ()
        forward, backward = self.stages.crossings
        return forward[self.stage - 1] if home < self.stage else backward[self.stage]

    def keys(self, cut: int, step: Step) -> list[Key]:
        """The instances of one micro-batch that cross a cut."""
        phase, m = step
        crossing = self.stages.crossings[0 if phase == "forward" else 1][cut]
        return [(b, m if per_copy(self.memory.buffers[b]) else 0) for b in crossing]

    def _cuts(self, phase: str) -> tuple[int | None, int | None]:
        """The cuts over which a micro-batch comes to this stage and leaves it."""
        before = self.stage - 1 if self.stage > 0 else None
        after = self.stage if self.stage < self.stages.count - 1 else None
        return (before, after) if phase == "forward" else (after, before)

    def _add_relayed(self) -> None:
        """What only passes through a stage is in its memory meanwhile."""
        for step, block in self.blocks.items():
            into, out = self._cuts(step[0])
            if block.empty or into is None or out is None:
                continue
            leaving = set(self.keys(out, step))
            for key in self.keys(into, step):
                if key in leaving and key not in self.work.instances:
                    self._relay(key, step[1], block)

    def _note_arrivals(self) -> None:
        """What arrives with a micro-batch is in memory from then on, whenever it is used first."""
        for step, block in self.blocks.items():
            into, _ = self._cuts(step[0])
            if block.empty or into is None:
                continue
            for key in self.arriving(into, step):
                if self.work.instances[key].uses[0] > block.first:
                    self._use(key, block.first)

    def _make_orphans(self) -> None:
        """What no transfer brings (it is used before it is made) is made at its first use."""
        brought = {
            key
            for step in self.schedule
            for into, _ in [self._cuts(step[0])]
            if into is not None
            for key in self.keys(into, step)
        }
        for key, instance in self.work.instances.items():
            if instance.arrives == "recv" and key not in brought:
                instance.arrives = ""
                slot = self.work.slots[instance.uses[0]]
                slot.uses.remove(key)
                slot.creates.append(key)

    def _relay(self, key: Key, m: int, block: _Block) -> None:
        buffer = self.memory.buffers[key[0]]
        share = self.batch_sizes[m] / self.stages.trace.batch_size
        slots = sorted({block.first, block.end - 1})
        self.work.instances[key] = Instance(
            bytes=round(buffer.bytes * (share if buffer.scales else 1.0)),
            category=str(buffer.role),
            arrives="recv",
            uses=slots,
        )
        for k in slots:
            self.work.slots[k].uses.append(key)

    def _leaving(self, step: Step) -> list[Key]:
        """What this stage no longer needs once a micro-batch has been sent on.

        The transfer starts when the block ends. It must have ended before the next slot starts if
        memory is tight, so until there it counts as in use.
        """
        _, out = self._cuts(step[0])
        block = self.blocks[step]
        if out is None or block.empty:
            return []
        leaving = []
        until = min(block.end, len(self.work.slots) - 1)
        for key in self.keys(out, step):
            instance = self.work.instances.get(key)
            if instance is None:
                continue
            if block.first <= instance.uses[-1] < block.end:
                leaving.append(key)
                self._use(key, until)
            else:
                self._use(key, block.end - 1)
        return leaving

    def _use(self, key: Key, slot: int) -> None:
        """Note one more use of an instance."""
        uses = self.work.instances[key].uses
        if slot not in (uses[0], uses[-1]):
            insort(uses, slot)
            self.work.slots[slot].uses.append(key)

    def arriving(self, cut: int, step: Step) -> list[Key]:
        """The instances that one micro-batch's transfer brings."""
        instances = self.work.instances
        return [
            key
            for key in self.keys(cut, step)
            if key in instances and instances[key].arrives == "recv"
        ]


@lru_cache(maxsize=8)
def _stage_works(
    stages: Stages, schedule: str, batch_sizes: tuple[int, ...]
) -> tuple[_StageWork, ...]:
    return tuple(_StageWork(stages, stage, schedule, batch_sizes) for stage in range(stages.count))


class _StageWriter:
    """One stage's compute stream in a program, and how transfers tie into it.

    Where a stage has no operator for a micro-batch, what arrives goes straight on: `_passing` are
    the tasks that brought it.
    """

    def __init__(self, plan: Plan, program: Program, work: _StageWork) -> None:
        self.program = program
        self.plan = work
        self.stage = stage = work.stage
        residency = plan_residency(
            self.plan.work, plan.capacity_bytes, resident=plan.resident, sent=self.plan.sent
        )
        self.blocking_sends = residency.blocking_sends
        self.writer = RankWriter(
            program,
            RankClass(members=(stage,), speed=plan.speeds.get(stage, 1.0), stage=stage),
            self.plan.work,
            residency,
            plan.remote_bytes_per_s,
        )
        self._passing: dict[Step, list[int]] = {}

    def write(self) -> None:
        for _ in self.plan.work.slots:
            self.writer.compute()

    def done(self, step: Step) -> list[int]:
        """What a micro-batch's transfer out of this stage waits for."""
        block = self.plan.blocks[step]
        if not block.empty:
            return [self.writer.task[block.end - 1]]
        # Nothing to do backward here: what arrives goes on, once the micro-batch has been forward.
        forward = self.plan.blocks["forward", step[1]]
        return [*self._passing.get(step, []), self.writer.task[forward.end - 1]]

    def needs(self, step: Step, tasks: Sequence[int]) -> None:
        """Let a micro-batch wait for what brings its tensors."""
        block = self.plan.blocks[step]
        if not block.empty:
            self.wait(block.first, tasks)
            return
        self._passing.setdefault(step, []).extend(tasks)
        if step[0] == "backward" and self.has_optimizer:
            self.wait(self.plan.optimizer, tasks)

    @property
    def has_optimizer(self) -> bool:
        return self.plan.optimizer < len(self.writer.task)

    def wait(self, slot: int, tasks: Sequence[int]) -> None:
        for task in tasks:
            self.program.wait(self.writer.task[slot], task)


def _connect(
    plan: Plan,
    program: Program,
    network: Network,
    source: _StageWriter,
    target: _StageWriter,
    phase: str,
    cut: int,
    m: int,
) -> None:
    """Move one micro-batch from a stage to its neighbour."""
    step = (phase, m)
    if not plan.trace.phase(phase):
        return
    size = source.plan.stages.sent_bytes(cut, phase) * plan.batch_share(m)
    arriving = target.plan.arriving(cut, step)
    if size == 0 and not arriving:
        target.needs(step, source.done(step))
        return
    onward, back = ("next", "previous") if phase == "forward" else ("previous", "next")
    what = "activations" if phase == "forward" else "gradients"
    sent, received = program.communicate(
        [
            (source.writer.rank_class, f"send to {onward}", "send"),
            (target.writer.rank_class, f"receive from {back}", "recv"),
        ],
        f"{what} of micro-batch {m}, rank {source.stage} to {target.stage}",
        what,
        size,
        network.send(source.stage, target.stage, size),
        [source.done(step), []],
    )
    target.needs(step, [received])
    target.writer.received(received, arriving)
    for key in source.plan.leaving[step]:
        source.writer.free(sent, key)
    end = source.plan.blocks[step].end
    if source.blocking_sends and end < len(source.writer.task):
        source.wait(end, [sent])


def _chain_optimizers(
    program: Program,
    network: Network,
    stages: CountedStages,
    source: _StageWriter,
    target: _StageWriter,
    cut: int,
) -> None:
    """TrioSim's cut deals whole optimizer operators to stages; the next stage waits for them."""
    if not stages.optimizer[source.stage] or not target.has_optimizer:
        return
    last = source.writer.task[-1]
    size = stages.optimizer_bytes(cut)
    if size == 0:
        target.wait(target.plan.optimizer, [last])
        return
    _, received = program.communicate(
        [
            (source.writer.rank_class, "send to previous", "send"),
            (target.writer.rank_class, "receive from next", "recv"),
        ],
        f"optimizer outputs, rank {source.stage} to {target.stage}",
        "optimizer outputs",
        size,
        network.send(source.stage, target.stage, size),
        [[last], []],
    )
    target.wait(target.plan.optimizer, [received])
