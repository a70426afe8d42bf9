"""Runs the points of a sweep on an executor: processes here, or workers elsewhere."""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

from triosim.errors import TrioSimError
from triosim.legal import MAX_WORKERS
from triosim.resolved import AnyScenario, resolve, run
from triosim.sweep.found import Point, SweepResult
from triosim.sweep.metrics import METRICS, measure
from triosim.sweep.spec import Asked, SweepSpec
from triosim.sweep.store import Keeper, Row, Store
from triosim.train.scenario import whole

FEW = 24  # points that are done here sooner than processes start
BATCHES = 16  # per worker, so that all are done at about the same time
LARGEST_BATCH = 64
QUEUED = 4  # batches per worker that are handed out ahead

Batch = list[tuple[str, AnyScenario]]


def sweep(
    base: AnyScenario | SweepSpec,
    over: dict[str, Any] | None = None,
    *,
    executor: Executor | None = None,
    workers: int | None = None,
    store: str | Path | None = None,
    on_point: Callable[[Point], None] | None = None,
) -> SweepResult:
    """Simulate a scenario for every combination of some fields' values.

    `over` maps fields to lists or ranges (see `SweepSpec.made`). `executor` is any
    `concurrent.futures.Executor`; without one, processes are started where there is enough to do.
    With `store`, a folder, results are kept as they arrive and what it has is not computed again.
    `on_point` is told each point as it arrives, in whatever order.

    What is not legal or has no answer is a point with a `problem`. Raises `ConfigError` for the
    sweep itself.
    """
    spec = base if isinstance(base, SweepSpec) else SweepSpec.made(base, over or {})
    points = []
    for point in run_points(spec, executor=executor, workers=workers, store=store):
        points.append(point)
        if on_point is not None:
            on_point(point)
    return SweepResult(spec=spec, points=tuple(sorted(points, key=lambda point: point.index)))


def run_points(
    spec: SweepSpec,
    *,
    executor: Executor | None = None,
    workers: int | None = None,
    store: str | Path | Keeper | None = None,
    check: Callable[[AnyScenario], None] | None = None,
) -> Iterator[Point]:
    """The points of a sweep as they become known; closing it cancels what has not begun.

    Equal steps are simulated once. `store` is a folder, or something that reads and writes as
    `Store` does. A scenario for which `check` raises `TrioSimError` is not simulated.
    """
    if workers is not None:
        workers = whole("workers", workers, 1, MAX_WORKERS)
    kept = Store(store) if isinstance(store, (str, Path)) else store
    known = {} if kept is None else dict(kept.read())
    waiting: dict[str, list[Asked]] = {}
    at_once: deque[Point] = deque()

    def todo() -> Iterator[tuple[str, AnyScenario]]:
        """What has to be simulated; other points go to `at_once`."""
        for asked in spec.points():
            try:
                if asked.scenario is None:
                    at_once.append(_point(asked, {"problem": asked.problem}))
                    continue
                resolved = resolve(asked.scenario)
                if check is not None and resolved.digest not in known:
                    check(resolved.scenario)
            except TrioSimError as error:
                at_once.append(_point(asked, failed(error)))
                continue
            if resolved.digest in known:
                at_once.append(_point(asked, known[resolved.digest]))
                continue
            first = resolved.digest not in waiting
            waiting.setdefault(resolved.digest, []).append(asked)
            if first:
                yield resolved.digest, resolved.scenario

    for rows in _run_batches(todo(), len(spec), executor, workers):
        if kept is not None:
            kept.write(rows)
        known.update(rows)
        for digest, row in rows.items():
            for asked in waiting.pop(digest):
                yield _point(asked, row)
        while at_once:
            yield at_once.popleft()
    yield from at_once


def _run_batches(
    todo: Iterator[tuple[str, AnyScenario]],
    most: int,
    executor: Executor | None,
    workers: int | None,
) -> Iterator[dict[str, Row]]:
    """Rows by digest, batch by batch, of at most so many; an executor that is given stays open."""
    count = workers or _workers_of(executor)
    if executor is None and (most <= FEW or count == 1):
        for one in todo:
            yield evaluate([one])
        return
    size = max(1, min(LARGEST_BATCH, most // (count * BATCHES)))
    batches = iter(lambda: list(islice(todo, size)), [])
    with ExitStack() as stack:
        if executor is None:
            # fork would copy threads of the caller in whatever state they are.
            spawn = multiprocessing.get_context("spawn")
            executor = stack.enter_context(ProcessPoolExecutor(count, mp_context=spawn))
        yield from _ahead(executor, batches, QUEUED * count)


def _ahead(executor: Executor, batches: Iterator[Batch], most: int) -> Iterator[dict[str, Row]]:
    pending: set[Future[dict[str, Row]]] = set()
    try:
        while True:
            for batch in batches:
                pending.add(executor.submit(evaluate, batch))
                if len(pending) >= most:
                    break
            if not pending:
                return
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
    finally:
        for future in pending:
            future.cancel()


def evaluate(batch: Batch) -> dict[str, Row]:
    """The rows of some scenarios; runs in a worker."""
    rows: dict[str, Row] = {}
    for digest, scenario in batch:
        try:
            result = run(scenario)
        except TrioSimError as error:
            rows[digest] = failed(error)
        else:
            fits = result.peak_memory_bytes <= result.capacity_bytes
            rows[digest] = {"problem": None, "fits": fits, **measure(result)}
    return rows


def failed(error: TrioSimError) -> Row:
    """The row of a scenario without an answer."""
    return {"problem": str(error)}


def _point(asked: Asked, row: Row) -> Point:
    metrics = {name: row.get(name) for name in METRICS}
    return Point(
        index=asked.index,
        settings=asked.settings,
        scenario=asked.scenario,
        problem=row.get("problem"),
        fits=row.get("fits"),
        metrics=metrics,
    )


def _workers_of(executor: Executor | None) -> int:
    """How many run at once, as far as an executor tells."""
    told = getattr(executor, "_max_workers", None)
    return told if isinstance(told, int) else os.cpu_count() or 1
