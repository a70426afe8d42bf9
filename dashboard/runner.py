"""Simulations in worker processes, shared by all sessions of the server.

A simulation in the script thread would keep running after the slider has moved on, and would slow
every other session down.
"""

from __future__ import annotations

import gc
import multiprocessing
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Lock
from typing import Any

import streamlit as st

from dashboard import lifeline, work
from triosim import Result, Scenario, SimulationError
from triosim.trace import Stamp, trace_stamp

WORKERS = 2  # of which one at least is never busy with heavy jobs
MAX_RESULTS = 64
PATIENCE_S = 0.4  # before the page says that it is working
POLL_S = 0.1
# What a new worker needs to start: ending one for less than that gains nothing.
START_S = 1.0

Key = tuple[Scenario, Stamp]
# fork would copy Streamlit's threads in whatever state they are.
SPAWN = multiprocessing.get_context("spawn")


class WorkerDied(Exception):  # noqa: N818 - an event, which the runner answers
    """The process ended before its answer came."""


class Worker:
    """A process that runs one function at a time; another one takes its place when it ends."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self._pipe, theirs = SPAWN.Pipe()
        process = SPAWN.Process(target=lifeline.serve, args=(theirs,), daemon=True)
        process.start()
        self.process = process  # only now: another thread may end it at any moment
        theirs.close()  # so that the pipe ends with the process

    def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What the function returns or raises; raises `WorkerDied` where no answer comes."""
        if not self.process.is_alive():
            self._start()
        try:
            self._pipe.send((function, arguments))
            answer, error = self._pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            self._start()
            raise WorkerDied from None
        if error is not None:
            raise error
        return answer

    def end(self) -> None:
        """Stop what it runs, at once."""
        self.process.kill()


@dataclass(eq=False)
class Job:
    """Something to run: how many sessions wait for it, and who runs it since when."""

    future: Future[Any] = field(default_factory=Future)
    waiting: int = 0
    worker: Worker | None = None
    began_s: float = 0.0


