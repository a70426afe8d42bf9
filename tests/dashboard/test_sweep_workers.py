"""Patient workers: lanes take turns, cancelling is at once, and a run outlives who asked for it."""

from __future__ import annotations

import operator
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future, wait
from dataclasses import replace
from typing import Any

import pytest

from dashboard.sweep_board import Rows, Run, State
from dashboard.sweep_run import check
from dashboard.sweep_workers import Lane, Workers
from triosim import ConfigError, Scenario, SimulationError, simulate
from triosim.sweep import SweepSpec, run_points


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    one = Workers(1)
    yield one
    for worker in list(one._running):
        worker.end()


def test_results_and_errors_come_back(workers: Workers) -> None:
    with workers.lane() as lane:
        assert lane.submit(operator.add, 2, 3).result(60) == 5
        assert list(lane.map(abs, [-1, -2])) == [1, 2]
        with pytest.raises(ZeroDivisionError):
            lane.submit(divmod, 1, 0).result(60)
    with pytest.raises(RuntimeError, match="shut down"):
        lane.submit(abs, 1)


def test_work_gives_way_to_other_processes(workers: Workers) -> None:
    with workers.lane() as lane:
        assert lane.submit(os.nice, 0).result(60) >= 10


def test_lanes_take_turns(workers: Workers) -> None:
    first, long, short = workers.lane(), workers.lane(), workers.lane()
    blocked = first.submit(time.sleep, 0.5)
    futures = [(f"long {k}", long.submit(time.monotonic)) for k in range(4)]
    futures += [(f"short {k}", short.submit(time.monotonic)) for k in range(2)]
    blocked.result(60)
    order = [name for name, future in sorted(futures, key=lambda pair: pair[1].result(60))]
    assert order == ["long 0", "short 0", "long 1", "short 1", "long 2", "long 3"]


def test_cancelling_ends_what_runs_and_what_waits(workers: Workers) -> None:
    lane, other = workers.lane(), workers.lane()
    futures = [lane.submit(time.sleep, 600) for _ in range(3)]
    while not futures[0].running():
        time.sleep(0.01)
    lane.shutdown(cancel_futures=True)
    done, waiting = wait(futures, timeout=60)
    assert not waiting
    for future in done:
        with pytest.raises(CancelledError):
            future.result()
    assert other.submit(operator.add, 1, 1).result(60) == 2


def test_work_that_kills_its_worker_is_given_up(workers: Workers) -> None:
    lane = workers.lane()
    with pytest.raises(SimulationError, match="ended twice"):
        lane.submit(os._exit, 1).result(60)
    assert lane.submit(abs, -1).result(60) == 1


def ended(run: Run) -> Run:
    end = time.monotonic() + 60
    while run.running:
        assert time.monotonic() < end
        time.sleep(0.01)
    return run


def begun(work: object, workers: Workers, *sessions: str) -> Run:
    run = Run(3)
    for name in sessions:
        run.look(name)
    run.start(work, workers)
    return run


def test_a_run_ends_when_its_last_session_leaves(workers: Workers) -> None:
    def work(run: Run, lane: Lane) -> None:
        lane.submit(time.sleep, 600).result()

    run = begun(work, workers, "a", "b")
    run.leave("a")
    time.sleep(0.2)
    assert run.running
    run.leave("b")
    assert ended(run).state is State.STOPPED


def test_a_run_says_why_it_failed_and_how_far_it_was(workers: Workers) -> None:
    def wrong(run: Run, lane: Lane) -> None:
        run.advance(1, 3)
        raise ConfigError("gpus", 0, "must be more")

    run = ended(begun(wrong, workers, "a"))
    assert run.state is State.FAILED
    assert str(run.problem) == "gpus 0: must be more."
    assert (run.done, run.total) == (1, 3)

    def fine(run: Run, lane: Lane) -> None:
        run.advance(lane.submit(operator.add, 1, 2).result(), 3)

    run = ended(begun(fine, workers, "a"))
    assert (run.state, run.done) == (State.FINISHED, 3)


def test_rows_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashboard.sweep_board.MAX_ROWS", 2)
    rows = Rows()
    rows.write({"a": {"problem": None}})
    rows.write({"b": {}, "c": {}})
    assert set(rows.read()) == {"b", "c"}


class Counting(Executor):
    """Runs at once and counts the steps."""

    def __init__(self) -> None:
        self.steps = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.steps += len(args[0])
        future: Future[Any] = Future()
        future.set_result(fn(*args))
        return future


def test_a_longer_list_simulates_only_what_is_new() -> None:
    rows, executor = Rows(), Counting()
    base = Scenario(case=1)
    for gpus, steps in (([1, 2], 2), ([1, 2, 4], 3), ([4, 1], 3)):
        spec = SweepSpec.made(base, {"gpus": gpus})
        points = list(run_points(spec, executor=executor, store=rows, check=check))
        assert executor.steps == steps
        found = {point.settings["gpus"]: point.metrics["step_ms"] for point in points}
        assert found == {n: simulate(replace(base, gpus=n)).total_ms for n in gpus}


def test_a_step_that_is_too_large_for_a_page_is_a_point_with_a_reason() -> None:
    executor = Counting()
    spec = SweepSpec.made(Scenario(case=0, gpus=64), {"fold": [True, False], "gpus": [16384]})
    small, large = sorted(run_points(spec, executor=executor, check=check), key=lambda p: p.index)
    assert small.problem is None
    assert "the page stops at" in str(large.problem)
    assert executor.steps == 1


def test_work_that_goes_on_after_a_stop_is_stopped_and_no_bug(workers: Workers) -> None:
    def work(run: Run, lane: Lane) -> None:
        run.stop()
        lane.submit(abs, 1)

    run = Run(1)
    run.start(work, workers)
    run.settle()
    assert run.state is State.STOPPED
    assert run.bug is None


def test_a_bug_stays_one(workers: Workers) -> None:
    def work(run: Run, lane: Lane) -> None:
        raise RuntimeError("of the work itself")

    run = Run(1)
    run.start(work, workers)
    run.settle()
    assert run.state is State.FAILED
    assert str(run.bug) == "of the work itself"
