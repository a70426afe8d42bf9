"""The steady state of a pipeline whose stages do not wait for each other's optimizer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from triosim.analysis.breakdown import Breakdown, Gap
from triosim.engine.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Span:
    """One rank's own part of the makespan: without what it waits for other stages at its start."""

    seconds: float
    before: tuple[Gap, ...]


def span_of(timeline: Timeline, rank_class: int, gaps: Sequence[Gap]) -> Span:
    """From where a class could begin to its last computation's end.

    The next step enters a stage as soon as this one has left it, so that the bubble before the
    first computation goes away; the stage's own gathers and launches there do not.
    """
    own = timeline.tasks(rank_class, "compute")
    first, last = float(timeline.start_s[own].min()), float(timeline.end_s[own].max())
    lead = tuple(gap for gap in gaps if gap.end_s <= first + 1e-12 * last and gap.kind == "bubble")
    return Span(last - sum(gap.seconds for gap in lead), lead)


def steady(breakdown: Breakdown, span: Span, period_s: float) -> Breakdown:
    """One rank's classes over a period; what is left of it after its own part is idle."""
    classes = dict(breakdown.classes_s)
    classes["bubble"] -= sum(gap.seconds for gap in span.before)
    classes["idle"] = 0.0
    classes["idle"] = period_s - sum(classes.values())
    gone = set(map(id, span.before))
    return replace(
        breakdown, classes_s=classes, gaps=[g for g in breakdown.gaps if id(g) not in gone]
    )
