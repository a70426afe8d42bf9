"""DualPipe: two copies of the model, micro-batches from both ends of the pipeline.

DeepSeek-V3 technical report, arXiv 2412.19437, section 3.2.1, in the phases of its published
implementation: warm-up from the own end, from both ends, a first stretch with postponed weight
parts, the main part of overlapped pairs, and the same backwards.
"""

from __future__ import annotations

from collections import deque

from triosim.errors import ConfigError
from triosim.schedules.schedule import Place, Schedule, Task, refuse_chunks


def dualpipe(stages: int, microbatches: int, chunks: int = 2) -> Schedule:
    """Bubble (p/2 - 1)(F&B + B - 3W) for F = B - W >= W; p + 1 in flight; parameters twice.

    Chunk 0 of stage i is virtual stage i for the first half of the micro-batches, chunk 1 virtual
    stage p - 1 - i for the second half.
    """
    refuse_chunks("dualpipe", chunks, (2,))
    if stages % 2:
        near = [n for n in (stages - 1, stages + 1) if n]
        raise ConfigError("stages", stages, "dualpipe needs an even number", near)
    if microbatches % 2 or microbatches < 2 * stages:
        near = sorted({max(2 * stages, n - n % 2) for n in (microbatches, microbatches + 1)})
        raise ConfigError(
            "microbatches",
            microbatches,
            f"dualpipe on {stages} stages needs an even number of at least 2 x {stages}",
            near,
        )
    return Schedule(
        name="dualpipe",
        microbatches=microbatches,
        rows=tuple(_Row(stages, stage, microbatches).tasks for stage in range(stages)),
        routes=(
            tuple(Place(stage, 0) for stage in range(stages)),
            tuple(Place(stage, 1) for stage in reversed(range(stages))),
        ),
    )


class _Row:
    """One stage's tasks. `near` is the direction that enters at the closer end, `far` the other."""

    def __init__(self, stages: int, stage: int, microbatches: int) -> None:
        near = int(stage >= stages // 2)
        self.near, self.far = near, 1 - near
        self.distance = min(stage, stages - 1 - stage)  # from the closer end
        self.inward = stages // 2 - 1 - self.distance  # to the middle
        self.next = {
            (kind, direction): direction * microbatches // 2
            for kind in "FB"
            for direction in (0, 1)
        }
        self.postponed: deque[Task] = deque()
        self.list: list[Task] = []
        self._warm_up()
        self._main(microbatches // 2 - stages + self.distance + 1)
        self._cool_down()

    @property
    def tasks(self) -> tuple[Task, ...]:
        return tuple(self.list)

    def _take(self, kind: str, direction: int) -> int:
        microbatch = self.next[kind, direction]
        self.next[kind, direction] += 1
        return microbatch

    def _forward(self, direction: int) -> None:
        self.list.append(Task("F", self._take("F", direction), direction))

    def _backward(self, direction: int, *, split: bool = False) -> None:
        microbatch = self._take("B", direction)
        self.list.append(Task("B", microbatch, direction))
        if split:
            self.postponed.append(Task("W", microbatch, direction))

    def _weight(self) -> None:
        self.list.append(self.postponed.popleft())

    def _pair(self, forward: int, backward: int) -> None:
        ahead, behind = self._take("F", forward), self._take("B", backward)
        self.list.append(Task("F&B", ahead, forward, behind, backward))

    def _warm_up(self) -> None:
        for _ in range(2 * self.inward):
            self._forward(self.near)
        for _ in range(self.distance + 1):
            self._forward(self.near)
            self._forward(self.far)
        for _ in range(self.inward):
            self._backward(self.far, split=True)
            self._weight()
            self._forward(self.far)

    def _main(self, rounds: int) -> None:
        for turn in range(rounds):
            if turn == 0 and self.inward == 0:
                # The two stages in the middle: apart, so that the other one need not wait.
                self._forward(self.near)
                self._backward(self.far)
            else:
                self._pair(self.near, self.far)
            self._pair(self.far, self.near)

    def _cool_down(self) -> None:
        for _ in range(self.inward):
            self._backward(self.far)
            self._pair(self.far, self.near)
        both = self.distance + 1
        for turn in range(2 * both):
            # The second half of these backwards leaves its weight parts for the end.
            self._backward((self.far, self.near)[turn % 2], split=turn >= both)
        for _ in range(self.inward):
            self._weight()
            self._backward(self.near, split=True)
        for _ in range(both):
            self._weight()
