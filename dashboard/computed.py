"""What pages have computed in workers, or find from before: read it, never change it."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from multiprocessing.reduction import ForkingPickler
from typing import Any

import streamlit as st

from dashboard import work
from dashboard.runner import Runner, WorkerDied
from triosim import Result, Scenario, SimulationError
from triosim.trace import trace_stamp

PATIENCE_S = 0.4  # before the page says that it is working
POLL_S = 0.1


@st.cache_resource(max_entries=1, show_spinner=False)
def shared_runner() -> Runner:
    """The server's runner; its workers start with it."""
    runner = Runner()
    # What is loaded by now stays; later collections need not look at it.
    gc.freeze()
    return runner


def result_of(scenario: Scenario) -> Result:
    """The result of a trace's scenario.

    Raises `TrioSimError`.
    """
    heavy = work.check_size(scenario) > work.HEAVY_TASKS
    result: Result = once(
        "Simulating", work.run, scenario, of=trace_stamp(scenario.trace_dir), heavy=heavy
    )
    return result


def once(
    doing: str,
    function: Callable[..., Any],
    *arguments: Any,
    of: Hashable = None,
    here: bool = False,
    heavy: bool = False,
) -> Any:
    """What a function of hashable arguments returns, from before or from a worker.

    `of`: what else its answer depends on, such as a file's stamp; `here`: it is quick, so that it
    runs without a worker; `heavy`: it takes seconds. Raises what the function raises.
    """
    found = known(function, *arguments, of=of)
    if found is not None:
        return found
    runner, key = shared_runner(), _key(function, arguments, of)
    if here:
        found = function(*arguments)
        runner.kept.put(key, found, len(ForkingPickler.dumps(found)))
        return found
    return compute(runner, doing, key, function, *arguments, heavy=heavy, keep=True)


def known(function: Callable[..., Any], *arguments: Any, of: Hashable = None) -> Any:
    """What `once` has from before, or None."""
    return shared_runner().kept.get(_key(function, arguments, of))


def _key(function: Callable[..., Any], arguments: tuple[Any, ...], of: Hashable) -> Hashable:
    return f"{function.__module__}.{function.__qualname__}", arguments, of


def in_worker(doing: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function returns in a worker; meanwhile the page says what it is doing."""
    return compute(shared_runner(), doing, object(), function, *arguments)


def compute(
    runner: Runner,
    doing: str,
    key: Hashable,
    function: Callable[..., Any],
    *arguments: Any,
    heavy: bool = False,
    keep: bool = False,
) -> Any:
    """The same, of this runner; those who ask for the same key share it."""
    for _ in range(2):
        with runner.job(key, function, *arguments, heavy=heavy, keep=keep) as job:
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
