"""Predictions of published runs, some seconds' worth at a time, kept for all sessions.

A source takes seconds to minutes. So the page draws what is known, a worker predicts some more, and
the page is drawn again; whoever comes meanwhile finds what others have had predicted.
"""

from __future__ import annotations

import contextlib
import time
from concurrent.futures import CancelledError, Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from threading import Lock

import pandas as pd
import streamlit as st

from dashboard.computed import once, shared_runner
from dashboard.runner import Job, WorkerDied
from dashboard.validation_work import Pair, gains, predict_some, rates, whole_source
from triosim.validation import Row, Source, load_source, published_folder, rows_of
from triosim.validation.compare import frame_of
from triosim.validation.compile_question import Gain

FIRST_S, NEXT_S = 0.5, 3.0  # what a worker predicts before the page draws again
TICK_S = 0.5
LONG_S = 6.0  # before the page says how long one takes
MOST_ROWS = 64  # handed to a worker at once


@dataclass
class Known:
    """What is known of a source, and what a worker is adding."""

    rows: tuple[Row, ...]
    pairs: list[Pair] = field(default_factory=list)
    frame: pd.DataFrame | None = None
    working: AbstractContextManager[Job] | None = None
    future: Future[list[Pair]] | None = None
    began_s: float = 0.0


class Board:
    """Everything predicted so far; shared between sessions: read frames, never change them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: dict[str, Known] = {}

    def of(self, source: Source) -> Known:
        """What is known by now.

        Raises `ConfigError` where the source's data set is not there, and what a worker raised.
        """
        with self._lock:
            if source.name not in self._known:
                self._known[source.name] = Known(rows=rows_of(source))
            known = self._known[source.name]
            self._collect(known)
            return known

    def work_on(self, source: Source) -> Known:
        """The same; and a worker predicts some more, if none does already."""
        known = self.of(source)
        with self._lock:
            begin = len(known.pairs)
            rows = known.rows[begin : begin + MOST_ROWS]
            if rows and known.future is None:
                seconds = NEXT_S if begin else FIRST_S
                key = source.name, begin
                # Waited for until it is collected, so that nobody ends it.
                known.working = shared_runner().job(key, predict_some, rows, seconds)
                known.future = known.working.__enter__().future
                known.began_s = time.monotonic()
        return known

    def _collect(self, known: Known) -> None:
        """Add what a worker has finished; one that died has another go."""
        if known.future is None or not known.future.done():
            return
        future, known.future = known.future, None
        assert known.working is not None
        known.working.__exit__(None, None, None)
        with contextlib.suppress(WorkerDied, CancelledError):
            known.pairs += future.result()
            known.frame = frame_of(known.rows[: len(known.pairs)], known.pairs)


@dataclass(frozen=True, kw_only=True)
class Progress:
    """The runs of a source that have been predicted, of how many."""

    frame: pd.DataFrame | None
    done: int
    of: int

    @property
    def complete(self) -> bool:
        return self.done == self.of


@st.cache_resource(max_entries=1, show_spinner=False)
def _board() -> Board:
    return Board()


def is_here(source: Source) -> bool:
    """Whether the source's table is part of the project, or its data set beside it."""
    return source.folder is None or (published_folder() / source.folder).is_file()


def progress_of(source: Source) -> Progress:
    """What is known of a source; one without a stack is predicted at once.

    Raises `ConfigError` where its data set cannot be read.
    """
    if source.kind != "train":
        frame: pd.DataFrame = once(
            f"Predicting {source.title}", whole_source, source.name, heavy=True
        )
        return Progress(frame=frame, done=len(frame), of=len(frame))
    known = _board().of(source)
    return Progress(frame=known.frame, done=len(known.pairs), of=len(known.rows))


def bubbles() -> pd.DataFrame:
    """Zero Bubble's bubble rates."""
    found: pd.DataFrame = once("Running the schedules", rates, heavy=True)
    return found


def gains_with(cases: tuple[frozenset[str], ...]) -> list[tuple[Gain, Gain]]:
    """What compile gains on 8 and on 128 GPUs with each set of mechanisms switched on."""
    found: list[tuple[Gain, Gain]] = once("Simulating the eight runs", gains, cases, heavy=True)
    return found


def row_of(name: str, number: int) -> Row | None:
    """A run of a source by its number; None where the source has no scenarios."""
    source = load_source(name)
    if source.kind != "train":
        return None
    return next((row for row in _board().of(source).rows if row.number == number), None)


@st.fragment(run_every=TICK_S)
def predict_more(source: Source, drawn: int) -> None:
    """A bar of how far a source is, while a worker goes on; the page is drawn again with more.

    `drawn` is how many runs the page shows. A fragment, because a script that waits would leave
    the page half drawn.
    """
    known = _board().work_on(source)
    done, of = len(known.pairs), len(known.rows)
    if done != drawn:
        st.rerun()
    waited_s = time.monotonic() - known.began_s
    longer = f", {waited_s:.0f} s for the next" if waited_s >= LONG_S else ""
    st.progress(done / of, f"{source.title}: {done:,} of {of:,} runs predicted{longer}")
