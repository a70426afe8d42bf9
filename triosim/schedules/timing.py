"""When each task of a schedule starts and ends: a longest path, exact.

A task starts when the one before it in its row has ended and what it waits for has ended and been
transferred. Transfers run beside computation and never share a link; each is a fixed delay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from triosim.schedules.schedule import Schedule
from triosim.schedules.wiring import BACKWARD, BOTH, FORWARD, INPUT, NONE, WEIGHT

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Durations:
    """What one micro-batch takes, one value for each virtual stage, any unit.

    `backward` includes `weight`. An overlapped pair takes its forward plus its backward. `hop` has
    one value for each stage: from it to the next or back, the last one between last and first.
    """

    forward: Sequence[float]
    backward: Sequence[float]
    weight: Sequence[float]
    hop: Sequence[float]


@dataclass(frozen=True, kw_only=True, eq=False)
class Timing:
    """Starts and ends of all tasks, row after row, as in `Schedule.rows`."""

    schedule: Schedule
    start: Floats
    end: Floats

    @property
    def makespan(self) -> float:
        """From the first start, 0, to the last end."""
        return float(self.end.max(initial=0.0))

    @property
    def period(self) -> float:
        """Time of a step in the steady state: the largest span of a stage, first task to last.

        The next step can enter a stage as soon as this one has left it, where the optimizer is
        local to the stage.
        """
        return max(self.spans)

    @cached_property
    def spans(self) -> tuple[float, ...]:
        """From the start of each stage's first task to the end of its last one."""
        first, last = self._bounds[:-1], self._bounds[1:] - 1
        return tuple((self.end[last] - self.start[first]).tolist())

    @cached_property
    def busy(self) -> tuple[float, ...]:
        """The computing time of each stage."""
        return tuple(np.add.reduceat(self.end - self.start, self._bounds[:-1]).tolist())

    @property
    def _bounds(self) -> npt.NDArray[np.int64]:
        return np.cumsum([0, *(len(row) for row in self.schedule.rows)])


def task_durations(schedule: Schedule, durations: Durations) -> list[float]:
    """The duration of every task, row after row."""
    forward, backward, weight = (
        np.array(values, dtype=float)
        for values in (durations.forward, durations.backward, durations.weight)
    )
    table = np.empty((5, schedule.virtual_stages))
    table[FORWARD], table[BACKWARD], table[INPUT] = forward, backward, backward - weight
    table[WEIGHT], table[BOTH] = weight, forward
    wiring = schedule.wiring
    own = table[wiring.work, wiring.virtual_stage]
    paired = np.array(wiring.paired)
    own += np.where(paired == NONE, 0.0, backward[paired])
    taken: list[float] = own.tolist()
    return taken


def hop_delays(hop: Sequence[float], hops: Sequence[int]) -> list[float]:
    """The delay of each hop; none where a task waits for nobody or for its own stage."""
    table = [*hop, 0.0]  # NONE is -1, the last entry
    return [table[i] for i in hops]


def time_schedule(schedule: Schedule, durations: Durations) -> Timing:
    """Run a schedule with durations."""
    wiring = schedule.wiring
    taken = task_durations(schedule, durations)
    delay = hop_delays(durations.hop, wiring.hop)
    paired_delay = hop_delays(durations.hop, wiring.paired_hop)
    stage, after, paired_after = wiring.stage, wiring.after, wiring.paired_after
    free = [0.0] * schedule.stages
    start = [0.0] * len(taken)
    end = [0.0] * len(taken)
    for task in wiring.order:
        at = free[stage[task]]
        blocker = after[task]
        if blocker >= 0:
            at = max(at, end[blocker] + delay[task])
        blocker = paired_after[task]
        if blocker >= 0:
            at = max(at, end[blocker] + paired_delay[task])
        start[task] = at
        free[stage[task]] = end[task] = at + taken[task]
    return Timing(schedule=schedule, start=np.array(start), end=np.array(end))
