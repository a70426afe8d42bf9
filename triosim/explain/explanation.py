"""One object that answers for a result: why it stands still, what its time is made of, what if."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from triosim.analysis.breakdown import break_down
from triosim.errors import ConfigError
from triosim.explain.inner import Inside, inner_moves, inside_of
from triosim.explain.kinds import kinds_of
from triosim.explain.path import PathStep, critical_path, totals_s
from triosim.explain.provenance import operator_lines
from triosim.explain.transfers import Move, Transfers
from triosim.explain.waits import Wait, waits_of
from triosim.explain.whatif import WhatIf, what_if
from triosim.explain.why import short_reason, task_lines, why
from triosim.result import Result
from triosim.shown import Shown
from triosim.train import TrainResult
from triosim.train.period import span_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """One task, explained.

    `waited_for` is the task without which it could have started earlier, -1 for none; `kinds_s` its
    seconds by kind; `move` what made a transfer take its time, None for a computation; `lines` says
    it all in sentences.
    """

    task: int
    rank_class: int
    start_s: float
    end_s: float
    waited_for: int
    kinds_s: Mapping[str, float]
    move: Move | None
    lines: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Explanation(Shown):
    """The explanation of a result; each answer is worked out when asked for."""

    result: Result

    def gaps(self, rank: int = 0) -> tuple[Wait, ...]:
        """Every piece of a rank's step in which it computes nothing, in order of time.

        By class they sum to the rank's breakdown. Raises `ConfigError` for a rank that is none.
        """
        c = self.result.class_of(rank)
        if c not in self._waits:
            self._waits[c] = waits_of(self.result.tasks, self.result.breakdowns[c], c)
        return self._waits[c]

    def longest(self, rank: int = 0, n: int = 10) -> tuple[Wait, ...]:
        """The n longest of a rank's gaps, the longest first."""
        return tuple(sorted(self.gaps(rank), key=lambda wait: -wait.seconds)[:n])

    def reason(self, wait: Wait) -> str:
        """A gap in one line."""
        return short_reason(self.result.tasks, wait)

    def why(self, wait: Wait) -> tuple[str, ...]:
        """A gap in sentences: what is waited for, why no earlier, which link was full of what."""
        lines = why(self.result.tasks, self._transfers, wait)
        if wait.inside >= 0 and isinstance(self.result, TrainResult):
            lines = (*lines, *inner_moves(self.result, wait))
        return lines

    def of(self, task: int) -> Span:
        """One task: what it waited for, what it moved or computed, and why it takes its time.

        Raises `ConfigError` for a task that is none.
        """
        timeline = self.result.tasks
        if task not in range(len(timeline.program)):
            last = len(timeline.program) - 1
            raise ConfigError("task", task, f"tasks go from 0 to {last:,}")
        start_s, end_s = float(timeline.start_s[task]), float(timeline.end_s[task])
        moves = timeline.program.transfer[task] >= 0
        return Span(
            task=task,
            rank_class=timeline.class_list[task],
            start_s=start_s,
            end_s=end_s,
            waited_for=timeline.critical[task],
            kinds_s=kinds_of(timeline.program, task, end_s - start_s),
            move=self._transfers.move(task) if moves else None,
            lines=(
                *task_lines(timeline, self._transfers, task),
                *operator_lines(self.result, task),
            ),
        )

    def inside(self, task: int) -> tuple[Inside, ...]:
        """The parts of a pass of a training step, each of which explains itself; else nothing."""
        return inside_of(self.result, task) if isinstance(self.result, TrainResult) else ()

    @cached_property
    def critical_path(self) -> tuple[PathStep, ...]:
        """The chain of tasks that makes the step as long as it is, in order of time.

        Where steps overlap, the step is the longest span of a stage: the path ends with that
        stage's last computation and is as long as the span.
        """
        timeline, result = self.result.tasks, self.result
        if not isinstance(result, TrainResult) or result.step_s == timeline.total_s:
            return critical_path(timeline)
        spans_s = [
            span_of(timeline, c, break_down(timeline, c).gaps).seconds
            for c in range(len(result.classes))
        ]
        own = timeline.tasks(spans_s.index(max(spans_s)), "compute")
        last = int(own[timeline.end_s[own].argmax()])
        return critical_path(timeline, last, float(timeline.end_s[last]) - result.step_s)

    @cached_property
    def critical_totals(self) -> dict[str, float]:
        """Milliseconds of the critical path by kind, the most first; they sum to the step."""
        return {kind: s * 1e3 for kind, s in totals_s(self.critical_path).items()}

    def what_if(self) -> tuple[WhatIf, ...]:
        """The step if each kind of thing were free, and twice as fast; the most gained first."""
        return what_if(self.result)

    @cached_property
    def _waits(self) -> dict[int, tuple[Wait, ...]]:
        return {}

    @cached_property
    def _transfers(self) -> Transfers:
        return Transfers(self.result.tasks)


def explain(result: Any) -> Explanation:
    """Why each GPU stands still when it does, of a result of `simulate` or `train`.

    Raises `ConfigError` for anything else.
    """
    if not isinstance(result, Result):
        raise ConfigError("result", type(result).__name__, "must come from simulate or train")
    return Explanation(result=result)
