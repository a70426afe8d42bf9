"""What runs in the worker processes. They import this module, so it must not know Streamlit."""

from __future__ import annotations

import contextlib
import traceback
from multiprocessing.connection import Connection
from typing import Any

from dashboard.memory import Memory
from triosim import Result, Scenario, load_trace, simulate
from triosim.engine.program import MAX_TASKS as MOST_TASKS
from triosim.errors import ConfigError, TrioSimError
from triosim.jitter import CURVE_POINTS, MAX_SPEEDS
from triosim.variation import PIPELINE_DRAWS

# About 5 seconds of simulation; more belongs on the command line, which has a limit of its own.
MAX_TASKS = 120_000
# About a second: such a simulation leaves a worker to the others.
HEAVY_TASKS = 24_000


def serve(pipe: Connection) -> None:
    """A worker's life: functions with their arguments come in, answers or errors go out."""
    memory = Memory()
    # The engine and its libraries are loaded before a person waits for them.
    _outcome(simulate, (Scenario(),))
    with contextlib.suppress(EOFError, BrokenPipeError, KeyboardInterrupt):
        while True:
            function, arguments = pipe.recv()
            pipe.send(_outcome(function, arguments))
            memory.trim()


def _outcome(function: Any, arguments: tuple[Any, ...]) -> tuple[Any, Exception | None]:
    """What a function returns and None, or None and what it raises."""
    try:
        return function(*arguments), None
    except TrioSimError as error:
        return None, error
    except Exception as error:
        # A bug: a traceback does not travel between processes.
        error.add_note(traceback.format_exc())
        return None, error


def ready() -> bool:
    """For those who ask whether a worker answers."""
    return True


def run(scenario: Scenario) -> Result:
    """One simulation."""
    return simulate(scenario)


def check_size(scenario: Scenario) -> int:
    """About how many tasks a scenario has; refuse what would try a class's patience.

    Raises `ConfigError` for the setting that makes the step so large.
    """
    trace = load_trace(scenario.trace_dir)
    batch = scenario.batch_size_sim or scenario.batch_size or trace.batch_size
    copies, field = 1, "fold"
    if scenario.case in (1, 2):
        copies, field = scenario.accumulate, "accumulate"
    elif scenario.case == 4 and scenario.micro_batch_size:
        copies, field = -(-batch // scenario.micro_batch_size), "micro_batch_size"
    ranks = len(set(scenario.speeds.values())) + 1 if scenario.fold else scenario.gpus
    if scenario.jitter and scenario.fold:
        ranks = min(scenario.gpus, MAX_SPEEDS)
    more = _more_steps(scenario)
    if scenario.case == 4:
        # A pipeline spreads the operators, and each cut adds four transfers a micro-batch.
        one = copies * (len(trace.operators) + 4 * scenario.gpus)
        tasks = one * (1 + more)
    else:
        one = copies * ranks * len(trace.operators)
        tasks = one + copies * more * len(trace.operators)
        field = "fold" if not scenario.fold and ranks > copies else field
        field = "rank_speed" if scenario.fold and ranks > copies else field
    if scenario.jitter and one <= MAX_TASKS:
        field = "jitter"
    if tasks > MAX_TASKS:
        raise ConfigError(
            field,
            getattr(scenario, field),
            f"this step has about {tasks:,} tasks and the page stops at {MAX_TASKS:,}; the command "
            f"line goes up to {MOST_TASKS:,}",
        )
    return tasks


def _more_steps(scenario: Scenario) -> int:
    """Simulations beside the one that is shown: those that say how steps differ."""
    now_and_then = bool(scenario.speeds) and scenario.slow_every > 1
    if not scenario.jitter:
        return 2 if now_and_then else 0
    each = PIPELINE_DRAWS if scenario.case == 4 else CURVE_POINTS
    return 2 * each if now_and_then else each
