"""Bytes in use over the step, by category."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from triosim.engine.columns import Integers
from triosim.engine.timeline import Timeline
from triosim.trace.memory import Role

CATEGORIES = tuple(str(role) for role in Role)


@dataclass(frozen=True, kw_only=True)
class MemoryCurve:
    """Levels after each change; the first entry is the start of the step.

    `bytes_by_category[c][i]` holds from `time_s[i]` to the next entry.
    """

    time_s: npt.NDArray[np.float64]
    bytes_by_category: Mapping[str, npt.NDArray[np.int64]]

    @cached_property
    def total_bytes(self) -> npt.NDArray[np.int64]:
        total = np.zeros(len(self.time_s), dtype=np.int64)
        for levels in self.bytes_by_category.values():
            total += levels
        return total

    @property
    def peak_bytes(self) -> int:
        return int(self.total_bytes.max())

    @property
    def peak_time_s(self) -> float:
        return float(self.time_s[int(self.total_bytes.argmax())])


def memory_curves(timeline: Timeline, categories: Sequence[str] = CATEGORIES) -> list[MemoryCurve]:
    """One curve per rank class: the changes in the order in which the engine made them."""
    program = timeline.program
    task = np.array(program.memory_task, dtype=np.int64)
    size = np.array(program.memory_bytes, dtype=np.int64)
    codes = {category: i for i, category in enumerate(categories)}
    category = np.array([codes[name] for name in program.memory_category], dtype=np.int64)
    given = size > 0
    started, ended = _positions(timeline)
    order = np.argsort(np.where(given, started[task], ended[task]), kind="stable")
    time_s = np.where(given, timeline.start_s[task], timeline.end_s[task])
    order = order[np.argsort(timeline.rank_class[task[order]], kind="stable")]
    starts = np.searchsorted(timeline.rank_class[task[order]], np.arange(1, len(program.classes)))
    curves = []
    for resident, own in zip(program.resident, np.split(order, starts), strict=True):
        # One row for each category: sums over neighbours in memory take a third of the time.
        changes = np.zeros((len(categories), len(own) + 1), dtype=np.int64)
        for name, start in resident:
            changes[codes[name], 0] += start
        changes[category[own], np.arange(1, len(own) + 1)] = size[own]
        levels = np.cumsum(changes, axis=1)
        curves.append(
            MemoryCurve(
                time_s=np.concatenate(([0.0], time_s[own])),
                bytes_by_category={name: levels[i] for name, i in codes.items()},
            )
        )
    return curves


def _positions(timeline: Timeline) -> tuple[Integers, Integers]:
    """Where in the log each task starts and ends."""
    log = timeline.log
    started = np.zeros(len(timeline.start_s), dtype=np.int64)
    ended = np.zeros_like(started)
    where = np.arange(len(log))
    starts = log >= 0
    started[log[starts]] = where[starts]
    ended[~log[~starts]] = where[~starts]
    return started, ended
