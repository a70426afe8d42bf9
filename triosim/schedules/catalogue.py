"""The published schedules by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

from triosim.errors import ConfigError
from triosim.schedules.dualpipe import dualpipe
from triosim.schedules.flush import gpipe, one_forward_one_backward
from triosim.schedules.looped import interleaved, looped_bfs
from triosim.schedules.schedule import Schedule
from triosim.schedules.zb_v import zb_v
from triosim.schedules.zero_bubble import zb_h1, zb_h2

MAX_CELLS = 200_000

SCHEDULES: Mapping[str, Callable[[int, int, int], Schedule]] = {
    "gpipe": gpipe,
    "1f1b": one_forward_one_backward,
    "interleaved": interleaved,
    "looped-bfs": looped_bfs,
    "zb-h1": zb_h1,
    "zb-h2": zb_h2,
    "zb-v": zb_v,
    "dualpipe": dualpipe,
}


@lru_cache(maxsize=8)
def make_schedule(name: str, stages: int, microbatches: int, chunks: int = 1) -> Schedule:
    """A published schedule.

    `chunks` is for interleaved and looped-bfs; zb-v and dualpipe always have two on each stage.
    Raises `ConfigError` naming the nearest legal values where the schedule has none for these.
    """
    if name not in SCHEDULES:
        raise ConfigError("schedule", name, f"must be one of {', '.join(SCHEDULES)}")
    for field, value in (("stages", stages), ("microbatches", microbatches), ("chunks", chunks)):
        if value < 1:
            raise ConfigError(field, value, "must be a whole number of at least 1")
    most = MAX_CELLS // (stages * max(chunks, 2))
    if microbatches > most:
        # So many every schedule can run.
        legal = most - most % stages
        raise ConfigError(
            "microbatches",
            microbatches,
            f"too many for {stages:,} stages: stages x micro-batches x chunks must be at most "
            f"{MAX_CELLS:,}",
            [legal] if legal >= 2 * stages else (),
        )
    return SCHEDULES[name](stages, microbatches, chunks)
