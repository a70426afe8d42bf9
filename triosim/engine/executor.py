"""Run a program on SimPy's clock: each stream works through its tasks, one fabric is the network.

Nothing here knows what a parallelism is. At equal times SimPy keeps the order of insertion, so the
same program always gives the same timeline.
"""

from __future__ import annotations

from array import array
from collections import deque
from contextlib import suppress
from functools import partial

import numpy as np
import simpy
from simpy.core import EmptySchedule

from triosim.engine.columns import Columns
from triosim.engine.overlap import CPU, Computation, Overlap
from triosim.engine.program import COPY_ENGINE_PHASES, LAUNCH_PHASE, Program
from triosim.engine.repeats import Repeats, State
from triosim.engine.timeline import Timeline
from triosim.errors import Infeasible
from triosim.network.fabric import Fabric, Flow
from triosim.network.optical import CircuitSwitch

READY, BLOCKED, JOINED, RUNNING, ENDED = range(5)  # what a stream does


def execute(
    program: Program, circuits: CircuitSwitch | None = None, *, repeat: bool = True
) -> Timeline:
    """Every task's start and end.

    With `repeat`, stretches between the program's marks that begin in the same state as one before
    them are not run again (`triosim.engine.repeats`).

    Raises `Infeasible` where tasks wait for each other in a circle; with unlimited memory no
    program of `triosim.parallel` does.
    """
    env = simpy.Environment()
    columns = Columns.of(program)
    fabric = Fabric(env, program.links, circuits, program.loads)
    repeats = Repeats(program, columns) if repeat and program.marks and not circuits else None
    run = _Run(program, columns, env, fabric, repeats)
    run.begin()
    events, step = 0, env.step
    with suppress(EmptySchedule):
        while True:
            step()
            events += 1
    stuck = run.first_unfinished()
    if stuck is not None:
        raise Infeasible(
            f"The step cannot end: {program.name[stuck]} on rank "
            f"{program.classes[program.streams[program.stream[stuck]].rank_class].rank} waits for "
            "memory or a transfer that never comes; raise the memory capacity."
        )
    run.let_go()
    start_s, end_s = np.array(run.start_s), np.array(run.end_s)
    log = np.array(run.log, dtype=np.int64)
    if repeats is not None:
        log = repeats.fill(start_s, end_s, log)
    timeline = Timeline(
        program=program,
        start_s=start_s,
        end_s=end_s,
        log=log,
        carried_bytes=np.array(fabric.carried_bytes),
        peak_bytes_per_s=np.array(fabric.peak_bytes_per_s),
        link_steps=fabric.record,
        events=events,
    )
    # NOTE: what is read off the timeline needs them again; they are a tenth of a long run.
    vars(timeline)["columns"] = columns
    return timeline


