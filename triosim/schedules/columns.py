"""A row of a schedule in columns: what each of its tasks is, for those who go over all of them."""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from triosim.schedules.schedule import Task

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Row:
    """One stage's tasks.

    Tasks of equal `sort` differ in their micro-batches only: they are of one kind, in the same
    chunks, and both or neither has its weight part apart (`split`, by chunk and micro-batch).
    """

    def __init__(self, tasks: Sequence[Task], split: Set[tuple[int, int]]) -> None:
        self.tasks = tasks
        sorts: dict[tuple[str, int, int, bool], int] = {}
        sort: list[int] = []
        for kind, microbatch, chunk, backward_microbatch, backward_chunk in tasks:
            paired = kind == "F&B"
            back = (backward_chunk, backward_microbatch) if paired else (chunk, microbatch)
            apart = kind in ("B", "F&B") and back in split
            sort.append(sorts.setdefault((kind, chunk, backward_chunk, apart), len(sorts)))
        self.sort = np.array(sort, dtype=np.int64)
        self.kinds = [kind for kind, *_ in sorts]

    @cached_property
    def columns(self) -> Integers:
        """Micro-batch, chunk, and those of the backward in a pair: an array of four rows."""
        numbers = [task[1:] for task in self.tasks]
        return np.array(numbers, dtype=np.int64).reshape(-1, 4).T

    def are(self, *kinds: str) -> Flags:
        """Which tasks are of one of these kinds."""
        chosen = np.array([kind in kinds for kind in self.kinds], dtype=bool)
        return chosen[self.sort] if len(chosen) else np.zeros(0, dtype=bool)

    @cached_property
    def forwards(self) -> tuple[Integers, Integers, Integers]:
        """Place in the row, chunk and micro-batch of each forward, those of pairs among them."""
        places = np.flatnonzero(self.are("F", "F&B"))
        microbatch, chunk, _, _ = self.columns[:, places]
        return places, chunk, microbatch

    @cached_property
    def backwards(self) -> tuple[Integers, Integers, Integers]:
        """The same of each backward, or of its input part."""
        places = np.flatnonzero(self.are("B", "F&B"))
        paired = self.are("F&B")[places]
        microbatch, chunk, backward_microbatch, backward_chunk = self.columns[:, places]
        return (
            places,
            np.where(paired, backward_chunk, chunk),
            np.where(paired, backward_microbatch, microbatch),
        )

    @cached_property
    def first(self) -> dict[int, int]:
        """Where each chunk's first forward stands."""
        places, chunk, _ = self.forwards
        return dict(zip(chunk[::-1].tolist(), places[::-1].tolist(), strict=True))

    @cached_property
    def last(self) -> dict[int, int]:
        """Where each chunk's last backward stands, or the last part of one."""
        places = np.flatnonzero(~self.are("F"))
        _, chunk, _, backward_chunk = self.columns[:, places]
        own = np.where(self.are("F&B")[places], backward_chunk, chunk)
        return dict(zip(own.tolist(), places.tolist(), strict=True))
