"""GPipe and 1F1B: one chunk on each stage, the pipeline is emptied at the end of a step."""

from __future__ import annotations

from triosim.schedules.schedule import Schedule, Task, looped, refuse_chunks


def gpipe(stages: int, microbatches: int, chunks: int = 1) -> Schedule:
    """All forwards, then all backwards (Huang et al., arXiv 1811.06965).

    Time (m + p - 1)(F + B); every micro-batch is in flight at once.
    """
    refuse_chunks("gpipe", chunks)
    row = tuple(Task(kind, j) for kind in "FB" for j in range(microbatches))
    return Schedule(
        name="gpipe", microbatches=microbatches, rows=(row,) * stages, routes=(looped(stages, 1),)
    )


def one_forward_one_backward(stages: int, microbatches: int, chunks: int = 1) -> Schedule:
    """1F1B (PipeDream-Flush; Narayanan et al., arXiv 2104.04473).

    Stage i starts with p - 1 - i forwards, then alternates. GPipe's time; min(m, p - i) in flight.
    """
    refuse_chunks("1f1b", chunks)
    rows = tuple(_row(stages - 1 - stage, microbatches) for stage in range(stages))
    return Schedule(name="1f1b", microbatches=microbatches, rows=rows, routes=(looped(stages, 1),))


def _row(warm_up: int, microbatches: int) -> tuple[Task, ...]:
    row = [Task("F", j) for j in range(min(warm_up, microbatches))]
    for j in range(microbatches):
        if warm_up + j < microbatches:
            row.append(Task("F", warm_up + j))
        row.append(Task("B", j))
    return tuple(row)
