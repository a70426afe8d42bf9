"""How long operators took, given the intervals in which their kernels ran."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Piece = tuple[int, int, int]  # start, end (ns), operator


def shares(pieces: Iterable[Piece], operators: int) -> list[int]:
    """Each operator's part (ns) of the union of all intervals.

    Where intervals overlap, the one that began first counts, so that no instant counts twice and
    the parts add up to the union.
    """
    parts = [0] * operators
    covered = None
    for start, end, operator in sorted(pieces):
        begin = start if covered is None else max(start, covered)
        if end > begin:
            parts[operator] += end - begin
            covered = end
    return parts


def busy(intervals: Iterable[tuple[int, int]]) -> int:
    """The length (ns) of the union."""
    return sum(shares(((start, end, 0) for start, end in intervals), 1))


def spans(pieces: Iterable[Piece], operators: int) -> list[int]:
    """From each operator's first start to its last end (ns), gaps included."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for start, end, operator in pieces:
        first[operator] = min(start, first.get(operator, start))
        last[operator] = max(end, last.get(operator, end))
    return [last[i] - first[i] if i in first else 0 for i in range(operators)]


def without(start: int, end: int, holes: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """What is left of an interval when `holes` are cut out."""
    left = []
    for hole_start, hole_end in sorted(holes):
        if hole_start > start:
            left.append((start, min(hole_start, end)))
        start = max(start, hole_end)
    if start < end:
        left.append((start, end))
    return [(a, b) for a, b in left if b > a]