class _Run:
    """Where every stream is, and what each task still waits for.

    A stream's `head` is the place of the first of its tasks that has not ended. `log` is the exact
    order of events: t for the start of task t, ~t for its end. Times are those of SimPy's clock and
    `ahead_s`; `_now_s` is their sum at the event at hand.
    """

    def __init__(
        self,
        program: Program,
        columns: Columns,
        env: simpy.Environment,
        fabric: Fabric,
        repeats: Repeats | None,
    ) -> None:
        count = len(program)
        self._program = program
        # NOTE: items of lists are read faster than those of arrays, written ones as fast.
        self._stream = list(program.stream)
        self._transfer = list(program.transfer)
        self._duration_s = list(program.duration_s)
        self._slows = 1.0 + program.overlap_slowdown > 1.0
        self._env = env
        self._fabric = fabric
        self._repeats = repeats
        self._marks = frozenset(program.marks if repeats is not None else ())
        self._queues = [columns.tasks(s).tolist() for s in range(len(program.streams))]
        self._blockers = np.diff(columns.wait_first).tolist()
        self._dependents, self._dependents_from = columns.dependents()
        self._missing = list(map(len, program.ends))
        self._classes = [stream.rank_class for stream in program.streams]
        self._computes = [
            CPU if stream.name == LAUNCH_PHASE else stream.rank_class for stream in program.streams
        ]
        self._overlap = Overlap(env, len(program.classes), program.overlap_slowdown)
        self._heads = [0] * len(self._queues)
        self._states = [READY] * len(self._queues)
        self._under_way: list[Flow | Computation | None] = [None] * len(self._queues)
        streams = range(len(self._queues))
        self._ends = [partial(self._end, stream) for stream in streams]
        self._deliveries = [partial(self._deliver, stream) for stream in streams]
        self._ready: deque[int] = deque()
        self.ahead_s = self._now_s = 0.0
        self.start_s = array("d", [0.0]) * count
        self.end_s = array("d", [0.0]) * count
        self.log: list[int] = []

    def begin(self) -> None:
        """At time 0 every stream begins."""
        self._ready.extend(range(len(self._queues)))
        self._go_on()

    def _go_on(self) -> None:
        """Let streams that can go on do so, in the order in which they became able to."""
        ready = self._ready
        while ready:
            self._proceed(ready.popleft())

    def _proceed(self, stream: int) -> None:
        """Start what is at a stream's head."""
        queue, heads = self._queues[stream], self._heads
        while heads[stream] < len(queue):
            task = queue[heads[stream]]
            if self._blockers[task]:
                self._states[stream] = BLOCKED
                return
            if task in self._marks:
                self._skip()
                task = queue[heads[stream]]
            transfer = self._transfer[task]
            if transfer >= 0:
                self._join(stream, transfer)
                return
            self.start_s[task] = self._now_s
            self.log.append(task)
            duration_s = self._duration_s[task]
            if duration_s > 0:
                self._states[stream] = RUNNING
                self._under_way[stream] = self._overlap.compute(
                    self._computes[stream], duration_s, self._ends[stream]
                )
                return
            self._finish(stream, task)
        self._states[stream] = ENDED

    def _end(self, stream: int) -> None:
        """A computation has ended."""
        self._now_s = self._env.now + self.ahead_s
        self._states[stream] = READY
        self._finish(stream, self._queues[stream][self._heads[stream]])
        self._ready.appendleft(stream)
        self._go_on()

    def _join(self, stream: int, transfer: int) -> None:
        """One more end is ready; the last one sets the transfer off."""
        self._states[stream] = JOINED
        self._missing[transfer] -= 1
        if self._missing[transfer]:
            return
        ends, now_s = self._program.ends[transfer], self._now_s
        for end in ends:
            self.start_s[end] = now_s
            self._states[self._stream[end]] = RUNNING
        self.log += ends
        self._under_way[stream] = self._fabric.send(
            self._program.loads[transfer], self._deliveries[stream]
        )
        if self._slows:
            self._count(ends, +1)

    def _count(self, ends: range, change: int) -> None:
        """Slow down the computations of a transfer's ranks until it has arrived."""
        phase, classes, stream = self._program.phase, self._classes, self._stream
        count = self._overlap.count
        for end in ends:
            if phase[end] not in COPY_ENGINE_PHASES:
                count(classes[stream[end]], change)

    def _deliver(self, stream: int) -> None:
        """The transfer at a stream's head has arrived at all of its ends."""
        self._now_s = self._env.now + self.ahead_s
        ends = self._program.ends[self._transfer[self._queues[stream][self._heads[stream]]]]
        if self._slows:
            self._count(ends, -1)
        streams = self._stream[ends.start : ends.stop]
        for own, end in zip(streams, ends, strict=True):
            self._states[own] = READY
            self._finish(own, end)
        self._ready.extendleft(reversed(streams))
        self._go_on()

    def _finish(self, stream: int, task: int) -> None:
        self.end_s[task] = self._now_s
        self.log.append(~task)
        self._under_way[stream] = None
        self._heads[stream] += 1
        blockers, first = self._blockers, self._dependents_from
        for other in self._dependents[first[task] : first[task + 1]]:
            blockers[other] -= 1
            if not blockers[other]:
                waiting = self._stream[other]
                queue, head = self._queues[waiting], self._heads[waiting]
                if self._states[waiting] == BLOCKED and queue[head] == other:
                    self._states[waiting] = READY
                    self._ready.append(waiting)

    def _skip(self) -> None:
        """At a mark: what would only repeat what has been run is not run."""
        repeats, now = self._repeats, self._env.now
        assert repeats is not None
        stepped, sent = self._fabric.recorded
        under_way = [(s, what) for s, what in enumerate(self._under_way) if what is not None]
        phases = (part for s, what in under_way for part in (s, what.phase))
        state = State(
            now_s=now + self.ahead_s,
            clock_s=now,
            heads=self._heads.copy(),
            does=(*self._states, *self._ready, -1, *phases),
            left_s=[what.left_s(now) for _, what in under_way],
            logged=len(self.log),
            stepped=stepped,
            sent=sent,
        )
        skipped = repeats.find(state, self.log, self.start_s, self.end_s)
        if skipped is None:
            return
        self._fabric.repeat(skipped.stretch)
        self.ahead_s = self._fabric.ahead_s = skipped.ahead_s
        self._now_s = now + self.ahead_s
        self._blockers = skipped.blockers
        for stream, joined in enumerate(self._states):
            if joined in (JOINED, RUNNING):
                queue = self._queues[stream]
                here = self._program.transfer[queue[self._heads[stream]]]
                if here >= 0:
                    there = self._program.transfer[queue[skipped.heads[stream]]]
                    self._missing[there] = self._missing[here]
        self._heads[:] = skipped.heads

    def let_go(self) -> None:
        """Drop the calls that refer back to the run, so that it goes when it is no longer used.

        NOTE: its lists would else be searched for garbage twice, a fiftieth of a long simulation.
        """
        self._ends.clear()
        self._deliveries.clear()

    def first_unfinished(self) -> int | None:
        heads = zip(self._queues, self._heads, strict=True)
        return min((queue[head] for queue, head in heads if head < len(queue)), default=None)
