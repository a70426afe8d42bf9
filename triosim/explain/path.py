"""The critical path: the chain of tasks that makes the step as long as it is.

Walking back from the task that ends last, each time to the one that it waited for last, every task
starts when the one before it ends; so their times add up to the step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from triosim.engine.timeline import Timeline
from triosim.explain.kinds import kinds_of


@dataclass(frozen=True, kw_only=True, slots=True)
class PathStep:
    """One task of the path, on a rank of the class that runs it.

    `kinds_s` are its seconds by kind, of which a composite task has several; they sum to it.
    """

    task: int
    rank_class: int
    rank: int
    stream: str
    name: str
    start_s: float
    end_s: float
    kinds_s: Mapping[str, float]

    @property
    def seconds(self) -> float:
        return self.end_s - self.start_s

    @property
    def kind(self) -> str:
        """What most of it is."""
        return max(self.kinds_s, key=self.kinds_s.__getitem__)


def critical_path(
    timeline: Timeline, last: int | None = None, begin_s: float = 0.0
) -> tuple[PathStep, ...]:
    """In order of time, from `begin_s` to the end of the task `last` (None: the last of all)."""
    if not len(timeline.end_s):
        return ()
    task = int(np.argmax(timeline.end_s)) if last is None else last
    steps = []
    while task >= 0 and timeline.end_s[task] > begin_s:
        steps.append(_step(timeline, task, begin_s))
        task = timeline.critical[task]
    return tuple(reversed(steps))


def _step(timeline: Timeline, task: int, begin_s: float) -> PathStep:
    """A task; of one that began before `begin_s` only what lies after it."""
    program = timeline.program
    stream = program.streams[program.stream[task]]
    start_s, end_s = float(timeline.start_s[task]), float(timeline.end_s[task])
    kinds = kinds_of(program, task, end_s - start_s)
    if start_s < begin_s:
        left = (end_s - begin_s) / (end_s - start_s)
        kinds = {kind: seconds * left for kind, seconds in kinds.items()}
        start_s = begin_s
    return PathStep(
        task=task,
        rank_class=stream.rank_class,
        rank=program.classes[stream.rank_class].rank,
        stream=stream.name,
        name=program.name[task],
        start_s=start_s,
        end_s=end_s,
        kinds_s=kinds,
    )


def totals_s(path: Iterable[PathStep]) -> dict[str, float]:
    """Seconds of the path by kind, the most first; they sum to the path."""
    sums: dict[str, float] = {}
    for step in path:
        for kind, seconds in step.kinds_s.items():
            sums[kind] = sums.get(kind, 0.0) + seconds
    return dict(sorted(sums.items(), key=lambda item: -item[1]))
