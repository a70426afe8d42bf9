"""A measured run of several ranks laid over its prediction: pairs of lanes and signed errors.

Lanes are compute and communication between GPUs (copies from and to remote memory are in neither,
measured or predicted); exposed communication is the part of the second beside which the rank
computes nothing. Times are lengths of unions, so what runs side by side counts once. A signed error
is predicted over measured, less one: +0.1 is 10 % too slow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from triosim.engine.intervals import covered
from triosim.engine.program import COPY_ENGINE_PHASES
from triosim.errors import TraceFormatError, counted
from triosim.export.spans import spans_of
from triosim.result import Result

COMPUTE, COMMUNICATION = "compute", "communication"
EXPOSED, STEP = "exposed communication", "step"
LANES = (COMPUTE, COMMUNICATION)
MEASURED, PREDICTED = "measured", "predicted"

Intervals = npt.NDArray[np.float64]
"""Starts and ends, shape (n, 2), in seconds."""


class MeasuredSpan(NamedTuple):
    """What a rank did, in seconds from the start of the step on the common clock."""

    lane: str
    name: str
    start_s: float
    end_s: float


@dataclass(frozen=True, kw_only=True)
class MeasuredRank:
    """One rank's step; `label` is the name of its file."""

    rank: int
    label: str
    spans: tuple[MeasuredSpan, ...]


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A step of several ranks on one clock; `clock` says how it was found."""

    step: int
    ranks: tuple[MeasuredRank, ...]
    clock: str


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Overlay:
    """`frame`: rank, lane, measured_ms, predicted_ms, error; one row for each lane of a rank.

    Lanes are compute, communication, exposed communication, and step: from the rank's first span to
    its last. `spans`: rank, lane, source ("measured" or "predicted"), name, start_ms, end_ms.
    `measured_ms` and `predicted_ms` are the step over all ranks. An error is NaN where nothing was
    measured.
    """

    measured: Measured
    frame: pd.DataFrame
    spans: pd.DataFrame
    measured_ms: float
    predicted_ms: float

    def __repr__(self) -> str:
        return (
            f"<Overlay of {counted(len(self.measured.ranks), 'rank')}: measured "
            f"{self.measured_ms:.6g} ms, predicted {self.predicted_ms:.6g} ms ({self.error:+.1%})>"
        )

    @property
    def error(self) -> float:
        """The step's signed error."""
        return _error(self.measured_ms, self.predicted_ms)


def overlay(
    result: Result, measured: Measured | Sequence[str | Path], *, step: int | None = None
) -> Overlay:
    """Lay PyTorch profiler files, one a rank, over a result.

    `step` is the number of the step in files that hold several (None: the last one that is
    complete on every rank). Raises `TraceFormatError` for the files, and where a rank was measured
    that the result does not have.
    """
    if not isinstance(measured, Measured):
        # Reading recordings is the tracer's work, and the tracer knows this package.
        from tracer.convert.lanes import read_measured

        measured = read_measured(list(measured), step=step)
    for one in measured.ranks:
        if one.rank >= result.scenario.gpus:
            raise TraceFormatError(
                f"{one.label}: measured on rank {one.rank}, and the prediction has ranks 0 to "
                f"{result.scenario.gpus - 1}."
            )
    spans = pd.concat(
        [
            _frame(source, one.rank, found)
            for one in measured.ranks
            for source, found in (
                (MEASURED, one.spans),
                (PREDICTED, _predicted(result, one.rank)),
            )
        ],
        ignore_index=True,
    )
    rows = [row for one in measured.ranks for row in _rows(spans, one.rank)]
    real = spans[spans["source"] == MEASURED]
    return Overlay(
        measured=measured,
        frame=pd.DataFrame(rows, columns=["rank", "lane", "measured_ms", "predicted_ms", "error"]),
        spans=spans,
        measured_ms=float(real["end_ms"].max() - real["start_ms"].min()),
        predicted_ms=result.tasks.total_s * 1e3,
    )


def _predicted(result: Result, rank: int) -> list[MeasuredSpan]:
    return [
        MeasuredSpan(
            COMPUTE if span.computes else COMMUNICATION, span.name, span.start_s, span.end_s
        )
        for span in spans_of(result, result.class_of(rank))
        if span.phase not in COPY_ENGINE_PHASES
    ]


def _frame(source: str, rank: int, spans: Sequence[MeasuredSpan]) -> pd.DataFrame:
    frame = pd.DataFrame(spans, columns=["lane", "name", "start_ms", "end_ms"])
    frame[["start_ms", "end_ms"]] *= 1e3
    frame.insert(0, "source", source)
    frame.insert(0, "rank", rank)
    return frame


def _rows(spans: pd.DataFrame, rank: int) -> list[tuple[int, str, float, float, float]]:
    both = [
        _lengths(spans[(spans["rank"] == rank) & (spans["source"] == s)])
        for s in (MEASURED, PREDICTED)
    ]
    return [
        (rank, lane, both[0][lane], both[1][lane], _error(both[0][lane], both[1][lane]))
        for lane in (*LANES, EXPOSED, STEP)
    ]


def _lengths(spans: pd.DataFrame) -> dict[str, float]:
    """Milliseconds of each lane of one rank."""
    lanes = {
        lane: spans.loc[spans["lane"] == lane, ["start_ms", "end_ms"]].to_numpy(float)
        for lane in LANES
    }
    busy = {lane: covered(*intervals.T) for lane, intervals in lanes.items()}
    either = covered(*np.concatenate(list(lanes.values())).T)
    whole = float(spans["end_ms"].max() - spans["start_ms"].min()) if len(spans) else 0.0
    return {**busy, EXPOSED: either - busy[COMPUTE], STEP: whole}


def union(intervals: Intervals, gap: float = 0.0) -> Intervals:
    """Intervals that do not touch, in order; those less than `gap` apart are joined."""
    if not len(intervals):
        return np.zeros((0, 2))
    ordered = intervals[np.argsort(intervals[:, 0], kind="stable")]
    ends = np.maximum.accumulate(ordered[:, 1])
    first = np.concatenate(([True], ordered[1:, 0] > ends[:-1] + gap))
    last = np.concatenate((first[1:], [True]))
    return np.stack((ordered[first, 0], ends[last]), axis=1)


def _error(measured_ms: float, predicted_ms: float) -> float:
    return predicted_ms / measured_ms - 1 if measured_ms > 0 else float("nan")
