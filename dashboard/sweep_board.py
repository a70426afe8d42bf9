"""Sweeps and searches that run in threads of the server, and what they have found.

The script of a page only looks at them. They outlive a page and a session: whoever asks the same
again, also after Back, finds what is known. One that nobody looks at any more ends by itself.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import CancelledError
from enum import Enum
from secrets import token_hex
from threading import Lock, Thread
from typing import Any

import streamlit as st

from dashboard.sweep_workers import Lane, Workers, shared_workers
from triosim.errors import TrioSimError
from triosim.sweep.store import Row

MAX_RUNS = 32
MAX_ROWS = 50_000
ABANDONED_S = 120.0
SETTLE_S = 3.0


class State(Enum):
    RUNNING = "running"
    FINISHED = "finished"
    STOPPED = "stopped"
    FAILED = "failed"


class Run:
    """Something that takes long, bit by bit; `found` is what there is of it by now.

    `problem` says why it failed. What is found is shared between sessions: read it, never change
    it.
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self.done = 0
        self.doing = ""
        self.found: Any = None
        self.state = State.RUNNING
        self.problem: TrioSimError | None = None
        self.bug: Exception | None = None
        self.took_s = 0.0
        self._began_s = time.monotonic()
        self._stopping = False
        self._lane: Lane | None = None
        self._thread: Thread | None = None
        self._seen_s: dict[str, float] = {}

    def start(self, work: Callable[[Run, Lane], None], workers: Workers) -> None:
        self._lane = workers.lane()
        self._thread = Thread(target=self._go, args=(work, self._lane), daemon=True)
        self._thread.start()

    def _go(self, work: Callable[[Run, Lane], None], lane: Lane) -> None:
        state = State.FINISHED
        try:
            work(self, lane)
        except TrioSimError as error:
            self.problem, state = error, State.FAILED
        except CancelledError:
            state = State.STOPPED
        except Exception as error:
            state = State.FAILED
            # Work that goes on handing out pieces after a stop is refused by its executor.
            if not (self._stopping and lane.closed and isinstance(error, RuntimeError)):
                self.bug = error
        finally:
            lane.shutdown(cancel_futures=True)
        self.took_s = self.elapsed_s
        self.state = State.STOPPED if self._stopping and state != State.FINISHED else state

    @property
    def elapsed_s(self) -> float:
        return self.took_s or time.monotonic() - self._began_s

    @property
    def left_s(self) -> float | None:
        """How long the rest takes at the pace so far; None before there is one."""
        return self.elapsed_s / self.done * (self.total - self.done) if self.done else None

    def advance(self, done: int, total: int, doing: str = "") -> None:
        """Note how far it is; ends it where nobody looks. Called by the work itself."""
        self.done, self.total, self.doing = done, total, doing
        now = time.monotonic()
        if self._stopping or all(now - then > ABANDONED_S for then in self._seen_s.values()):
            self.stop()
            raise CancelledError

    def look(self, session: str) -> None:
        """A session sees it."""
        self._seen_s[session] = time.monotonic()

    def leave(self, session: str) -> None:
        """A session has gone on to something else: without another one, this ends."""
        self._seen_s.pop(session, None)
        if not self._seen_s:
            self.stop()

    def stop(self) -> None:
        """End it, at once; what is found stays."""
        if self.state is State.RUNNING and not self._stopping:
            self._stopping = True
            assert self._lane is not None
            self._lane.shutdown(cancel_futures=True)

    def settle(self) -> None:
        """Wait a little for one that was stopped to end."""
        if self._thread is not None:
            self._thread.join(SETTLE_S)

    @property
    def running(self) -> bool:
        return self.state is State.RUNNING


class Rows:
    """Points of all sweeps by their digest, the latest kept: a longer list adds to a shorter one.

    Uploaded traces count by their content, as in every digest.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._rows: OrderedDict[str, Row] = OrderedDict()

    def read(self) -> Mapping[str, Row]:
        with self._lock:
            return dict(self._rows)

    def write(self, rows: Mapping[str, Row]) -> None:
        with self._lock:
            self._rows.update(rows)
            while len(self._rows) > MAX_ROWS:
                self._rows.popitem(last=False)


class Board:
    """The latest runs by what was asked."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._runs: OrderedDict[Hashable, Run] = OrderedDict()
        self.rows = Rows()

    def find(self, key: Hashable) -> Run | None:
        """What is known of it."""
        with self._lock:
            if key in self._runs:
                self._runs.move_to_end(key)
            return self._runs.get(key)

    def begin(self, key: Hashable, total: int, work: Callable[[Run, Lane], None]) -> Run:
        """Start it, or start it again; one that runs already is not started twice."""
        with self._lock:
            run = self._runs.get(key)
            if run is None or not run.running:
                run = self._runs[key] = Run(total)
                run.look(session())
                run.start(work, shared_workers())
            self._runs.move_to_end(key)
            while len(self._runs) > MAX_RUNS:
                _, oldest = self._runs.popitem(last=False)
                oldest.stop()
            return run


def session() -> str:
    """A name for this session."""
    name: str = st.session_state.setdefault("sweep_session", token_hex(8))
    return name


@st.cache_resource(max_entries=1, show_spinner=False)
def board() -> Board:
    """The server's."""
    return Board()


def attend(kind: str, key: Hashable) -> Run | None:
    """The run that a session looks at now, and no longer at its last one of this kind."""
    place = f"attended_{kind}"
    last: Hashable = st.session_state.get(place)
    if last is not None and last != key:
        left = board().find(last)
        if left is not None:
            left.leave(session())
    st.session_state[place] = key
    run = board().find(key)
    if run is not None:
        run.look(session())
    return run
