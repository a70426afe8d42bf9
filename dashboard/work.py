"""What runs in the worker processes. They import this module, so it must not know Streamlit."""

from __future__ import annotations

from pathlib import Path

from triosim import Result, Scenario, load_trace, simulate
from triosim.errors import ConfigError

TRACE_FILES = ("trace.csv", "tensor.csv", "meta.json")
# About 5 seconds of simulation; more belongs on the command line.
MAX_TASKS = 120_000

Stamp = tuple[tuple[int, int], ...]


def stamp(folder: str) -> Stamp:
    """Changes whenever a file of the trace does."""
    stamps = []
    for name in TRACE_FILES:
        try:
            status = (Path(folder) / name).stat()
        except OSError:
            stamps.append((0, 0))
        else:
            stamps.append((status.st_mtime_ns, status.st_size))
    return tuple(stamps)


def warm_up(scenario: Scenario) -> None:
    """Load the engine and its libraries before a person waits for them."""
    simulate(scenario)


def run(scenario: Scenario) -> Result:
    """One simulation."""
    return simulate(scenario)


def check_size(scenario: Scenario) -> None:
    """Refuse what would keep a worker busy for a class's patience.

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
    if scenario.case == 4:
        # A pipeline spreads the operators, and each cut adds four transfers a micro-batch.
        tasks = copies * (len(trace.operators) + 4 * scenario.gpus)
    else:
        tasks = copies * ranks * len(trace.operators)
        field = "fold" if not scenario.fold and ranks > copies else field
        field = "rank_speed" if scenario.fold and ranks > copies else field
    if tasks > MAX_TASKS:
        raise ConfigError(
            field,
            getattr(scenario, field),
            f"this step has about {tasks:,} tasks and the page stops at {MAX_TASKS:,}; the command "
            "line has no limit",
        )
