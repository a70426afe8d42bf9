"""Simulations in worker processes, shared by all sessions of the server.

A simulation in the script thread would keep running after the slider has moved on, and would slow
every other session down.
"""

from __future__ import annotations

import gc
import multiprocessing
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any

import streamlit as st

from dashboard import work
from triosim import Result, Scenario, SimulationError

WORKERS = 2
MAX_RESULTS = 64
PATIENCE_S = 0.4  # before the page says that it is working
POLL_S = 0.1

Key = tuple[Scenario, work.Stamp]


@dataclass
class Job:
    """A simulation under way and how many sessions wait for it."""

    future: Future[Result]
    pool: ProcessPoolExecutor
    waiting: int = 0


class Runner:
    """A pool of workers and the latest results.

    Results are shared between sessions: read them, never change them.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._results: OrderedDict[Key, Result] = OrderedDict()
        self._jobs: dict[Key, Job] = {}
        self._pool = self._new_pool()

    @staticmethod
    def _new_pool() -> ProcessPoolExecutor:
        # fork would copy Streamlit's threads in whatever state they are.
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(max_workers=WORKERS, mp_context=context)
        for _ in range(WORKERS):
            pool.submit(work.warm_up, Scenario())
        return pool

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
    def job(self, key: Key) -> Iterator[Job]:
        """Wait for a simulation inside; it is cancelled when the last one who waits leaves."""
        with self._lock:
            job = self._jobs.get(key)
            if job is None or job.future.done():
                job = Job(self._pool.submit(work.run, key[0]), self._pool)
                self._jobs[key] = job
            job.waiting += 1
        try:
            yield job
        finally:
            with self._lock:
                job.waiting -= 1
                if job.waiting == 0:
                    job.future.cancel()
                    if self._jobs.get(key) is job:
                        del self._jobs[key]

    def submit(
        self, function: Callable[..., Any], *arguments: Any
    ) -> tuple[Future[Any], ProcessPoolExecutor]:
        """Any function of a module that does not know Streamlit, in the present pool."""
        with self._lock:
            return self._pool.submit(function, *arguments), self._pool

    def replace(self, broken: ProcessPoolExecutor) -> None:
        """A new pool in place of one whose worker has died; the first to notice does it."""
        with self._lock:
            if self._pool is broken:
                self._pool = self._new_pool()
        broken.shutdown(wait=False, cancel_futures=True)

    def close(self) -> None:
        """End the workers."""
        self._pool.shutdown(cancel_futures=True)


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
    key = scenario, work.stamp(scenario.trace_dir)
    result = runner.known(key)
    if result is None:
        work.check_size(scenario)
        result = _simulate(runner, key)
        runner.keep(key, result)
    return result


def _simulate(runner: Runner, key: Key) -> Result:
    for _ in range(2):
        with runner.job(key) as job:
            try:
                return _wait(job.future)
            except BrokenProcessPool:
                runner.replace(job.pool)
    raise SimulationError("The simulation's process ended twice; it may have run out of memory.")


def in_worker(doing: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function returns in a worker; meanwhile the page says what it is doing."""
    runner = shared_runner()
    for _ in range(2):
        future, pool = runner.submit(function, *arguments)
        try:
            return _wait(future, doing)
        except BrokenProcessPool:
            runner.replace(pool)
        finally:
            future.cancel()
    raise SimulationError(f"{doing} ended twice; it may have run out of memory.")


def _wait(future: Future[Any], doing: str = "Simulating") -> Any:
    """Wait in small steps: each call of Streamlit lets a rerun of the page end this one."""
    begin = time.monotonic()
    try:
        return future.result(PATIENCE_S)
    except TimeoutError:
        pass
    slot = st.empty()
    while True:
        slot.caption(f"{doing}, {time.monotonic() - begin:.0f} s ...")
        try:
            result = future.result(POLL_S)
        except TimeoutError:
            continue
        slot.empty()
        return result
