"""Simulations in worker processes, shared by all sessions of the server.

A simulation in the script thread would keep running after the slider has moved on, and would slow
every other session down.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.reduction import ForkingPickler
from queue import SimpleQueue
from threading import Lock
from typing import Any

from dashboard import lifeline
from dashboard.kept import Kept
from dashboard.memory import Memory

WORKERS = 2  # of which one at least is never busy with heavy jobs
# What a new worker needs to start: ending one for less than that gains nothing.
START_S = 1.0

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
        return self.run_sized(function, *arguments)[0]

    def run_sized(self, function: Callable[..., Any], *arguments: Any) -> tuple[Any, int]:
        """The same, and the number of bytes that the answer travelled in."""
        if not self.process.is_alive():
            self._start()
        try:
            self._pipe.send((function, arguments))
            packed = self._pipe.recv_bytes()
        except (EOFError, OSError):
            self.process.join()
            self._start()
            raise WorkerDied from None
        # As the pipe's own recv() does; it would not tell the size.
        answer, error = ForkingPickler.loads(packed)
        if error is not None:
            raise error
        return answer, len(packed)

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
    """Workers, the jobs that wait for one, and the latest answers that are worth keeping."""

    def __init__(self) -> None:
        self.kept = Kept()
        self._memory = Memory()
        self._lock = Lock()
        self._jobs: dict[Hashable, Job] = {}
        self.workers = [Worker() for _ in range(WORKERS)]
        self._idle: SimpleQueue[Worker] = SimpleQueue()
        for worker in self.workers:
            self._idle.put(worker)
        # A thread hands a worker a job and waits for the answer.
        self._threads = ThreadPoolExecutor(WORKERS)
        self._heavy_threads = ThreadPoolExecutor(WORKERS - 1)

    @contextmanager
    def job(
        self,
        key: Hashable,
        function: Callable[..., Any],
        *arguments: Any,
        heavy: bool = False,
        keep: bool = False,
    ) -> Iterator[Job]:
        """Wait for a function inside; those who wait for the same key share it.

        `keep` its answer under the key, also if nobody waits for it any more.
        Heavy jobs wait for each other, so that quick ones of other sessions find a worker.
        When the last one leaves, it is cancelled; if it runs, `make_room` may end it.
        """
        with self._lock:
            job = self._jobs.get(key)
            if job is None or job.future.done():
                job = self._jobs[key] = Job()
                threads = self._heavy_threads if heavy else self._threads
                job.future = threads.submit(self._run, job, key, function, arguments, keep)
            job.waiting += 1
        try:
            yield job
        finally:
            with self._lock:
                job.waiting -= 1
                if job.waiting == 0 and (job.future.cancel() or job.future.done()):
                    self._forget(key, job)

    def _run(
        self,
        job: Job,
        key: Hashable,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        keep: bool,
    ) -> Any:
        worker = self._idle.get()
        with self._lock:
            job.worker, job.began_s = worker, time.monotonic()
        try:
            answer, size_bytes = worker.run_sized(function, *arguments)
            if keep:
                self.kept.put(key, answer, size_bytes)
                self._memory.trim()
            return answer
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
