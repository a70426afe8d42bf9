"""The program of one training step: every stage's passes in the order of its schedule.

Where parameters are gathered or gradients reduced, a pass is one task for each unit, so that the
next gather runs beside it; elsewhere it is one task for the whole part of the model. Gathers,
reductions and transfers between stages have streams of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from triosim.engine.pieces import cut, put
from triosim.engine.program import Part, Program
from triosim.engine.tiling import extent, repeat, repeats
from triosim.schedules import Task
from triosim.train.blocks import BACKWARD, FORWARD, INPUT, WEIGHT, Blocks
from triosim.train.copies import Copies, Copy, Point
from triosim.train.groups import Group, Groups
from triosim.train.hops import NONE, Cells, connect
from triosim.train.network import Wires
from triosim.train.offload import Offload
from triosim.train.passes import Pass
from triosim.train.plan import Plan
from triosim.train.rows import Run, runs
from triosim.train.sharding import Sharding
from triosim.train.stage import Handle, Stage
from triosim.train.state import State
from triosim.train.traced import TracedBlocks
from triosim.train.update import Update

_NAMES = {
    FORWARD: "forward", BACKWARD: "backward", INPUT: "input gradient", WEIGHT: "weight gradient",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Made:
    """What a composite task was made from."""

    group: Group
    kind: str
    gathered: bool
    reduced: bool

    @property
    def passes(self) -> list[Pass]:
        """One for each unit, in the order in which they run."""
        return self.group.passes(self.kind, gathered=self.gathered, reduced=self.reduced)


def make_blocks(plan: Plan, wires: Wires) -> Blocks:
    """From the model's description, or from a trace."""
    return Blocks(plan, wires) if plan.trace is None else TracedBlocks(plan, wires)


