"""Run a program in SimPy: one process for each stream, one fabric for the network.

Nothing here knows what a parallelism is. At equal times SimPy keeps the order of insertion, so the
same program always gives the same timeline.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Generator
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import simpy
from simpy.core import EmptySchedule

from triosim.engine.overlap import Overlap
from triosim.engine.program import Program
from triosim.engine.timeline import Timeline
from triosim.errors import Infeasible
from triosim.network.fabric import Fabric
from triosim.network.optical import CircuitSwitch

Process = Generator[simpy.Event, Any, None]

COPY_ENGINE_PHASES = ("fetch", "store")  # these take nothing from the computation beside them


def execute(program: Program, circuits: CircuitSwitch | None = None) -> Timeline:
    """Every task's start and end.

    Raises `Infeasible` where tasks wait for each other in a circle; with unlimited memory no
    program of `triosim.parallel` does.
    """
    env = simpy.Environment()
    fabric = Fabric(env, program.links, circuits)
    run = _Run(program, env, fabric)
    for stream, queue in zip(program.streams, _queues(program), strict=True):
        env.process(run.stream(queue, stream.rank_class))
    events = 0
    with suppress(EmptySchedule):
        while True:
            env.step()
            events += 1
    if len(run.log) != 2 * len(program):
        stuck = run.first_unfinished()
        raise Infeasible(
            f"The step cannot end: {program.name[stuck]} on rank "
            f"{program.classes[program.streams[program.stream[stuck]].rank_class].rank} waits for "
            "memory or a transfer that never comes; raise the memory capacity."
        )
    return Timeline(
        program=program,
        start_s=np.array(run.start_s),
        end_s=np.array(run.end_s),
        log=np.array(run.log, dtype=np.int64),
        carried_bytes=np.array(fabric.carried_bytes),
        peak_bytes_per_s=np.array(fabric.peak_bytes_per_s),
        link_steps=fabric.steps,
        events=events,
    )


def _queues(program: Program) -> list[list[int]]:
    queues: list[list[int]] = [[] for _ in program.streams]
    for task, stream in enumerate(program.stream):
        queues[stream].append(task)
    return queues


class _Run:
    """Counters of what each task still waits for, and what wakes up when it ends.

    `log` is the exact order of events: t for the start of task t, ~t for its end.
    """

    def __init__(self, program: Program, env: simpy.Environment, fabric: Fabric) -> None:
        count = len(program)
        self._program = program
        self._env = env
        self._fabric = fabric
        self._blockers = [len(waits) for waits in program.waits]
        self._dependents: defaultdict[int, list[int]] = defaultdict(list)
        for task, waits in enumerate(program.waits):
            for other in waits:
                self._dependents[other].append(task)
        self._waiting: dict[int, simpy.Event] = {}
        self._missing = [len(ends) for ends in program.ends]
        self._arrived: list[simpy.Event | None] = [None] * len(program.loads)
        slowdown = program.overlap_slowdown
        self._overlap = Overlap(env, len(program.classes), slowdown) if slowdown else None
        self.start_s = [0.0] * count
        self.end_s = [0.0] * count
        self.log: list[int] = []

    def stream(self, queue: list[int], rank_class: int) -> Process:
        """Work through one stream of a class in order."""
        env, program, overlap = self._env, self._program, self._overlap
        compute: Callable[[float], simpy.Event] = (
            env.timeout if overlap is None else partial(overlap.compute, rank_class)
        )
        blockers, transfers, durations_s = self._blockers, program.transfer, program.duration_s
        for task in queue:
            if blockers[task]:
                ready = self._waiting[task] = env.event()
                yield ready
            transfer = transfers[task]
            if transfer >= 0:
                yield self._join(transfer)
            else:
                self.start_s[task] = env.now
                self.log.append(task)
                duration_s = durations_s[task]
                if duration_s > 0:
                    yield compute(duration_s)
            self._finish(task)

    def _join(self, transfer: int) -> simpy.Event:
        """One more end is ready; the last one sets the transfer off."""
        done = self._arrived[transfer]
        if done is None:
            done = self._arrived[transfer] = self._env.event()
        self._missing[transfer] -= 1
        if self._missing[transfer] == 0:
            for end in self._program.ends[transfer]:
                self.start_s[end] = self._env.now
                self.log.append(end)
            delivered = self._fabric.transfer(self._program.loads[transfer])
            if self._overlap is not None:
                self._slow_down(self._overlap, transfer, delivered)
            if len(self._program.ends[transfer]) == 1:
                return delivered
            delivered.callbacks.append(done.trigger)
        return done

    def _slow_down(self, overlap: Overlap, transfer: int, delivered: simpy.Event) -> None:
        """The computations of the transfer's ranks, until it has arrived."""
        program = self._program
        for end in program.ends[transfer]:
            if program.phase[end] not in COPY_ENGINE_PHASES:
                overlap.transfer(program.streams[program.stream[end]].rank_class, delivered)

    def _finish(self, task: int) -> None:
        self.end_s[task] = self._env.now
        self.log.append(~task)
        blockers = self._blockers
        for other in self._dependents.get(task, ()):
            blockers[other] -= 1
            if not blockers[other]:
                ready = self._waiting.pop(other, None)
                if ready is not None:
                    ready.succeed()

    def first_unfinished(self) -> int:
        ended = {~entry for entry in self.log if entry < 0}
        return next(task for task in range(len(self._program)) if task not in ended)
