"""The ranks of one pipeline stage in a program: one class where they all do the same.

A handle is one task for each class of the stage; these follow each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from triosim.engine.program import Part, Program, RankClass
from triosim.network.links import Load
from triosim.train.plan import Plan

Handle = range
CATEGORIES = (
    "parameters", "gradients", "optimizer", "activations", "gathered", "logits", "communication",
    "work", "framework",
)  # fmt: skip


class _Composed(NamedTuple):
    """What a composite task is on one class, and how much of it is computing."""

    parts: tuple[Part, ...]
    busy_s: float


class Stage:
    """Ranks of a stage that run at the same speed, in groups of the same speed, are one class.

    Inside a layer, tensor- and context-parallel ranks wait for the slowest of them.
    """

    def __init__(self, plan: Plan, program: Program, number: int, *, fold: bool) -> None:
        self.number = number
        self.program = program
        self.classes: list[int] = []
        self._provenance = plan.provenance
        self._speeds: list[tuple[float, float]] = []
        # By the parts' identity; with the parts, so that it stays taken.
        self._composed: dict[int, tuple[Sequence[Part], list[_Composed]]] = {}
        for (speed, slowest), members in _classes(plan, number, fold=fold):
            rank_class = RankClass(members=members, speed=speed, stage=number)
            self.classes.append(program.add_class(rank_class))
            self._speeds.append((speed, slowest))
        self.busy_s = [0.0] * len(self.classes)

    def reside(self, held: dict[str, int]) -> None:
        for c in self.classes:
            self.program.resident[c] += list(held.items())

    def compose(
        self, name: str, phase: str, parts: Sequence[Part], waits: Iterable[Handle] = ()
    ) -> Handle:
        """A composite task on every class, each at its speed."""
        before = list(waits)
        key = id(parts)
        if key not in self._composed:
            self._composed[key] = (parts, [self._own(parts, *speed) for speed in self._speeds])
        first = len(self.program)
        for i, (c, own) in enumerate(zip(self.classes, self._composed[key][1], strict=True)):
            self.program.compose(c, name, phase, own.parts, [h[i] for h in before])
            self.busy_s[i] += own.busy_s
        return self._since(first)

    def _own(self, parts: Sequence[Part], speed: float, slowest: float) -> _Composed:
        own = tuple(parts if speed == slowest == 1.0 else at_speed(parts, speed, slowest))
        return _Composed(own, _computing_s(own))

    def again(self, parts: Sequence[Sequence[Part]], times: int) -> None:
        """A composite task, with its parts on each class, has been copied so many times."""
        for i, own in enumerate(parts):
            self.busy_s[i] += times * _computing_s(own)

    def account(self) -> None:
        """Tell the program where the computing time of all tasks so far is from."""
        for c, busy_s in zip(self.classes, self.busy_s, strict=True):
            for kind, share in self._provenance.items():
                self.program.add_computing(c, kind, busy_s * share)

    def launch(self, name: str, seconds: float) -> Handle:
        first = len(self.program)
        for c in self.classes:
            self.program.launch(c, name, seconds)
        return self._since(first)

    def _since(self, first: int) -> Handle:
        return range(first, len(self.program))

    def communicate(
        self, stream: str, name: str, purpose: str, size_bytes: float, load: Load,
        waits: Iterable[Handle],
    ) -> Handle:  # fmt: skip
        """A collective of the stage's groups; `stream` is also its phase."""
        before, first = list(waits), len(self.program)
        self.program.communicate(
            [(c, stream, stream) for c in self.classes],
            name,
            purpose,
            size_bytes,
            load,
            [[h[i] for h in before] for i in range(len(self.classes))],
        )
        return self._since(first)

    def allocate(self, handle: Handle, category: str, size: float) -> None:
        whole = round(size)
        for task in handle if whole else ():
            self.program.allocate(task, category, whole)

    def free(self, handle: Handle, category: str, size: float) -> None:
        whole = round(size)
        for task in handle if whole else ():
            self.program.free(task, category, whole)


def _computing_s(parts: Iterable[Part]) -> float:
    return sum(part.seconds for part in parts if part.kind == "compute")


def _classes(
    plan: Plan, stage: int, *, fold: bool
) -> list[tuple[tuple[float, float], Sequence[int]]]:
    ranks = plan.stage_ranks(stage)
    speeds = plan.scenario.speeds
    ordered = np.sort(ranks.ravel())
    if not speeds:
        if not fold:
            return [((1.0, 1.0), (int(rank),)) for rank in ordered]
        first, count = int(ordered[0]), len(ordered)
        together = int(ordered[-1]) - first == count - 1
        return [((1.0, 1.0), range(first, first + count) if together else ordered.tolist())]
    slowest = {}
    for group in plan.groups("block", stage).tolist():
        least = min(speeds.get(rank, 1.0) for rank in group)
        slowest.update(dict.fromkeys(group, least))
    alike: dict[tuple[float, float, int], list[int]] = {}
    for rank in ordered.tolist():
        key = (speeds.get(rank, 1.0), slowest[rank], 0 if fold else rank)
        alike.setdefault(key, []).append(rank)
    return [((speed, least), members) for (speed, least, _), members in alike.items()]


def at_speed(parts: Sequence[Part], speed: float, slowest: float) -> list[Part]:
    """Computing takes longer on a slow rank; its peers wait for it at the next transfer."""
    scaled, busy = [], 0.0
    for part in parts:
        if part.kind == "compute":
            busy += part.seconds
            part = Part(part.kind, part.key, part.seconds / speed)
        scaled.append(part)
    if slowest < speed:
        scaled.append(Part("imbalance", ("", ""), busy * (1 / slowest - 1 / speed)))
    return scaled
