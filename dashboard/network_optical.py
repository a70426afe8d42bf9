"""One step over electrical links and over optical circuits, and the set-up time at which they tie.

Workers import this module, so it does not know Streamlit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from triosim.scenario import Scenario
from triosim.simulate import make_plan, run, simulate
from triosim.trace import load_trace

POINTS = 9
TOLERANCE = 1e-5
MAX_STEPS = 40


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """`optical_curve` holds (set-up, step), in ms; `break_even_ms` is None where no set-up time
    makes both steps as long: circuits are slower even when they stand, or never slower.
    """

    electrical_ms: float
    optical_ms: float
    electrical_exposed_ms: float
    optical_exposed_ms: float
    standing_ms: float
    break_even_ms: float | None
    optical_curve: tuple[tuple[float, float], ...]


def compare(electrical: Scenario, optical: Scenario) -> Comparison:
    """The two scenarios differ in the interconnect only.

    Raises `TrioSimError`.
    """
    one, other = simulate(electrical), simulate(optical)

    def step_ms(setup_ms: float) -> float:
        scenario = replace(optical, circuit_setup_ms=setup_ms)
        return run(scenario, make_plan(scenario, load_trace(scenario.trace_dir))).total_s * 1e3

    standing_ms = step_ms(0.0)
    even_ms = break_even(step_ms, standing_ms, one.total_ms)
    reach_ms = max(2 * optical.circuit_setup_ms, 2 * (even_ms or 0.0), 0.01)
    setups = [reach_ms * k / (POINTS - 1) for k in range(POINTS)]
    return Comparison(
        electrical_ms=one.total_ms,
        optical_ms=other.total_ms,
        electrical_exposed_ms=one.exposed_communication_ms,
        optical_exposed_ms=other.exposed_communication_ms,
        standing_ms=standing_ms,
        break_even_ms=even_ms,
        optical_curve=tuple((setup, step_ms(setup)) for setup in setups),
    )


def break_even(
    step_ms: Callable[[float], float], standing_ms: float, electrical_ms: float
) -> float | None:
    """Where a step that grows with the set-up time reaches the electrical one.

    Regula falsi (Illinois) on a function made of straight pieces; a set-up that hides behind
    computing costs nothing, so the upper end is found by doubling.
    """
    if standing_ms >= electrical_ms:
        return None
    low, low_gap = 0.0, standing_ms - electrical_ms
    high = -low_gap
    for _ in range(MAX_STEPS):
        high_gap = step_ms(high) - electrical_ms
        if high_gap >= 0:
            break
        low, low_gap, high = high, high_gap, 2 * high
    else:
        return None
    for _ in range(MAX_STEPS):
        middle = (low * high_gap - high * low_gap) / (high_gap - low_gap)
        gap = step_ms(middle) - electrical_ms
        if abs(gap) <= TOLERANCE * electrical_ms:
            return middle
        if gap < 0:
            low, low_gap, high_gap = middle, gap, high_gap / 2
        else:
            high, high_gap, low_gap = middle, gap, low_gap / 2
    return (low + high) / 2
