"""ZB-V: two chunks on each stage, the second half of the model on the way back.

Qi et al., arXiv 2401.10241, section 6, and "Pipeline Parallelism with Controllable Memory", arXiv
2405.15362: the handcrafted order for F = B - W = W. What the authors search for other times is not
here; the order stays the same.
"""

from __future__ import annotations

from triosim.schedules.schedule import Place, Schedule, Task, refuse_chunks


def zb_v(stages: int, microbatches: int, chunks: int = 2) -> Schedule:
    """Period m(F + B) for F = B - W = W and m >= 2p - 1; p in flight on every stage.

    Fewer micro-batches run in the same order, without those that are missing.
    """
    refuse_chunks("zb-v", chunks, (2,))
    there = [Place(stage, 0) for stage in range(stages)]
    back = [Place(stage, 1) for stage in reversed(range(stages))]
    rows = tuple(_Row(stages, stage, microbatches).tasks for stage in range(stages))
    return Schedule(name="zb-v", microbatches=microbatches, rows=rows, routes=((*there, *back),))


class _Row:
    """One stage's tasks; for each kind and chunk, micro-batches in order."""

    def __init__(self, stages: int, stage: int, microbatches: int) -> None:
        self.microbatches = microbatches
        self.next = dict.fromkeys(((kind, chunk) for kind in "FBW" for chunk in (0, 1)), 0)
        self.list: list[Task] = []
        self._warm_up(stages, stage)
        full = max(microbatches, 2 * stages - 1)
        while self.next["F", 1] < full:
            if self.next["F", 0] < full:
                self._add("F", 0)
            self._add("B", 0)
            self._add("W", 0)
            self._add("F", 1)
            self._add("B", 1)
            self._add("W", 1)
        self._cool_down(stages, stage)

    @property
    def tasks(self) -> tuple[Task, ...]:
        return tuple(task for task in self.list if task.microbatch < self.microbatches)

    def _add(self, kind: str, chunk: int) -> None:
        self.list.append(Task(kind, self.next[kind, chunk], chunk))
        self.next[kind, chunk] += 1

    def _warm_up(self, stages: int, stage: int) -> None:
        """As many forwards as p stage equivalents of memory hold, then the first backwards."""
        for _ in range(2 * (stages - stage) - 1):
            self._add("F", 0)
        for _ in range(stage):
            self._add("F", 1)
            self._add("F", 0)
        for _ in range(stages - stage):
            self._add("F", 1)
            self._add("B", 1)
            self._add("W", 1)

    def _cool_down(self, stages: int, stage: int) -> None:
        """Backwards as they come in, weight parts into the gaps."""
        for _ in range(stage):
            self._add("B", 0)
            self._add("B", 1)
        for _ in range(stages - stage):
            self._add("B", 0)
            self._add("W", 0)
        for chunk in (1, 0):
            while self.next["W", chunk] < self.next["B", chunk]:
                self._add("W", chunk)
