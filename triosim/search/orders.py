"""What the order of a schedule's tasks decides alone: how much each stage computes and holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from triosim.schedules import Place, Schedule, Task
from triosim.train.blocks import BACKWARD, FORWARD, INPUT, WEIGHT

# A kind of pass and the part of the model that it is of, counted.
Passes = Mapping[tuple[str, int], int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """One stage's row.

    `passes` are all it runs, `before` what runs on other stages before its first task can start,
    `after` what runs on others once its last has ended: kinds of passes of parts of the model, and
    how often. `held` are numbers of micro-batches in flight per part of the model, at instants of
    which no other has as many of each. `paired`: a forward and a backward run beside each other.
    """

    passes: Passes
    before: Passes
    after: Passes
    held: tuple[Passes, ...]
    paired: bool


def orders_of(schedule: Schedule) -> list[Order]:
    """One for each stage."""
    return [_order(schedule, stage, row) for stage, row in enumerate(schedule.rows)]


def _order(schedule: Schedule, stage: int, row: Sequence[Task]) -> Order:
    passes: Counter[tuple[str, int]] = Counter()
    now: Counter[tuple[str, int]] = Counter()
    held: list[Passes] = []
    rising = False
    for task in row:
        for kind, chunk in _passes(schedule, stage, task):
            part = schedule.virtual_stage[stage, chunk]
            passes[kind, part] += 1
            if kind == FORWARD:
                now[FORWARD, part] += 1
                rising = True
            elif kind != INPUT:
                if rising:
                    held.append(dict(now))
                rising = False
                now[FORWARD, part] -= 1
    if rising:
        held.append(dict(now))
    return Order(
        passes=passes,
        before=_before(schedule, stage, row[0]),
        after=_after(schedule, stage, row[-1]),
        held=_largest(held),
        paired=any(task.kind == "F&B" for task in row),
    )


def _passes(schedule: Schedule, stage: int, task: Task) -> list[tuple[str, int]]:
    """The passes of a task and the chunks they are of; of a pair the forward runs first."""
    if task.kind == "F":
        return [(FORWARD, task.chunk)]
    if task.kind == "W":
        return [(WEIGHT, task.chunk)]
    both = task.kind == "F&B"
    chunk = task.backward_chunk if both else task.chunk
    microbatch = task.backward_microbatch if both else task.microbatch
    split = (chunk, microbatch) in schedule.split[stage]
    backward = (INPUT if split else BACKWARD, chunk)
    return [(FORWARD, task.chunk), backward] if both else [backward]


def _before(schedule: Schedule, stage: int, first: Task) -> Passes:
    route = schedule.route(first.microbatch)
    place = route.index(Place(stage, first.chunk))
    return Counter((FORWARD, schedule.virtual_stage[p]) for p in route[:place])


def _after(schedule: Schedule, stage: int, last: Task) -> Passes:
    if last.kind != "B":
        return {}
    route = schedule.route(last.microbatch)
    place = route.index(Place(stage, last.chunk))
    return Counter(
        (
            INPUT if (p.chunk, last.microbatch) in schedule.split[p.stage] else BACKWARD,
            schedule.virtual_stage[p],
        )
        for p in route[:place]
    )


def _largest(held: Sequence[Passes]) -> tuple[Passes, ...]:
    distinct = [dict(items) for items in dict.fromkeys(tuple(sorted(h.items())) for h in held)]
    if len({part for one in distinct for part in one}) == 1:
        return (max(distinct, key=lambda one: next(iter(one.values()))),)
    return tuple(distinct)
