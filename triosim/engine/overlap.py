"""Computations that take longer while their rank communicates.

The kernels that move data take streaming multiprocessors, memory bandwidth and power from the
computation beside them. One factor stands for all of that: a computation does the work of one
second in 1 + slowdown seconds while at least one transfer of its rank is under way, however many
there are. The transfers themselves are not slowed, nor is what the CPU does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import simpy

from triosim.network.clock import Alarm, after

CPU = -1  # stands for the rank class of what no transfer slows: the last entry of each list


class Computation:
    """A computation under way; at `since` it would still have taken `work_s` with nothing beside
    it, and takes `stretch` times that. Its `alarm` rings at `rings_s`, at its end or before."""

    __slots__ = ("alarm", "done", "rings_s", "since", "stretch", "work_s")

    alarm: Alarm
    rings_s: float

    def __init__(
        self, work_s: float, stretch: float, done: Callable[[], object], since: float
    ) -> None:
        self.work_s = work_s
        self.done = done
        self.since = since
        self.stretch = stretch

    @property
    def end_s(self) -> float:
        """If nothing changes."""
        return self.since + self.work_s * self.stretch

    @property
    def phase(self) -> int:
        """Nothing else is to be told of it."""
        return 0

    def left_s(self, now: float) -> float:
        return self.end_s - now


class Overlap:
    """The running computation of each rank class, and how many of its transfers are under way.

    Launches run on the `CPU` beside it.
    """

    def __init__(self, env: simpy.Environment, rank_classes: int, slowdown: float) -> None:
        self._env = env
        self._slowed = 1.0 + slowdown
        self._transfers = [0] * (rank_classes + 1)
        self._running: list[Computation | None] = [None] * (rank_classes + 1)

    def compute(
        self, rank_class: int, duration_s: float, done: Callable[[], object]
    ) -> Computation:
        """Start a computation now; `done` is called when it ends."""
        stretch = self._slowed if self._transfers[rank_class] else 1.0
        now = self._env.now
        computation = self._running[rank_class] = Computation(duration_s, stretch, done, now)
        self._set(rank_class, computation, now)
        return computation

    def count(self, rank_class: int, change: int) -> None:
        """A transfer of the class begins (1) or has arrived (-1).

        Where the rate changes, book what was done at the old one and go on at the new one.
        """
        moving = self._transfers[rank_class] = self._transfers[rank_class] + change
        computation = self._running[rank_class]
        if computation is None or moving != (change > 0):
            return  # nothing runs, or beside others that go on moving
        now = self._env.now
        passed_s = (now - computation.since) / computation.stretch
        computation.work_s = max(0.0, computation.work_s - passed_s)
        computation.since, computation.stretch = now, self._slowed if moving else 1.0
        if computation.end_s < computation.rings_s:
            computation.alarm.cancel()
            self._set(rank_class, computation, now)

    def _set(self, rank_class: int, computation: Computation, now: float) -> None:
        """NOTE: an end that moves back needs no new alarm before the old one has rung; that saves
        two of three where transfers come and go."""
        end_s = computation.rings_s = computation.end_s
        ring = partial(self._ring, rank_class, computation)
        computation.alarm = after(self._env, end_s - now, ring)

    def _ring(self, rank_class: int, computation: Computation, _alarm: object) -> None:
        now = self._env.now
        if computation.end_s > now:
            self._set(rank_class, computation, now)
            return
        self._running[rank_class] = None
        computation.done()
