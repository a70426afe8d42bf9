"""Worker processes for sweeps and searches, as executors that take turns.

They are apart from those that answer a person's next click, and give way to them. Each sweep or
search has a lane of its own; workers take from the lanes in turn, so that a long one only doubles
the time of a short one beside it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, Executor, Future
from dataclasses import dataclass, field
from threading import Condition, Thread
from typing import Any

import streamlit as st

from dashboard.patient import run_patiently
from dashboard.runner import Worker, WorkerDied
from triosim.errors import SimulationError

WORKERS = 2
MAX_DEATHS = 2  # of the worker, before a piece of work is given up


@dataclass(eq=False)
class Piece:
    """A function to run, and who waits for it."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    future: Future[Any] = field(default_factory=Future)


class Workers:
    """A process and a thread for each worker; they start with the first piece of work."""

    def __init__(self, count: int = WORKERS) -> None:
        self.count = count
        self._changed = Condition()
        self._lanes: deque[Lane] = deque()
        self._running: dict[Worker, Lane] = {}
        self._threads: list[Thread] = []

    def lane(self) -> Lane:
        """An executor whose work takes turns with that of others."""
        return Lane(self)

    def _put(self, lane: Lane, piece: Piece) -> None:
        with self._changed:
            lane.waiting.append(piece)
            if lane not in self._lanes:
                self._lanes.append(lane)
            if len(self._threads) < self.count:
                thread = Thread(target=self._serve, daemon=True)
                self._threads.append(thread)
                thread.start()
            self._changed.notify()

    def _take(self, worker: Worker) -> tuple[Lane, Piece]:
        """The next piece of the lane that has waited longest."""
        with self._changed:
            while not self._lanes:
                self._changed.wait()
            lane = self._lanes.popleft()
            piece = lane.waiting.popleft()
            if lane.waiting:
                self._lanes.append(lane)
            self._running[worker] = lane
            return lane, piece

    def _serve(self) -> None:
        worker = Worker()
        while True:
            lane, piece = self._take(worker)
            if piece.future.set_running_or_notify_cancel():
                self._run(worker, lane, piece)
            with self._changed:
                self._running.pop(worker, None)
            # Nothing of the last piece stays alive while this waits for the next.
            del lane, piece

    def _run(self, worker: Worker, lane: Lane, piece: Piece) -> None:
        for _ in range(MAX_DEATHS):
            try:
                answer = worker.run(run_patiently, piece.function, *piece.arguments)
            except WorkerDied:
                if lane.closed:
                    piece.future.set_exception(CancelledError())
                    return
            except Exception as error:
                piece.future.set_exception(error)
                return
            else:
                piece.future.set_result(answer)
                return
        sentence = "A worker ended twice at the same work; it may have run out of memory."
        piece.future.set_exception(SimulationError(sentence))

    def _close(self, lane: Lane, *, cancel: bool) -> None:
        with self._changed:
            lane.closed = True
            if not cancel:
                return
            dropped = list(lane.waiting)
            lane.waiting.clear()
            if lane in self._lanes:
                self._lanes.remove(lane)
            for worker, own in self._running.items():
                if own is lane:
                    worker.end()
        for piece in dropped:
            piece.future.cancel()
            piece.future.set_running_or_notify_cancel()  # or those who wait would wait on


class Lane(Executor):
    """The work of one sweep or search, one piece after the other as workers are free."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._max_workers = workers.count  # so that work is cut to their number
        self.waiting: deque[Piece] = deque()
        self.closed = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Raises `RuntimeError` once it is shut down."""
        if self.closed:
            raise RuntimeError("cannot submit to an executor that is shut down")
        if kwargs:
            raise TypeError("a worker's function has no named arguments")
        piece = Piece(function=fn, arguments=args)
        self._workers._put(self, piece)
        return piece.future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more work; with `cancel_futures`, end also what runs, at once."""
        self._workers._close(self, cancel=cancel_futures)


@st.cache_resource(max_entries=1, show_spinner=False)
def shared_workers() -> Workers:
    """The server's."""
    return Workers()
