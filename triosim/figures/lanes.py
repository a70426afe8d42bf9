"""Which rows a timeline has: one for each stream of each chosen GPU."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from triosim.figures.text import MIDDLE_DOT, TIMES
from triosim.result import Result

MAX_LANES = 256
STREAM_ORDER = (
    "compute",
    "collective",
    "send to next",
    "receive from previous",
    "send to previous",
    "receive from next",
    "fetch",
    "store",
)


@dataclass(frozen=True, slots=True)
class Lane:
    """A row: a stream (a position in the program's streams) as one rank sees it."""

    rank: int
    rank_class: int
    stream: int
    label: str
    compute: bool


@dataclass(frozen=True, slots=True)
class Lanes:
    """The rows that fit, and a sentence about GPUs that do not."""

    lanes: Sequence[Lane]
    note: str

    @property
    def labels(self) -> list[str]:
        return [lane.label for lane in self.lanes]


def choose_lanes(result: Result, ranks: Iterable[int]) -> Lanes:
    """All streams of as many of the ranks as fit, in their order."""
    chosen = list(dict.fromkeys(ranks))
    names = gpu_labels(result, chosen)
    streams = _streams_by_class(result)
    lanes: list[Lane] = []
    for shown, rank in enumerate(chosen):
        c = result.class_of(rank)
        if lanes and len(lanes) + len(streams[c]) > MAX_LANES:
            return Lanes(lanes, f"{shown:,} of {len(chosen):,} chosen GPUs drawn")
        lanes += [
            Lane(rank, c, s, f"{names[shown]} {MIDDLE_DOT} {name}", name == "compute")
            for s, name in streams[c]
        ]
    return Lanes(lanes, "")


def gpu_labels(result: Result, ranks: Sequence[int]) -> list[str]:
    """Names of GPUs; where only one of each class is shown, with how many it stands for."""
    representatives = [c.rank for c in result.classes]
    if list(ranks) != representatives:
        return [f"GPU {rank}" for rank in ranks]
    sizes = [len(c.members) for c in result.classes]
    return [
        f"GPU {rank} ({TIMES}{size:,})" if size > 1 else f"GPU {rank}"
        for rank, size in zip(ranks, sizes, strict=True)
    ]


def _streams_by_class(result: Result) -> list[list[tuple[int, str]]]:
    """For each rank class its streams in the order of display."""
    order = {name: i for i, name in enumerate(STREAM_ORDER)}
    found: list[list[tuple[int, str]]] = [[] for _ in result.classes]
    for position, stream in enumerate(result.tasks.program.streams):
        found[stream.rank_class].append((position, stream.name))
    for streams in found:
        streams.sort(key=lambda item: (order.get(item[1], len(order)), item[1]))
    return found
