"""What the streams of a rank run, with composite tasks opened to their kernels and transfers.

Launches are left out: they run on the CPU. A composite task takes longer than what is in it where
communication beside it slows it down, or on a slow rank; its kernels are stretched by that, and
what lies between them keeps the time that the breakdown gives it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from triosim.engine.program import LAUNCH_PHASE
from triosim.result import Result

COMPUTE = "compute"


class Span(NamedTuple):
    """One kernel, transfer or copy; `task` is the position in the program that it belongs to."""

    stream: str
    name: str
    phase: str
    start_s: float
    end_s: float
    task: int

    @property
    def computes(self) -> bool:
        return self.stream == COMPUTE


def spans_of(result: Result, rank_class: int) -> list[Span]:
    """The spans of each rank of a class, in order of start."""
    timeline = result.tasks
    program = timeline.program
    spans: list[Span] = []
    for task in timeline.tasks(rank_class).tolist():
        if program.phase[task] == LAUNCH_PHASE:
            continue
        stream = program.streams[program.stream[task]].name
        start_s, end_s = float(timeline.start_s[task]), float(timeline.end_s[task])
        whole = Span(stream, program.name[task], program.phase[task], start_s, end_s, task)
        spans += _opened(result, whole) if task in program.parts else [whole]
    return sorted(spans, key=lambda span: (span.start_s, span.task))


def _opened(result: Result, whole: Span) -> Iterator[Span]:
    rows = result.inside(whole.task)
    rows = rows[rows["stream"] != LAUNCH_PHASE]
    if rows.empty:
        yield from _in_turn(result, whole)
        return
    kernels = rows[rows["stream"] == COMPUTE].sort_values("start_ms")
    parts = result.tasks.program.parts[whole.task]
    still_s = sum(part.seconds for part in parts if part.kind != COMPUTE)
    inner_ms, outer_s = _clock(
        kernels["start_ms"].to_numpy(float),
        kernels["end_ms"].to_numpy(float),
        float(rows["end_ms"].max()),
        whole,
        still_s,
    )
    starts = np.interp(rows["start_ms"].to_numpy(float), inner_ms, outer_s).tolist()
    ends = np.interp(rows["end_ms"].to_numpy(float), inner_ms, outer_s).tolist()
    texts = zip(rows["stream"], rows["name"], rows["phase"], strict=True)
    for (stream, name, phase), start_s, end_s in zip(texts, starts, ends, strict=True):
        yield Span(stream, name, phase, start_s, end_s, whole.task)


def _clock(
    begin_ms: np.ndarray, end_ms: np.ndarray, last_ms: float, whole: Span, still_s: float
) -> tuple[np.ndarray, np.ndarray]:
    """Times inside a composite task against times of the step, piecewise linear.

    The stretches in which nothing is computed take `still_s` of the step, all others the rest.
    """
    points = np.concatenate(([0.0], np.stack((begin_ms, end_ms), axis=1).ravel(), [last_ms]))
    points = np.maximum.accumulate(points)
    lengths = np.diff(points)
    computing = np.arange(len(lengths)) % 2 == 1
    scaled = np.zeros_like(lengths)
    for chosen, total_s in (
        (computing, whole.end_s - whole.start_s - still_s),
        (~computing, still_s),
    ):
        inner = lengths[chosen].sum()
        scaled[chosen] = lengths[chosen] * (total_s / inner if inner else 0.0)
    return points, whole.start_s + np.concatenate(([0.0], np.cumsum(scaled)))


def _in_turn(result: Result, whole: Span) -> Iterator[Span]:
    """A composite task that nothing is known of but its parts: those that compute, in order."""
    at_s = whole.start_s
    for part in result.tasks.program.parts[whole.task]:
        if part.kind == COMPUTE:
            yield Span(COMPUTE, whole.name, whole.phase, at_s, at_s + part.seconds, whole.task)
        at_s += part.seconds
