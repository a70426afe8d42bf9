"""Several chunks on each stage, laid out in loops: interleaved 1F1B and looped breadth first."""

from __future__ import annotations

from triosim.errors import ConfigError
from triosim.schedules.schedule import Schedule, Task, looped


def interleaved(stages: int, microbatches: int, chunks: int) -> Schedule:
    """Interleaved 1F1B (Narayanan et al., arXiv 2104.04473, section 2.2).

    Micro-batches go through the chunks in groups of p. Stage i starts with 2(p - 1 - i) + (v - 1)p
    forwards of a chunk, then alternates. Time m(F + B) + (p - 1)(F + B)/v; in flight on stage 0
    min(m, p(1 + (p - 1)/(pv))). Fewer than p micro-batches are one group.
    """
    if microbatches > stages and microbatches % stages:
        below = microbatches - microbatches % stages
        raise ConfigError(
            "microbatches",
            microbatches,
            f"interleaved on {stages} stages needs a multiple of {stages} (or fewer than that)",
            (below, below + stages),
        )
    group = min(stages, microbatches)
    forward = [
        Task("F", first + j, chunk)
        for first in range(0, microbatches, group)
        for chunk in range(chunks)
        for j in range(group)
    ]
    backward = [Task("B", task.microbatch, chunks - 1 - task.chunk) for task in forward]
    rows = tuple(
        _alternate(forward, backward, 2 * (stages - 1 - stage) + (chunks - 1) * group)
        for stage in range(stages)
    )
    return Schedule(
        name="interleaved", microbatches=microbatches, rows=rows, routes=(looped(stages, chunks),)
    )


def _alternate(forward: list[Task], backward: list[Task], warm_up: int) -> tuple[Task, ...]:
    row = forward[:warm_up]
    for ahead, task in zip(forward[warm_up:], backward, strict=False):
        row += (ahead, task)
    return (*row, *backward[max(0, len(forward) - warm_up) :])


def looped_bfs(stages: int, microbatches: int, chunks: int) -> Schedule:
    """Breadth-first: every micro-batch through a chunk before the next chunk.

    Lamy-Poirier, arXiv 2211.05953. Each chunk's parameters are needed in one stretch forward and
    one backward, which suits sharded parameters; all m micro-batches are in flight. Time
    m(F + B) + (p - 1)(F + B)/v for m >= p.
    """
    each = range(microbatches)
    forward = [Task("F", j, chunk) for chunk in range(chunks) for j in each]
    backward = [Task("B", j, chunk) for chunk in reversed(range(chunks)) for j in each]
    return Schedule(
        name="looped-bfs",
        microbatches=microbatches,
        rows=((*forward, *backward),) * stages,
        routes=(looped(stages, chunks),),
    )
