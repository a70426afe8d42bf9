"""Which step of the file is converted, and how it joins with the execution trace."""

from __future__ import annotations

from collections.abc import Sequence

from tracer.convert.graph import Graph
from tracer.convert.join import BY_COUNT, BY_ID, BY_ORDER, BY_ROTATION, Join, join
from tracer.convert.kineto import Profile
from tracer.convert.steps import Step
from triosim.errors import TraceFormatError

_CERTAINTY = (BY_COUNT, BY_ROTATION, BY_ORDER, BY_ID)
MIN_SHARE = 0.5  # of a step's rows; below, the two files are not of one recording


def choose_step(
    steps: Sequence[Step], profile: Profile, graph: Graph | None, number: int | None
) -> tuple[Step, Join]:
    """The step with that number; else, of those that match the execution trace best, the last.

    Complete steps go before incomplete ones. Raises `TraceFormatError` where there is no such
    step, or where the execution trace covers none.
    """
    wanted = [step for step in steps if number in (None, step.number)]
    if not wanted:
        known = ", ".join(str(step.number) for step in steps[:50])
        raise TraceFormatError(f"{profile.name}: there is no step {number}; it has {known}.")
    if graph is None:
        step = max(wanted, key=lambda s: (s.complete, s.number))
        return step, Join(nodes={}, rows=0, how="")
    joins = {step.number: join(step.rows, graph) for step in wanted}
    step = max(wanted, key=lambda s: _quality(s, joins[s.number]))
    if joins[step.number].share < MIN_SHARE:
        raise TraceFormatError(_mismatch(steps, profile, graph, step, joins[step.number], number))
    return step, joins[step.number]


def _quality(step: Step, joined: Join) -> tuple[bool, bool, float, int, int]:
    """Ids say more than names, and exact sequences more than rotated ones; then the last wins."""
    return (
        joined.share >= MIN_SHARE,
        step.complete,
        round(joined.share, 2),
        _CERTAINTY.index(joined.how),
        step.number,
    )


def _mismatch(
    steps: Sequence[Step],
    profile: Profile,
    graph: Graph,
    step: Step,
    joined: Join,
    number: int | None,
) -> str:
    text = (
        f"{graph.name}: only {len(joined.nodes)} of {joined.rows} rows of step {step.number} in "
        f"{profile.name} are in it"
    )
    if number is not None:
        covered = [s.number for s in steps if join(s.rows, graph).share >= MIN_SHARE]
        if covered:
            return f"{text}; it covers step {', '.join(map(str, covered))}."
    return f"{text}; the two files must be of the same recording."
