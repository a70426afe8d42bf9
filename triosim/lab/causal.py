"""Causal attention cut over ranks: which rank computes which block, and how much that is."""

from __future__ import annotations

from triosim.errors import ConfigError


def owners(ranks: int, *, zigzag: bool) -> list[int]:
    """Whose each chunk of the sequence is: contiguous parts, or an early and a late one of 2c."""
    if ranks < 1:
        raise ConfigError("ranks", ranks, "must be at least 1")
    each = list(range(ranks))
    return [*each, *reversed(each)] if zigzag else each


def work_by_rank(ranks: int, *, zigzag: bool) -> list[float]:
    """Attended pairs of each rank over the mean.

    The chunk at i attends to i whole chunks before it and to half of itself.
    """
    parts = owners(ranks, zigzag=zigzag)
    work = [0.0] * ranks
    for chunk, rank in enumerate(parts):
        work[rank] += chunk + 0.5
    mean = sum(work) / ranks
    return [one / mean for one in work]