class StepWriter:
    """Writes a plan's step. `made[t]` says what composite task t is made from.

    With `repeat`, micro-batches that are written like the one before are not written one by one.
    """

    def __init__(self, plan: Plan, *, fold: bool = True, repeat: bool = True) -> None:
        self.plan = plan
        self.repeat = repeat
        self.program = Program(overlap_slowdown=plan.stack.overlap_slowdown.value)
        self.wires = Wires(plan, fold=fold)
        self.blocks = make_blocks(plan, self.wires)
        self._handed_bytes = self.blocks.handed_bytes if plan.stages > 1 else 0.0
        self.state = State(self.blocks)
        self.made: dict[int, Made] = {}
        self._times: Counter[tuple[int, Made]] = Counter()
        self._groups = Groups(self.blocks)
        self.stages = [Stage(plan, self.program, s, fold=fold) for s in range(plan.stages)]
        self._sharding = [Sharding(plan, s, self.wires, self.state) for s in self.stages]
        self._offload = [Offload(plan, s) for s in self.stages]
        schedule = plan.schedule
        self._cells = [Cells(schedule.chunks, schedule.microbatches) for _ in self.stages]
        self._launched: list[Handle | None] = [None] * plan.stages

    def write(self) -> Program:
        """All stages, what they hand to each other, and the optimizer."""
        for stage in self.stages:
            stage.reside(self.state.resident(stage.number))
            extra_s = self.plan.scenario.extra_ms_per_step * 1e-3
            if extra_s:
                self._launched[stage.number] = stage.launch("nothing launched", extra_s)
            self._write_row(stage)
        connect(
            self.program,
            self.stages,
            self.plan.schedule,
            self.wires,
            self._cells,
            self._handed_bytes,
            back=not self.plan.scenario.prefill,
        )
        if self.plan.scenario.prefill:
            self._answer()
        else:
            Update(self.plan, self.program, self.stages, self._sharding, self.state).write()
        for stage in self.stages:
            stage.account()
        links, self.program.loads = self.wires.settle(self.program.loads)
        self.program.links += links
        return self.program

    def composites(self, stage: int) -> Iterator[tuple[Made, int]]:
        """What the composite tasks of a rank of a stage were made from, and how many there are."""
        return ((made, times) for (s, made), times in self._times.items() if s == stage)

    def forward_passes(self) -> int:
        """Forward passes through a whole part of the model, each counted once for all ranks."""
        return sum(int((cells.first["F"] != NONE).sum()) for cells in self._cells)

    def _write_row(self, stage: Stage) -> None:
        """In a pipeline cells are copied one by one, else periods of several cells are repeated."""
        schedule, s = self.plan.schedule, stage.number
        if self.plan.stages == 1 or self._offload[s].active or not self.repeat:
            for run in runs(schedule.rows[s], schedule.split[s]):
                self._write_run(stage, run)
            return
        copies, place = Copies(schedule.columns[s]), 0
        while place < len(schedule.rows[s]):
            count = copies.ready(place)
            if count:
                self._copy(stage, copies, place, count)
                place += count
            else:
                since = self._point(stage)
                self._write_cell(stage, place)
                copies.learn(place, self._copy_of(stage, since, schedule.rows[s][place]))
                place += 1

    def _copy_of(self, stage: Stage, since: Point, task: Task) -> Copy | None:
        """What has been written since a point for a task, if others can be written like it."""
        piece = cut(self.program, since.program, self._label(stage.number, task))
        if piece is None or not since.sharding.then_one_pass(self._point(stage).sharding):
            return None
        return Copy(piece=piece, made=self.made[len(self.program) - 1])

    def _copy(self, stage: Stage, copies: Copies, place: int, count: int) -> None:
        """Write so many cells from a place on, each like the one that its sort has."""
        s, width = stage.number, len(stage.classes)
        found, order = copies.stretch(place, count)
        labels = [self._label(s, task) for task in copies.row.tasks[place : place + count]]
        first = put(self.program, [copy.piece for copy in found], order, labels)
        last = first + np.array([len(copy.piece.stream) for copy in found])[order] - width
        made = list(map([copy.made for copy in found].__getitem__, order.tolist()))
        for i in range(width):
            self.made.update(zip((last + i).tolist(), made, strict=True))
        for copy, times in zip(found, np.bincount(order).tolist(), strict=True):
            self._times[s, copy.made] += times
            stage.again(copy.piece.parts[-width:], times)
        self._sharding[s].computed += map(range, last.tolist(), (last + width).tolist())
        self._cells[s].copy(copies.row, place, first, last)

    def _label(self, stage: int, task: Task) -> str:
        """What tells a pass, or a pair, from those of other micro-batches."""
        if task.kind != "F&B":
            return str(task.microbatch)
        back = (task.backward_chunk, task.backward_microbatch)
        kind = INPUT if back in self.plan.schedule.split[stage] else BACKWARD
        return f"{task.microbatch} beside {_NAMES[kind]} {task.backward_microbatch}"

    def _write_run(self, stage: Stage, run: Run) -> None:
        """Write periods until one is like the one before it, then repeat that, but for the last."""
        period, left = run.period, run.times
        points = [self._point(stage)]
        while left:
            position = run.start + (run.times - left) * period
            for i in range(period):
                self._write_cell(stage, position + i)
            left -= 1
            points = [*points[-2:], self._point(stage)]
            if left > 1 and self.repeat and self._repeats(stage, points):
                self._repeat(stage, points[-2], position, run, left - 1)
                left = 1

    def _point(self, stage: Stage) -> Point:
        written = self._sharding[stage.number].written
        return Point(extent(self.program), written, tuple(stage.busy_s))

    def _repeats(self, stage: Stage, points: Sequence[Point]) -> bool:
        if len(points) < 3 or self._offload[stage.number].active:
            return False
        before, since, now = points
        return since.sharding.alike(before.sharding, now.sharding) and repeats(
            self.program, before.program, since.program
        )

    def _repeat(self, stage: Stage, since: Point, position: int, run: Run, times: int) -> None:
        """What was written since a point, the period at a position, comes so many times more."""
        program, s = self.program, stage.number
        composed = [
            (task, self.made[task], *program.name[task].rpartition(" ")[::2])
            for task in range(since.program.tasks, len(program))
            if task in self.made
        ]
        length = repeat(program, since.program, times)
        self._sharding[s].repeat(since.sharding, length, times)
        stage.busy_s = [
            now + times * (now - then) for now, then in zip(stage.busy_s, since.busy_s, strict=True)
        ]
        for task, made, stem, microbatch in composed:
            later = range(task + length, len(program), length)
            self.made.update(dict.fromkeys(later, made))
            first = int(microbatch) + run.later
            program.name[task + length :: length] = [
                f"{stem} {first + k * run.later}" for k in range(times)
            ]
        for _, made, _, _ in composed[:: len(stage.classes)]:
            self._times[s, made] += times
        for own in self.plan.schedule.rows[s][position : position + run.period]:
            if own.kind in ("F", "B"):
                self._cells[s].repeat(
                    own.kind, own.chunk, own.microbatch, later=run.later, tasks=length, times=times
                )

    def _write_cell(self, stage: Stage, position: int) -> None:
        """One task of the schedule; of an overlapped pair one after the other if it is cut."""
        s, row = stage.number, self.plan.schedule.columns[stage.number]
        task = row.tasks[position]
        chunk, microbatch = task.chunk, task.microbatch
        first = row.first.get(chunk) == position
        if task.kind == "F&B":
            chunk, microbatch = task.backward_chunk, task.backward_microbatch
        last = row.last.get(chunk) == position
        split = (chunk, microbatch) in self.plan.schedule.split[s]
        kind = WEIGHT if task.kind == "W" else INPUT if split else BACKWARD
        if task.kind == "F&B" and self._runs_whole(s, kind, first=first, last=last):
            self._pair(stage, task, kind)
            return
        if task.kind in ("F", "F&B"):
            self._forward(stage, task.chunk, task.microbatch, first)
        if task.kind != "F" and not self.plan.scenario.prefill:
            self._backward(stage, chunk, microbatch, kind, last=last)

    def _runs_whole(self, stage: int, kind: str, *, first: bool, last: bool) -> bool:
        """Whether nothing is gathered, reduced or copied between the units of a pair."""
        sharding, scenario = self._sharding[stage], self.plan.scenario
        gathers = sharding.gathers_forward(first=first) or sharding.gathers_backward
        reduces = kind != INPUT and sharding.reduces(last=last)
        return not (gathers or reduces or self._offload[stage].active or scenario.prefill)

    def _pair(self, stage: Stage, task: Task, kind: str) -> None:
        """A forward beside a backward: one composite task, after which both are handed on."""
        s, places = stage.number, self.plan.schedule.virtual_stage
        ahead, behind = places[s, task.chunk], places[s, task.backward_chunk]
        made = Made(self._groups.pair(ahead, behind, kind), FORWARD, False, False)
        handle = self._compute(stage, made, self._label(s, task), [])
        for category, size in self._groups.whole[ahead].held.items():
            stage.allocate(handle, category, size)
        if kind != INPUT:
            group = self._groups.whole[behind]
            for category, size in group.held.items():
                stage.free(handle, category, size)
            self._sharding[s].used_backward(group, handle, reduces=False)
        if s == 0 and task.chunk == 0:
            self.program.marks.append(handle[0])
        self._cells[s].put("F", task.chunk, task.microbatch, handle, handle)
        self._cells[s].put("B", task.backward_chunk, task.backward_microbatch, handle, handle)

    def _forward(self, stage: Stage, chunk: int, microbatch: int, first: bool) -> None:
        sharding = self._sharding[stage.number]
        offload = self._offload[stage.number]
        gathers = sharding.gathers_forward(first=first)
        part = self.plan.schedule.virtual_stage[stage.number, chunk]
        tasks = self._synchronise(stage, FORWARD)
        for group in self._groups.of(part, FORWARD, layerwise=gathers or offload.active):
            waits = sharding.gather(group) if gathers else []
            waits = [*waits, *offload.room()]
            made = Made(group, FORWARD, gathers, False)
            handle = self._compute(stage, made, str(microbatch), waits)
            for category, size in group.held.items():
                stage.allocate(handle, category, size)
                if self.plan.scenario.prefill:
                    sharding.at_end.append((category, size))
            if gathers:
                sharding.used_forward(group, handle)
            if offload.active:
                offload.store(group, microbatch, handle)
            tasks.append(handle)
        if stage.number == 0 and chunk == 0:
            self.program.marks.append(tasks[0][0])
        self._cells[stage.number].put("F", chunk, microbatch, tasks[0], tasks[-1])

    def _backward(
        self, stage: Stage, chunk: int, microbatch: int, kind: str, *, last: bool
    ) -> None:
        sharding = self._sharding[stage.number]
        weights = kind != INPUT  # this pass makes the parameters' gradients
        gathers = sharding.gathers_backward and kind != WEIGHT
        reduces = weights and sharding.reduces(last=last)
        part = self.plan.schedule.virtual_stage[stage.number, chunk]
        offload = self._offload[stage.number]
        layerwise = gathers or reduces or offload.active
        groups = list(self._groups.of(part, kind, layerwise=layerwise))
        tasks = self._synchronise(stage, BACKWARD)
        for group in groups:
            waits = sharding.gather(group) if gathers else []
            if offload.active and kind != WEIGHT:
                waits = [*waits, *offload.fetch(group, microbatch, sharding.computed)]
            if reduces:
                waits = [*waits, *sharding.room()]
            made = Made(group, kind, gathers, reduces)
            handle = self._compute(stage, made, str(microbatch), waits)
            if weights:
                for category, size in group.held.items():
                    stage.free(handle, category, size)
                sharding.used_backward(group, handle, reduces=reduces)
            if reduces:
                sharding.reduce(group, handle, at_end=group is groups[-1])
            tasks.append(handle)
        if kind != WEIGHT:
            self._cells[stage.number].put("B", chunk, microbatch, tasks[0], tasks[-1])

    def _synchronise(self, stage: Stage, phase: str) -> list[Handle]:
        """The CPU waits until a micro-batch has arrived, and only then launches what is next."""
        seconds = self.plan.stack.hop_us.value * 1e-6
        if not seconds or self.plan.stages == 1:
            return []
        return [stage.compose("synchronise", phase, (Part("launch_wait", ("", ""), seconds),))]

    def _compute(self, stage: Stage, made: Made, label: str, waits: list[Handle]) -> Handle:
        """One composite task; a stage's first one also waits for the CPU."""
        launched, self._launched[stage.number] = self._launched[stage.number], None
        if launched is not None:
            waits = [*waits, launched]
        group, kind = made.group, made.kind
        parts = group.parts(kind, gathered=made.gathered, reduced=made.reduced)
        name = f"{group.name} {_NAMES[kind]} {label}"
        phase = FORWARD if kind == FORWARD else BACKWARD
        handle = stage.compose(name, phase, parts, waits)
        size = group.work(kind)
        stage.allocate(handle, "work", size)
        stage.free(handle, "work", size)
        self.made.update(dict.fromkeys(handle, made))
        self._times[stage.number, made] += 1
        self._sharding[stage.number].computed.append(handle)
        return handle

    def _answer(self) -> None:
        """The first token leaves; keys and values that were kept for the next ones go with it."""
        for stage, sharding in zip(self.stages, self._sharding, strict=True):
            for category, size in sharding.at_end:
                stage.free(sharding.computed[-1], category, size)
