"""Stretches of a step that repeat what came before them, micro-batch after micro-batch.

A program is deterministic: from equal states, equal tasks take equal times. At each mark the run's
state is noted: what every stream does, and how long that still takes. Where it is the same as at an
earlier mark, the tasks from here on are compared with those from there on, each with the one as
many places further in its stream as that stream has come meanwhile: durations, loads, and what they
wait for in terms of the same steps. As long as they are alike, the stretch between the two marks
repeats itself, and its times are written down without being run again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from triosim.engine.columns import Columns, Integers
from triosim.engine.program import COPY_ENGINE_PHASES, Program
from triosim.network.fabric import Stretch

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

SAME = 1e-13  # of the time so far: readings of the clock that differ by less are rounding
KEPT = (
    4  # states of a kind that a new one is compared with, so that longer cycles are found as well
)
TRIES = 16  # comparisons of tasks that lead to nothing, before no more are made


@dataclass(frozen=True, kw_only=True, slots=True)
class State:
    """A run at a mark: where streams are (`heads`), what they do, and how long that still takes.

    `clock_s` is SimPy's time. The rest says how much had been recorded.
    """

    now_s: float
    clock_s: float
    heads: list[int]
    does: tuple[int, ...]
    left_s: list[float]
    logged: int
    stepped: list[int]
    sent: list[int]

    def resembles(self, other: State) -> bool:
        """Whether what is under way takes equally long; streams do the same in both."""
        rounding_s = SAME * self.now_s
        return all(abs(a - b) <= rounding_s for a, b in zip(self.left_s, other.left_s, strict=True))


@dataclass(frozen=True, kw_only=True, slots=True)
class Skipped:
    """Repetitions that are not run: where streams are after them and what tasks then wait for."""

    stretch: Stretch
    heads: list[int]
    blockers: list[int]
    ahead_s: float


class Repeats:
    """Finds stretches that repeat, and writes them down at the end."""

    def __init__(self, program: Program, columns: Columns) -> None:
        self._program = program
        self._columns = columns
        self._seen: dict[tuple[int, ...], list[State]] = {}
        self._compared: _Comparison | None = None
        self._tries = 0
        self._written: list[tuple[int, Integers, Floats]] = []

    def find(
        self, now: State, log: Sequence[int], start_s: Sequence[float], end_s: Sequence[float]
    ) -> Skipped | None:
        """What need not be run from a state on."""
        if self._tries >= TRIES:
            return None
        alike = self._seen.setdefault(now.does, [])
        for then in reversed(alike):
            if now.resembles(then):
                skipped = self._skip(then, now, log, start_s, end_s)
                if skipped is not None:
                    self._seen.clear()
                    return skipped
                self._tries += 1
                break
        alike.append(now)
        del alike[:-KEPT]
        return None

    def _skip(
        self,
        then: State,
        now: State,
        log: Sequence[int],
        start_s: Sequence[float],
        end_s: Sequence[float],
    ) -> Skipped | None:
        columns = self._columns
        if self._compared is None:
            self._compared = _Comparison(self._program, columns)
        before, heads = np.array(then.heads), np.array(now.heads)
        steps = heads - before
        times = self._compared.repetitions(before, heads)
        if times < 1:
            return None
        after = heads + times * steps
        ended = columns.place < after[columns.stream]
        waiting = columns.waiter[~ended[columns.waits]]
        blockers = np.bincount(waiting, minlength=len(ended)).tolist()
        for s in np.flatnonzero(steps == 0).tolist():
            tasks = columns.tasks(s)
            if after[s] < len(tasks) and not blockers[tasks[after[s]]]:
                return None  # what stands still would have gone on meanwhile
        stretch = _stretch(then, now, times)
        entries = np.array(log[then.logged :], dtype=np.int64)
        tasks = np.where(entries < 0, ~entries, entries)
        at_s = np.array([start_s[e] if e >= 0 else end_s[~e] for e in entries.tolist()])
        stream = columns.stream[tasks]
        places = columns.first[stream] + columns.place[tasks]
        repeated = columns.order[places + np.arange(1, times + 1)[:, None] * steps[stream]]
        self._written.append(
            (len(log), np.where(entries < 0, ~repeated, repeated).ravel(), stretch.at(at_s).ravel())
        )
        return Skipped(
            stretch=stretch,
            heads=after.tolist(),
            blockers=blockers,
            ahead_s=float(stretch.begins_s[-1]) - now.clock_s,
        )

    def fill(self, start_s: Floats, end_s: Floats, log: Integers) -> Integers:
        """Put the times in, in place; returns the whole log."""
        pieces, reached = [], 0
        for at, entries, times_s in self._written:
            starts = entries >= 0
            start_s[entries[starts]] = times_s[starts]
            end_s[~entries[~starts]] = times_s[~starts]
            pieces += [log[reached:at], entries]
            reached = at
        return np.concatenate([*pieces, log[reached:]])


def _stretch(then: State, now: State, times: int) -> Stretch:
    """Each repetition begins where the one before it ends; the last end is what the clock shows."""
    period_s = now.now_s - then.now_s
    begins_s = np.add.accumulate([now.now_s, *[period_s] * times])
    begins_s[-1] = now.clock_s + (begins_s[-1] - now.clock_s)
    return Stretch(
        first_s=then.now_s,
        last_s=now.now_s,
        begins_s=begins_s,
        stepped=then.stepped,
        sent=then.sent,
    )


class _Comparison:
    """Which tasks are alike, as far as the engine can tell."""

    def __init__(self, program: Program, columns: Columns) -> None:
        self._columns = columns
        self._lengths = np.diff(columns.first)
        count = len(program)
        moves, transfer = columns.transfer >= 0, columns.transfer
        loads = np.fromiter(map(id, program.loads), dtype=np.int64, count=len(program.loads))
        ends = np.fromiter(map(len, program.ends), dtype=np.int64, count=len(program.ends))
        load, joined = np.full(count, -1), np.zeros(count, dtype=np.int64)
        load[moves], joined[moves] = loads[transfer[moves]], ends[transfer[moves]]
        self._first_end = columns.first_end
        copies = columns.are(*COPY_ENGINE_PHASES)
        waits = np.diff(columns.wait_first)
        self._kinds = (np.array(program.duration_s), load, joined, copies, waits)

    def repetitions(self, before: Integers, heads: Integers) -> int:
        """How many times all that comes from `heads` on is like what came from `before` on."""
        columns, steps = self._columns, heads - before
        stream, place = columns.stream, columns.place
        step = steps[stream]
        chosen = (step > 0) & (place >= before[stream])
        chosen &= place + step < self._lengths[stream]
        one = np.flatnonzero(chosen)
        other = columns.order[columns.first[stream[one]] + place[one] + step[one]]
        alike = self._shifted(self._first_end[one], self._first_end[other], steps)
        for kind in self._kinds:
            alike &= kind[one] == kind[other]
        alike[alike] = self._wait_alike(one[alike], other[alike], steps)
        ends = self._lengths - steps  # of the places that can be compared
        np.minimum.at(ends, stream[one[~alike]], place[one[~alike]])
        moving = steps > 0
        times = (ends + steps - 1 - heads)[moving] // steps[moving]
        return int(times.min(initial=0 if not moving.any() else np.iinfo(np.int64).max))

    def _shifted(self, one: Integers, other: Integers, steps: Integers) -> Flags:
        """Whether tasks are as many places apart as their stream has come."""
        stream, place = self._columns.stream, self._columns.place
        moved: Flags = place[other] - place[one] == steps[stream[one]]
        moved &= stream[one] == stream[other]
        return moved

    def _wait_alike(self, one: Integers, other: Integers, steps: Integers) -> Flags:
        """Whether tasks wait for the same in terms of steps; they wait for equally many."""
        first, waits = self._columns.wait_first, self._columns.waits
        counts = np.diff(first)[one]
        owner = np.repeat(np.arange(len(one)), counts)
        within = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        here, there = (waits[first[tasks][owner] + within] for tasks in (one, other))
        unlike = owner[~self._shifted(here, there, steps)]
        alike = np.ones(len(one), dtype=bool)
        alike[unlike] = False
        return alike
