"""What each task of a schedule waits for, and an order in which all can be computed.

F waits for F on the virtual stage before, B for B on the one behind, each over a hop between stages
(none where both are on the same stage). All else follows from the order of the row.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from triosim.errors import ConfigError

if TYPE_CHECKING:
    from triosim.schedules.schedule import Place, Schedule

Integers = npt.NDArray[np.int64]
NONE = -1
FORWARD, BACKWARD, INPUT, WEIGHT, BOTH = range(5)


class Wiring:
    """Columns over all tasks, row after row.

    `stage`; `work` (FORWARD, BACKWARD, INPUT, WEIGHT or BOTH); the virtual stage of the forward or
    backward (`virtual_stage`) and of the backward in an overlapped pair (`paired`). `after` and
    `hop` are the task that a forward or backward waits for and the pair of neighbouring stages
    between them, `paired_after` and `paired_hop` those of the backward in a pair; NONE where there
    is nothing. Hop i is between stages i and i + 1, the last one between the last stage and the
    first. `order` is a topological order.
    """

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._number()
        count = len(self.stage)
        self.after = [NONE] * count
        self.hop = [NONE] * count
        self.paired_after = [NONE] * count
        self.paired_hop = [NONE] * count
        self._connect()
        self.order = self._sort()

    def _number(self) -> None:
        """Tasks in columns, and which task is a place's forward or backward of a micro-batch."""
        virtual_stage = self._schedule.virtual_stage
        self.stage: list[int] = []
        self.work: list[int] = []
        self.virtual_stage: list[int] = []
        self.paired: list[int] = []
        self._forward: dict[tuple[int, int, int], int] = {}
        self._backward: dict[tuple[int, int, int], int] = {}
        for stage, (row, split) in enumerate(
            zip(self._schedule.rows, self._schedule.split, strict=True)
        ):
            for kind, microbatch, chunk, backward_microbatch, backward_chunk in row:
                task, key = len(self.stage), (stage, chunk, microbatch)
                paired = NONE
                if kind == "F":
                    work = FORWARD
                    self._forward[key] = task
                elif kind == "B":
                    work = INPUT if key[1:] in split else BACKWARD
                    self._backward[key] = task
                elif kind == "W":
                    work = WEIGHT
                else:
                    work = BOTH
                    paired = virtual_stage[stage, backward_chunk]
                    self._forward[key] = task
                    self._backward[stage, backward_chunk, backward_microbatch] = task
                self.stage.append(stage)
                self.work.append(work)
                self.virtual_stage.append(virtual_stage[stage, chunk])
                self.paired.append(paired)

    def _connect(self) -> None:
        schedule = self._schedule
        for microbatch in range(schedule.microbatches):
            route = schedule.route(microbatch)
            for before, behind in pairwise(route):
                hop = _hop(before, behind, schedule.stages)
                source = self._forward[(*before, microbatch)]
                target = self._forward[(*behind, microbatch)]
                self.after[target], self.hop[target] = source, hop
                source = self._backward[(*behind, microbatch)]
                target = self._backward[(*before, microbatch)]
                if self.work[target] == BOTH:
                    self.paired_after[target], self.paired_hop[target] = source, hop
                else:
                    self.after[target], self.hop[target] = source, hop

    def _sort(self) -> list[int]:
        """Each stage runs on until it waits for another one."""
        count, stages = len(self.stage), self._schedule.stages
        bounds = np.searchsorted(self.stage, range(stages + 1)).tolist()
        position, ends = bounds[:-1], bounds[1:]
        done = [False] * count
        waiting: dict[int, list[int]] = {}
        order: list[int] = []
        ready = list(range(stages))
        while ready:
            stage = ready.pop()
            for task in range(position[stage], ends[stage]):
                blocker = self._blocker(task, done)
                if blocker != NONE:
                    waiting.setdefault(blocker, []).append(stage)
                    position[stage] = task
                    break
                done[task] = True
                order.append(task)
                if task in waiting:
                    ready += waiting.pop(task)
            else:
                position[stage] = ends[stage]
        if len(order) < count:
            self._refuse(position, ends, done, bounds)
        return order

    def _blocker(self, task: int, done: list[bool]) -> int:
        for other in (self.after[task], self.paired_after[task]):
            if other != NONE and not done[other]:
                return other
        return NONE

    def _refuse(
        self, position: list[int], ends: list[int], done: list[bool], bounds: list[int]
    ) -> None:
        """Name one task of the circle: from a stage that waits to the one it waits for."""
        rows = self._schedule.rows
        stage = next(s for s in range(self._schedule.stages) if position[s] < ends[s])
        seen: set[int] = set()
        while stage not in seen:
            seen.add(stage)
            stage = self.stage[self._blocker(position[stage], done)]
        task = position[stage]
        blocker = self._blocker(task, done)
        other = self.stage[blocker]
        cell = rows[stage][task - bounds[stage]].cell
        awaited = rows[other][blocker - bounds[other]].cell
        raise ConfigError(
            "grid",
            f"{cell} on stage {stage}",
            f"waits for {awaited} on stage {other}, which cannot run before it; put it later, or "
            f"{awaited} earlier",
        )


def _hop(before: Place, behind: Place, stages: int) -> int:
    if before.stage == behind.stage:
        return NONE
    # Two stages are neighbours both ways round: only a loop goes on to another chunk.
    looped = before.chunk != behind.chunk
    return stages - 1 if looped else min(before.stage, behind.stage)
