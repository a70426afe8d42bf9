"""A pipeline schedule as data: what each stage runs, in order, and the way through the stages.

No durations: the published schedules are static orders. A virtual stage is one part of the model; a
route is the order of places (stage and chunk there) that hold the virtual stages. There is one
route, except where two copies of the model are run through in opposite directions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from triosim.errors import ConfigError
from triosim.schedules.columns import Row
from triosim.schedules.wiring import Wiring

KINDS = ("F", "B", "W", "F&B")


class Place(NamedTuple):
    """Where a virtual stage is: the stage (a device) and which of its chunks."""

    stage: int
    chunk: int


class Task(NamedTuple):
    """One cell of a schedule.

    F forward, B backward, W the weight part of a backward; where a W stands in the row, its B is
    the input part alone. F&B is a forward overlapped with the backward of `backward_microbatch` in
    `backward_chunk`.
    """

    kind: str
    microbatch: int
    chunk: int = 0
    backward_microbatch: int = -1
    backward_chunk: int = -1

    @property
    def cell(self) -> str:
        """As in a grid: F3, B0.1 for chunk 1, F3&B0."""
        own = _cell(self.kind[0], self.microbatch, self.chunk)
        if self.kind != "F&B":
            return own
        return f"{own}&{_cell('B', self.backward_microbatch, self.backward_chunk)}"


def _cell(kind: str, microbatch: int, chunk: int) -> str:
    return f"{kind}{microbatch}" + (f".{chunk}" if chunk else "")


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Rows of tasks, one row for each stage, and the routes.

    With several routes each takes an equal share of the micro-batches, the first ones first.
    """

    name: str
    microbatches: int
    rows: tuple[tuple[Task, ...], ...]
    routes: tuple[tuple[Place, ...], ...]

    @property
    def stages(self) -> int:
        return len(self.rows)

    @property
    def virtual_stages(self) -> int:
        """Into how many parts the model is cut."""
        return len(self.routes[0])

    @property
    def chunks(self) -> int:
        """Virtual stages on each stage."""
        return len(self.routes) * self.virtual_stages // self.stages

    @property
    def parameter_copies(self) -> int:
        """How often the whole model is held: 2 where routes go in both directions."""
        return len(self.routes)

    def route(self, microbatch: int) -> tuple[Place, ...]:
        """The places that a micro-batch's forward passes, in order."""
        return self.routes[microbatch * len(self.routes) // self.microbatches]

    @cached_property
    def virtual_stage(self) -> dict[tuple[int, int], int]:
        """Which part of the model is at a place."""
        return {place: k for route in self.routes for k, place in enumerate(route)}

    @cached_property
    def split(self) -> tuple[frozenset[tuple[int, int]], ...]:
        """Each stage's backwards whose weight part is a task of its own: (chunk, micro-batch)."""
        return tuple(
            frozenset((task.chunk, task.microbatch) for task in row if task.kind == "W")
            for row in self.rows
        )

    @cached_property
    def columns(self) -> tuple[Row, ...]:
        """Each stage's row in columns."""
        return tuple(Row(row, split) for row, split in zip(self.rows, self.split, strict=True))

    @cached_property
    def peak_in_flight(self) -> tuple[float, ...]:
        """The most activations that each stage holds, in whole stages.

        From the start of a forward to the end of its backward, the weight part included; a chunk
        counts as its share of a stage. The order alone decides it, durations do not.
        """
        share = self.stages / self.virtual_stages
        return tuple(
            share * _peak(row, split) for row, split in zip(self.rows, self.split, strict=True)
        )

    @cached_property
    def sends(self) -> int:
        """Transfers of one micro-batch from stage to stage, both ways together."""
        return 2 * sum(here.stage != there.stage for here, there in pairwise(self.routes[0]))

    @cached_property
    def wiring(self) -> Wiring:
        """What each task waits for; `ConfigError` where tasks wait for each other in a circle."""
        return Wiring(self)


def _peak(row: Sequence[Task], split: frozenset[tuple[int, int]]) -> int:
    held = most = 0
    for task in row:
        held += task.kind in ("F", "F&B")
        most = max(most, held)
        if task.kind == "F&B":
            held -= (task.backward_chunk, task.backward_microbatch) not in split
        elif task.kind == "B":
            held -= (task.chunk, task.microbatch) not in split
        else:
            held -= task.kind == "W"
    return most


def looped(stages: int, chunks: int) -> tuple[Place, ...]:
    """Virtual stage k is on stage k mod p: the route runs over all stages once for each chunk."""
    return tuple(Place(stage, chunk) for chunk in range(chunks) for stage in range(stages))


def refuse_chunks(schedule: str, chunks: int, legal: Iterable[int] = (1,)) -> None:
    """The number of chunks is part of the schedule; 1, the default, always means that number."""
    if chunks not in {1, *legal}:
        number = " or ".join(str(n) for n in legal)
        raise ConfigError(
            "chunks",
            chunks,
            f"{schedule} runs {number} on each stage; interleaved and looped-bfs take any number",
        )
