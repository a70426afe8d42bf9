"""ZB-H1 and ZB-H2: the weight part of a backward is postponed into what would be a bubble.

The handcrafted schedules of Qi et al., "Zero Bubble Pipeline Parallelism", arXiv 2401.10241,
section 2. Their automatic schedules (ZB-1p, ZB-2p) are searches over measured times and not here.
"""

from __future__ import annotations

from triosim.errors import ConfigError
from triosim.schedules.schedule import Schedule, Task, looped, refuse_chunks


def zb_h1(stages: int, microbatches: int, chunks: int = 1) -> Schedule:
    """1F1B's order, W of stage i postponed by i micro-batches.

    Time m(F + B) + (p - 1)(F + B - 2W) for m >= p and W <= min(F, B - W); at most p in flight.
    """
    refuse_chunks("zb-h1", chunks)
    rows = tuple(_row(stages - 1 - i, i, microbatches) for i in range(stages))
    return Schedule(name="zb-h1", microbatches=microbatches, rows=rows, routes=(looped(stages, 1),))


def zb_h2(stages: int, microbatches: int, chunks: int = 1) -> Schedule:
    """Stage i starts with 2(p - i) - 1 forwards; W postponed by 2i micro-batches.

    Period m(F + B), makespan m(F + B) + (p - 1)F for F = B - W = W; at most 2p - 1 in flight.
    """
    refuse_chunks("zb-h2", chunks)
    if microbatches < 2 * stages - 1:
        raise ConfigError(
            "microbatches",
            microbatches,
            f"zb-h2 on {stages} stages needs at least 2 x {stages} - 1",
            (2 * stages - 1,),
        )
    rows = tuple(_row(2 * (stages - 1 - i), 2 * i, microbatches) for i in range(stages))
    return Schedule(name="zb-h2", microbatches=microbatches, rows=rows, routes=(looped(stages, 1),))


def _row(warm_up: int, postponed: int, microbatches: int) -> tuple[Task, ...]:
    """Forwards ahead, then F, B and the W of an earlier micro-batch, then the W that are left."""
    row = [Task("F", j) for j in range(min(warm_up, microbatches))]
    for j in range(microbatches):
        if warm_up + j < microbatches:
            row.append(Task("F", warm_up + j))
        row.append(Task("B", j))
        if j >= postponed:
            row.append(Task("W", j - postponed))
    row += [Task("W", j) for j in range(max(0, microbatches - postponed), microbatches)]
    return tuple(row)
