"""All the time in which a rank computes nothing, piece by piece; by class it sums to the breakdown.

Beside the gaps of the compute stream, a composite task (a layer or a stage that was simulated on
its own) has waits inside: one piece for each kind, somewhere between the task's start and its end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from triosim.analysis.breakdown import Breakdown, Gap, transfer_key
from triosim.engine.timeline import Timeline

Key = tuple[str, str]
_EXPOSED = "exposed_communication"


@dataclass(frozen=True, kw_only=True, slots=True)
class Wait:
    """A piece of a rank's step in which it does not compute.

    `kind` is a class of the breakdown other than compute, `key` phase and purpose of the transfer
    that is exposed, else empty. `cause` is the task that is waited for, `before` the one that could
    not start, `inside` the composite task whose waits these are; -1 where there is none.
    `seconds` is less than `end_s - start_s` only inside a composite task.
    """

    rank_class: int
    kind: str
    key: Key
    start_s: float
    end_s: float
    seconds: float
    cause: int = -1
    before: int = -1
    inside: int = -1


def waits_of(timeline: Timeline, breakdown: Breakdown, rank_class: int) -> tuple[Wait, ...]:
    """The waits of one rank of a class in the order of their starts."""
    waits = [_gap(timeline, rank_class, gap) for gap in breakdown.gaps]
    waits += _inside(timeline, rank_class)
    found = sorted(waits, key=lambda wait: (wait.start_s, wait.end_s))
    return tuple(_steady(timeline, breakdown, rank_class, found))


def _gap(timeline: Timeline, rank_class: int, gap: Gap) -> Wait:
    return Wait(
        rank_class=rank_class,
        kind=gap.kind,
        key=transfer_key(timeline, gap.cause) if gap.kind == _EXPOSED else ("", ""),
        start_s=gap.start_s,
        end_s=gap.end_s,
        seconds=gap.seconds,
        cause=gap.cause,
        before=gap.before,
    )


def _inside(timeline: Timeline, rank_class: int) -> Iterator[Wait]:
    parts = timeline.program.parts
    for task in timeline.tasks(rank_class, "compute").tolist() if parts else ():
        for part in parts.get(task, ()):
            if part.kind != "compute" and part.seconds > 0:
                yield Wait(
                    rank_class=rank_class,
                    kind=part.kind,
                    key=part.key,
                    start_s=float(timeline.start_s[task]),
                    end_s=float(timeline.end_s[task]),
                    seconds=part.seconds,
                    inside=task,
                )


def _steady(
    timeline: Timeline, breakdown: Breakdown, rank_class: int, waits: list[Wait]
) -> Iterator[Wait]:
    """Where a step overlaps the next one, what a rank has left of the period is idle.

    It follows the rank's own part, and may reach beyond the makespan.
    """
    idle_s = breakdown.classes_s["idle"]
    known_s = sum(wait.seconds for wait in waits if wait.kind == "idle")
    if abs(idle_s - known_s) <= 1e-12 * timeline.total_s:
        yield from waits
        return
    yield from (wait for wait in waits if wait.kind != "idle")
    end_s = float(timeline.end_s[timeline.tasks(rank_class, "compute")].max(initial=0.0))
    if idle_s > 0:
        yield Wait(
            rank_class=rank_class,
            kind="idle",
            key=("", ""),
            start_s=end_s,
            end_s=end_s + idle_s,
            seconds=idle_s,
        )
