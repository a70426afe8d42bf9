"""How much of a long training run is useful work, when GPUs fail and checkpoints save the rest.

The run works `interval_s`, writes a checkpoint while training waits, and so on. Failures come at
random times (exponential, independent of each other); each one costs what was done since the last
checkpoint, then a restart, which can fail as well. Failures during checkpoints count as any other.
Not modelled: planned stops, spare GPUs that run out, checkpoints written while training goes on
(their `checkpoint_s` is only the time for which training waits).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from triosim.amounts import long_time_words
from triosim.errors import ConfigError, Infeasible

LEAST_GOODPUT = 1e-3  # below it a run of a week takes years
LEAST_S, MOST_S = 1e-6, 1e12  # of times; 30,000 years
LEAST_HOURS = 1e-9
MOST_GPUS = 10**9
CURVE_POINTS = 61
CURVE_REACH = 30.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Goodput:
    """The shares of a run's wall time; goodput and the three losses sum to 1.

    `mtbf_s` is the whole job's mean time between failures, `young_s` and `daly_s` the intervals
    that Young's and Daly's formulas recommend, `interval_s` the one that the shares are for.
    `checkpoint_share` is writing checkpoints that count, `rework_share` work and writing that a
    failure undid, `restart_share` restarts, failed ones included. `wall_s` is what `work_s` of
    training takes on average, `failures` how often it is interrupted meanwhile. `curve` holds
    (interval in seconds, goodput); it is empty where no interval between 0 and infinity is best.
    """

    mtbf_s: float
    young_s: float
    daly_s: float
    interval_s: float
    goodput: float
    checkpoint_share: float
    rework_share: float
    restart_share: float
    wall_s: float
    failures: float
    curve: tuple[tuple[float, float], ...]


def goodput(
    *,
    work_s: float,
    gpus: int,
    gpu_mtbf_hours: float,
    checkpoint_s: float,
    restart_s: float,
    interval_s: float | None = None,
) -> Goodput:
    """Goodput of a synchronous job: any GPU that fails stops all of them.

    `work_s` is the training time without failures and checkpoints (one step or a whole run),
    `gpu_mtbf_hours` the mean time between failures of one GPU with its share of the machine around
    it (infinite: nothing fails), `restart_s` from a failure until training goes on, loading
    included. Without `interval_s` it is Daly's optimum. Hosts can be counted instead of GPUs.

    Raises `ConfigError` for a value outside its range and `Infeasible` where the job fails so often
    that less than 0.1 % of its time would be useful.
    """
    if isinstance(gpus, bool) or not isinstance(gpus, int) or not 1 <= gpus <= MOST_GPUS:
        raise ConfigError("gpus", gpus, f"must be a whole number from 1 to {MOST_GPUS:,}")
    if not gpu_mtbf_hours >= LEAST_HOURS:
        legal = f"must be a number of hours from {LEAST_HOURS:g}"
        raise ConfigError("gpu_mtbf_hours", gpu_mtbf_hours, legal)
    for name, value in (("work_s", work_s), ("interval_s", interval_s)):
        if value is not None and not LEAST_S <= value <= MOST_S:
            legal = f"must be a number of seconds from {LEAST_S:g} to {MOST_S:g}"
            raise ConfigError(name, value, legal)
    for name, value in (("checkpoint_s", checkpoint_s), ("restart_s", restart_s)):
        if not 0 <= value <= MOST_S:
            raise ConfigError(name, value, f"must be a number of seconds from 0 to {MOST_S:g}")

    mtbf_s = gpu_mtbf_hours * 3600.0 / gpus
    best_s = daly_interval_s(checkpoint_s, mtbf_s)
    chosen_s = best_s if interval_s is None else interval_s
    shares = _shares(chosen_s, checkpoint_s, restart_s, mtbf_s)
    if shares[0] < LEAST_GOODPUT:
        raise Infeasible(f"{_why_no_progress(chosen_s, checkpoint_s, restart_s, mtbf_s)}.")
    useful, checkpoints, rework, restarts = shares
    wall_s = work_s / useful
    return Goodput(
        mtbf_s=mtbf_s,
        young_s=young_interval_s(checkpoint_s, mtbf_s),
        daly_s=best_s,
        interval_s=chosen_s,
        goodput=useful,
        checkpoint_share=checkpoints,
        rework_share=rework,
        restart_share=restarts,
        wall_s=wall_s,
        failures=wall_s / mtbf_s,
        curve=_curve(chosen_s, best_s, checkpoint_s, restart_s, mtbf_s),
    )


def _why_no_progress(chosen_s: float, checkpoint_s: float, restart_s: float, mtbf_s: float) -> str:
    checkpoint = long_time_words(checkpoint_s)
    between = f"a checkpoint takes {checkpoint} after every {long_time_words(chosen_s)} of work"
    if chosen_s < LEAST_GOODPUT * checkpoint_s < checkpoint_s < mtbf_s:
        return f"The job makes no progress: {between}; do more work between checkpoints"
    return (
        f"The job makes no progress: it fails every {long_time_words(mtbf_s)} on average, "
        f"{between}, and a restart takes {long_time_words(restart_s)}; use fewer or more reliable "
        "GPUs, or shorten these times"
    )


def young_interval_s(checkpoint_s: float, mtbf_s: float) -> float:
    """sqrt(2 C M): the best work time between checkpoints to first order.

    Young, A first order approximation to the optimum checkpoint interval, CACM 17(9), 1974.
    """
    return math.inf if math.isinf(mtbf_s) else math.sqrt(2.0 * checkpoint_s * mtbf_s)


def daly_interval_s(checkpoint_s: float, mtbf_s: float) -> float:
    """sqrt(2 C M) (1 + sqrt(C / 2M) / 3 + C / 2M / 9) - C, and M where C is 2 M or more.

    Daly, A higher order estimate of the optimum checkpoint interval for restart dumps, Future
    Generation Computer Systems 22(3), 2006.
    """
    ratio = checkpoint_s / (2.0 * mtbf_s)
    if ratio >= 1.0:
        return mtbf_s
    series = 1.0 + math.sqrt(ratio) / 3.0 + ratio / 9.0
    return young_interval_s(checkpoint_s, mtbf_s) * series - checkpoint_s


def _shares(
    interval_s: float, checkpoint_s: float, restart_s: float, mtbf_s: float
) -> tuple[float, float, float, float]:
    """Useful work, checkpoints, work done again and restarts, as shares of the mean wall time.

    With L = interval + C, a stretch takes M e^(R/M) (e^(L/M) - 1) on average (Daly, 2006). It fails
    e^(L/M) - 1 times; each time the restart takes M (e^(R/M) - 1). What is left is work done again.
    """
    if math.isinf(interval_s):
        return 1.0, 0.0, 0.0, 0.0
    stretch_s = interval_s + checkpoint_s
    if math.isinf(mtbf_s):
        return interval_s / stretch_s, checkpoint_s / stretch_s, 0.0, 0.0
    survives_restart = math.exp(-restart_s / mtbf_s)
    if stretch_s == 0:  # checkpoints cost nothing: the limit of ever more of them
        return survives_restart, 0.0, 0.0, 1.0 - survives_restart
    # Divided by e^((R+L)/M), so that nothing overflows where failures are frequent.
    survives = math.exp(-stretch_s / mtbf_s)
    passed = survives_restart * survives / (mtbf_s * -math.expm1(-stretch_s / mtbf_s))
    useful, checkpoints = interval_s * passed, checkpoint_s * passed
    restarts = 1.0 - survives_restart
    return useful, checkpoints, max(0.0, 1.0 - useful - checkpoints - restarts), restarts


def _curve(
    chosen_s: float, best_s: float, checkpoint_s: float, restart_s: float, mtbf_s: float
) -> tuple[tuple[float, float], ...]:
    """Evenly spaced on a logarithmic axis, from well below both intervals to well above."""
    if not 0 < best_s < math.inf:
        return ()
    low = math.log(min(chosen_s, best_s) / CURVE_REACH)
    high = math.log(max(chosen_s, best_s) * CURVE_REACH)
    step = (high - low) / (CURVE_POINTS - 1)
    intervals = [math.exp(low + step * k) for k in range(CURVE_POINTS)]
    return tuple((s, _shares(s, checkpoint_s, restart_s, mtbf_s)[0]) for s in intervals)