class Runner:
    """Workers, the jobs that wait for one, and the latest results.

    Results are shared between sessions: read them, never change them.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._results: OrderedDict[Key, Result] = OrderedDict()
        self._jobs: dict[Hashable, Job] = {}
        self.workers = [Worker() for _ in range(WORKERS)]
        self._idle: SimpleQueue[Worker] = SimpleQueue()
        for worker in self.workers:
            self._idle.put(worker)
        # A thread hands a worker a job and waits for the answer.
        self._threads = ThreadPoolExecutor(WORKERS)
        self._heavy_threads = ThreadPoolExecutor(WORKERS - 1)

    def known(self, key: Key) -> Result | None:
        """A result from before."""
        with self._lock:
            if key in self._results:
                self._results.move_to_end(key)
            return self._results.get(key)

    def keep(self, key: Key, result: Result) -> None:
        with self._lock:
            self._results[key] = result
            while len(self._results) > MAX_RESULTS:
                self._results.popitem(last=False)

    @contextmanager
    def job(
        self, key: Hashable, function: Callable[..., Any], *arguments: Any, heavy: bool = False
    ) -> Iterator[Job]:
        """Wait for a function inside; those who wait for the same key share it.

        Heavy jobs wait for each other, so that quick ones of other sessions find a worker.
        When the last one leaves, it is cancelled; if it runs, `make_room` may end it.
        """
        with self._lock:
            job = self._jobs.get(key)
            if job is None or job.future.done():
                job = self._jobs[key] = Job()
                threads = self._heavy_threads if heavy else self._threads
                job.future = threads.submit(self._run, job, key, function, arguments)
            job.waiting += 1
        try:
            yield job
        finally:
            with self._lock:
                job.waiting -= 1
                if job.waiting == 0 and (job.future.cancel() or job.future.done()):
                    self._forget(key, job)

    def _run(
        self, job: Job, key: Hashable, function: Callable[..., Any], arguments: tuple[Any, ...]
    ) -> Any:
        worker = self._idle.get()
        with self._lock:
            job.worker, job.began_s = worker, time.monotonic()
        try:
            return worker.run(function, *arguments)
        finally:
            with self._lock:
                job.worker = None
                if job.waiting == 0:
                    self._forget(key, job)
            self._idle.put(worker)

    def _forget(self, key: Hashable, job: Job) -> None:
        if self._jobs.get(key) is job:
            del self._jobs[key]

    def make_room(self) -> None:
        """End a run that nobody waits for where another job queues."""
        with self._lock:
            jobs = self._jobs.values()
            if not any(
                job.waiting and job.worker is None and not job.future.done() for job in jobs
            ):
                return
            before_s = time.monotonic() - START_S
            for job in jobs:
                # Under the lock: its worker cannot go on to another job meanwhile.
                if job.worker is not None and not job.waiting and job.began_s < before_s:
                    job.worker.end()
                    return

    def state(self) -> dict[str, float]:
        """How many workers live and are busy, the longest run so far, and how many jobs queue."""
        with self._lock:
            jobs = list(self._jobs.values())
            now_s = time.monotonic()
            runs_s = [now_s - job.began_s for job in jobs if job.worker is not None]
            queued = sum(job.worker is None and not job.future.done() for job in jobs)
        return {
            "workers": sum(worker.process.is_alive() for worker in self.workers),
            "busy": len(runs_s),
            "longest_run_s": round(max(runs_s, default=0.0), 1),
            "queued": queued,
        }

    def close(self) -> None:
        """End the workers."""
        for threads in (self._threads, self._heavy_threads):
            threads.shutdown(wait=False, cancel_futures=True)
        for worker in self.workers:
            worker.end()


@st.cache_resource(max_entries=1, show_spinner=False)
def shared_runner() -> Runner:
    """The server's runner; its workers start with it."""
    runner = Runner()
    # What is loaded by now stays; later collections need not look at it.
    gc.freeze()
    return runner


def result_of(scenario: Scenario) -> Result:
    """The result, from before or from a worker.

    Raises `TrioSimError`.
    """
    runner = shared_runner()
    key = scenario, trace_stamp(scenario.trace_dir)
    result = runner.known(key)
    if result is None:
        heavy = work.check_size(scenario) > work.HEAVY_TASKS
        result = _simulate(runner, key, heavy=heavy)
        runner.keep(key, result)
    return result


def _simulate(runner: Runner, key: Key, *, heavy: bool = False) -> Result:
    result: Result = _answer(runner, "Simulating", key, work.run, key[0], heavy=heavy)
    return result


def in_worker(
    doing: str, function: Callable[..., Any], *arguments: Any, heavy: bool = False
) -> Any:
    """What a function returns in a worker; meanwhile the page says what it is doing.

    `heavy`: it takes seconds.
    """
    return _answer(shared_runner(), doing, object(), function, *arguments, heavy=heavy)


def _answer(
    runner: Runner,
    doing: str,
    key: Hashable,
    function: Callable[..., Any],
    *arguments: Any,
    heavy: bool = False,
) -> Any:
    for _ in range(2):
        with runner.job(key, function, *arguments, heavy=heavy) as job:
            try:
                return _wait(runner, job.future, doing)
            except WorkerDied:
                continue
    raise SimulationError(f"{doing} ended twice; it may have run out of memory.")


def _wait(runner: Runner, future: Future[Any], doing: str) -> Any:
    """Wait in small steps: each call of Streamlit lets a rerun of the page end this one."""
    begin = time.monotonic()
    try:
        return future.result(PATIENCE_S)
    except TimeoutError:
        pass
    slot = st.empty()
    while True:
        slot.caption(f"{doing}, {time.monotonic() - begin:.0f} s ...")
        runner.make_room()
        try:
            result = future.result(POLL_S)
        except TimeoutError:
            continue
        except Exception:
            slot.empty()
            raise
        slot.empty()
        return result
