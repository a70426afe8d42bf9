"""Computations that take longer while their rank communicates.

The kernels that move data take streaming multiprocessors, memory bandwidth and power from the
computation beside them. One factor stands for all of that: a computation does the work of one
second in 1 + slowdown seconds while at least one transfer of its rank is under way, however many
there are. The transfers themselves are not slowed.
"""

from __future__ import annotations

import simpy


class Computation:
    """A computation under way; `left_s` is what it would still take with nothing beside it."""

    __slots__ = ("done", "left_s", "since", "version")

    def __init__(self, duration_s: float, done: simpy.Event) -> None:
        self.done = done
        self.left_s = duration_s
        self.since = 0.0
        self.version = 0


class Overlap:
    """The running computation of each rank class, and how many of its transfers are under way."""

    def __init__(self, env: simpy.Environment, rank_classes: int, slowdown: float) -> None:
        self._env = env
        self._slowed = 1.0 + slowdown
        self._transfers = [0] * rank_classes
        self._running: list[Computation | None] = [None] * rank_classes

    def compute(self, rank_class: int, duration_s: float) -> simpy.Event:
        """Start a computation now; the event fires when it ends."""
        computation = Computation(duration_s, self._env.event())
        self._running[rank_class] = computation
        self._run(rank_class, computation, self._stretch(rank_class))
        return computation.done

    def transfer(self, rank_class: int, arrived: simpy.Event) -> None:
        """One more transfer of the class is under way, until the event."""
        self._count(rank_class, +1)
        arrived.callbacks.append(lambda _: self._count(rank_class, -1))

    def _count(self, rank_class: int, change: int) -> None:
        """Where the rate changes, book what was done at the old one and go on at the new one."""
        before = self._stretch(rank_class)
        self._transfers[rank_class] += change
        after = self._stretch(rank_class)
        computation = self._running[rank_class]
        if computation is not None and after != before:
            passed_s = self._env.now - computation.since
            computation.left_s = max(0.0, computation.left_s - passed_s / before)
            self._run(rank_class, computation, after)

    def _stretch(self, rank_class: int) -> float:
        return self._slowed if self._transfers[rank_class] else 1.0

    def _run(self, rank_class: int, computation: Computation, stretch: float) -> None:
        computation.since = self._env.now
        computation.version = version = computation.version + 1
        self._env.timeout(computation.left_s * stretch).callbacks.append(
            lambda _: self._end(rank_class, computation, version)
        )

    def _end(self, rank_class: int, computation: Computation, version: int) -> None:
        if version != computation.version:
            return  # its rate has changed since; a later timeout is the right one
        self._running[rank_class] = None
        computation.done.succeed()
