"""What moved, how long it took, and how much of that nobody computed under."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from triosim.analysis.breakdown import Breakdown, transfer_keys
from triosim.engine.columns import Integers
from triosim.engine.intervals import covered
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

    def to_dict(self) -> dict[str, Any]:
        """As files and tables have it: times in milliseconds."""
        return {
            "kind": self.kind,
            "purpose": self.purpose,
            "transfers": self.transfers,
            "bytes": self.bytes,
            "busy_ms": self.busy_s * 1e3,
            "exposed_ms": self.exposed_s * 1e3,
        }


def summarise_communication(
    timeline: Timeline, breakdowns: Sequence[Breakdown]
) -> list[Communication]:
    """One row per kind and purpose, the longest exposed first."""
    program = timeline.program
    ranks = sum(len(c.members) for c in program.classes)
    moved_bytes, sent_bytes = np.array(program.bytes), np.array(program.sent_bytes)
    result = []
    for (kind, purpose), tasks in _by_kind(timeline).items():
        sizes = moved_bytes if kind in ("fetch", "store") else sent_bytes
        classes = timeline.rank_class[tasks]
        moved = busy = exposed = 0.0
        for c in np.flatnonzero(np.bincount(classes)).tolist():
            members, own = len(program.classes[c].members), tasks[classes == c]
            moved += members * float(sizes[own].sum())
            busy += members * covered(timeline.start_s[own], timeline.end_s[own])
            exposed += members * breakdowns[c].exposed_s.get((kind, purpose), 0.0)
        result.append(
            Communication(
                kind=kind,
                purpose=purpose,
                transfers=int(np.bincount(timeline.first_end[tasks]).astype(bool).sum()),
                bytes=moved,
                busy_s=busy / ranks,
                exposed_s=exposed / ranks,
            )
        )
    return sorted(result, key=lambda row: (-row.exposed_s, -row.busy_s, row.kind, row.purpose))


def _by_kind(timeline: Timeline) -> dict[tuple[str, str], Integers]:
    """The ends of transfers by kind and purpose."""
    kinds: dict[tuple[str, str], list[Integers]] = {}
    for number, key in enumerate(transfer_keys(timeline)):
        kinds.setdefault(key, []).append(np.flatnonzero(timeline.transfer_kind == number))
    return {key: np.concatenate(parts) for key, parts in kinds.items()}
