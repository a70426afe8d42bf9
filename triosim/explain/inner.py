"""Inside a pass of a training step: its kernels, launches and transfers, and the gaps between.

A pass was simulated on its own, so that everything that explains a step explains it too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from triosim.amounts import bytes_words, time_words
from triosim.analysis.breakdown import break_down
from triosim.engine.program import LAUNCH_PHASE
from triosim.engine.timeline import Timeline
from triosim.errors import counted
from triosim.explain.provenance import kernel_lines
from triosim.explain.transfers import Transfers
from triosim.explain.waits import Wait, waits_of
from triosim.explain.why import short_reason, task_lines, why
from triosim.train import TrainResult
from triosim.train.passes import Pass
from triosim.train.plan import Unit

_EPSILON_S = 1e-12


@dataclass(frozen=True, kw_only=True, eq=False)
class Inside:
    """One unit of a composite task; it begins `offset_s` after the task does.

    Times of `timeline` count from its own start, of which the pass is what follows `begin_s`.
    """

    result: TrainResult
    unit: Unit
    made: Pass
    offset_s: float

    @property
    def timeline(self) -> Timeline:
        assert self.made.timeline is not None
        return self.made.timeline

    @property
    def begin_s(self) -> float:
        return self.made.begin_s

    @property
    def tasks(self) -> range:
        """The tasks of the pass, in the order of `Pass.rows`."""
        return range(self.made.first, len(self.timeline.program))

    @cached_property
    def waits(self) -> tuple[Wait, ...]:
        """The gaps of the compute stream; by class they sum to the pass's own parts."""
        breakdown = break_down(self.timeline, 0)
        waits = waits_of(self.timeline, breakdown, 0)
        begin_s = self.begin_s - _EPSILON_S
        return tuple(wait for wait in waits if wait.start_s >= begin_s and wait.seconds > 0)

    @cached_property
    def _transfers(self) -> Transfers:
        return Transfers(self.timeline)

    def reason(self, wait: Wait) -> str:
        return short_reason(self.timeline, wait)

    def why(self, wait: Wait) -> tuple[str, ...]:
        return why(self.timeline, self._transfers, wait)

    def of(self, task: int) -> tuple[str, ...]:
        """A kernel, launch or transfer in sentences, with the formula behind its time."""
        lines = task_lines(self.timeline, self._transfers, task)
        program = self.timeline.program
        if program.transfer[task] >= 0 or program.phase[task] == LAUNCH_PHASE:
            return lines
        seconds = program.duration_s[task]
        more = kernel_lines(
            self.result, self.unit, program.name[task], program.phase[task], seconds
        )
        return (*lines, *more)


def inside_of(result: TrainResult, task: int) -> tuple[Inside, ...]:
    """The units of a composite task in the order in which they run; none of another task."""
    made = result.writer.made.get(task)
    if made is None:
        return ()
    units = made.group.units if made.kind == "forward" else made.group.units[::-1]
    found, offset_s = [], 0.0
    for unit, one in zip(units, made.passes, strict=True):
        if one.timeline is not None:
            found.append(Inside(result=result, unit=unit, made=one, offset_s=offset_s))
        offset_s += one.seconds
    return tuple(found)


def inner_moves(result: TrainResult, wait: Wait) -> Iterator[str]:
    """How much the transfers move that a composite task waits for inside."""
    made = result.writer.made.get(wait.inside)
    moved = [one.moved[wait.key] for one in made.passes if wait.key in one.moved] if made else []
    if moved:
        count, sent = sum(m.transfers for m in moved), sum(m.sent_bytes for m in moved)
        busy_s = sum(m.busy_s for m in moved)
        yield (
            f"{counted(count, 'transfer')} of this kind {'is' if count == 1 else 'are'} in it: a "
            f"GPU sends {bytes_words(sent)} in {time_words(busy_s)}, of which "
            f"{time_words(wait.seconds)} are not hidden behind computing."
        )
