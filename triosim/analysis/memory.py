"""Bytes in use over the step, by category."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

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

    @property
    def total_bytes(self) -> npt.NDArray[np.int64]:
        total: npt.NDArray[np.int64] = np.sum(list(self.bytes_by_category.values()), axis=0)
        return total

    @property
    def peak_bytes(self) -> int:
        return int(self.total_bytes.max())

    @property
    def peak_time_s(self) -> float:
        return float(self.time_s[int(self.total_bytes.argmax())])


def memory_curve(timeline: Timeline, rank_class: int) -> MemoryCurve:
    """Follow the log of starts and ends of one rank class."""
    program = timeline.program
    start = dict.fromkeys(CATEGORIES, 0)
    for category, size in program.resident[rank_class]:
        start[category] += size
    times = [0.0]
    changes: list[list[int]] = [[start[category] for category in CATEGORIES]]
    position = {category: i for i, category in enumerate(CATEGORIES)}
    own = timeline.rank_class == rank_class
    for entry in timeline.log.tolist():
        task, sign = (entry, 1) if entry >= 0 else (~entry, -1)
        events = (program.allocated if sign > 0 else program.freed).get(task)
        if events is None or not own[task]:
            continue
        change = [0] * len(CATEGORIES)
        for category, size in events:
            change[position[category]] += sign * size
        times.append(float((timeline.start_s if sign > 0 else timeline.end_s)[task]))
        changes.append(change)
    levels = np.cumsum(np.array(changes, dtype=np.int64), axis=0)
    return MemoryCurve(
        time_s=np.array(times),
        bytes_by_category={c: levels[:, i] for i, c in enumerate(CATEGORIES)},
    )
