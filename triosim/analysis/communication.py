"""What moved, how long it took, and how much of that nobody computed under."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from triosim.analysis.breakdown import Breakdown, transfer_key
from triosim.engine.timeline import Timeline


@dataclass(frozen=True, kw_only=True, slots=True)
class Communication:
    """One kind of transfer for one purpose, over all ranks.

    `bytes` is the sum over ranks of what was sent GPU to GPU (fetched or stored for remote memory);
    `busy_s` and `exposed_s` are means over ranks: time in which such a transfer was moving, and the
    part of it that the rank had nothing else to do.
    """

    kind: str
    purpose: str
    transfers: int
    bytes: float
    busy_s: float
    exposed_s: float


def summarise_communication(
    timeline: Timeline, breakdowns: Sequence[Breakdown]
) -> list[Communication]:
    """One row per kind and purpose, the longest exposed first."""
    program = timeline.program
    ranks = sum(len(c.members) for c in program.classes)
    rows: dict[tuple[str, str], dict[int, list[int]]] = {}
    for task, transfer in enumerate(program.transfer):
        if transfer >= 0:
            by_class = rows.setdefault(transfer_key(timeline, task), {})
            by_class.setdefault(timeline.class_list[task], []).append(task)
    result = []
    for (kind, purpose), by_class in rows.items():
        moved = busy = exposed = 0.0
        for c, rank_class in enumerate(program.classes):
            members = len(rank_class.members)
            own = by_class.get(c, [])
            remote = kind in ("fetch", "store")
            sizes = program.bytes if remote else program.sent_bytes
            moved += members * sum(sizes[task] for task in own)
            busy += members * _union_s(timeline, own)
            exposed += members * breakdowns[c].exposed_s.get((kind, purpose), 0.0)
        result.append(
            Communication(
                kind=kind,
                purpose=purpose,
                transfers=len(
                    {program.transfer[task] for own in by_class.values() for task in own}
                ),
                bytes=moved,
                busy_s=busy / ranks,
                exposed_s=exposed / ranks,
            )
        )
    return sorted(result, key=lambda row: (-row.exposed_s, -row.busy_s, row.kind, row.purpose))


def _union_s(timeline: Timeline, tasks: Sequence[int]) -> float:
    """Time in which at least one of the tasks is under way."""
    if not tasks:
        return 0.0
    start, end = timeline.start_s[list(tasks)], timeline.end_s[list(tasks)]
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    reached = np.maximum.accumulate(end)
    uncovered_from = np.maximum(start, np.concatenate(([-np.inf], reached[:-1])))
    return float(np.maximum(end - uncovered_from, 0.0).sum())
