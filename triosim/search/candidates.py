"""The legal plans of layouts with their bounds, and simulated ones: what workers do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from triosim.errors import ConfigError, TrioSimError
from triosim.search.bounds import Bound, Bounds, Held, within_a_host
from triosim.search.space import Space
from triosim.train import TrainResult, TrainScenario, make_plan, train

Sizes = Mapping[str, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A legal plan of a layout: what it holds at least and, where that fits, takes at least."""

    scenario: TrainScenario
    held: Held
    bound: Bound | None
    across_hosts: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """Sizes of the mesh's axes; without candidates, `problem` says why none is legal."""

    sizes: Sizes
    candidates: tuple[Candidate, ...]
    problem: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Simulated:
    """Figures of one step. `parts_ms` is the breakdown with its splits; it sums to the step."""

    step_ms: float
    peak_memory_bytes: int
    fullest_stage: int
    fits: bool
    tokens_per_s_per_gpu: float
    mfu: float
    parts_ms: Mapping[tuple[str, str], float]


def look_at(space: Space, layouts: Sequence[Sizes], most_bytes: float) -> list[Layout]:
    """Bounds of all legal plans of some layouts; quick where they differ in data parallelism."""
    bounds = Bounds()
    return [_look_at(space, sizes, most_bytes, bounds) for sizes in layouts]


def _look_at(space: Space, sizes: Sizes, most_bytes: float, bounds: Bounds) -> Layout:
    problem = None
    candidates: list[Candidate] = []
    try:
        for scenario in space.choices(sizes):
            try:
                last = candidates[-1] if candidates else None
                candidates.append(_candidate(scenario, most_bytes, bounds, last))
            except ConfigError as error:
                problem = problem or str(error)
    except ConfigError as error:
        problem = str(error)
    return Layout(sizes=sizes, candidates=tuple(candidates), problem=problem)


def _candidate(
    scenario: TrainScenario, most_bytes: float, bounds: Bounds, last: Candidate | None
) -> Candidate:
    """The bounds of a plan; what is sharded changes what it holds, and no pass."""
    plan = make_plan(scenario)
    held = bounds.held(plan)
    fits = held.bytes <= most_bytes
    bound = last.bound if last is not None and choices(last.scenario) == choices(scenario) else None
    return Candidate(
        scenario=scenario,
        held=held,
        bound=(bound or bounds.time(plan)) if fits else None,
        across_hosts=not within_a_host(plan) if last is None else last.across_hosts,
    )


def choices(scenario: TrainScenario) -> tuple[int, str, str]:
    """What plans of one layout differ in, but for the ZeRO stage."""
    return scenario.micro_batch_size, scenario.recompute, scenario.schedule


def simulate_all(scenarios: Sequence[TrainScenario]) -> list[Simulated | str]:
    """The figures of some steps, or the sentence of one without an answer."""
    found: list[Simulated | str] = []
    for scenario in scenarios:
        try:
            found.append(_figures(train(scenario)))
        except TrioSimError as error:
            found.append(str(error))
    return found


def _figures(result: TrainResult) -> Simulated:
    splits = result.breakdown_splits
    parts = {(kind, name): ms for kind, own in splits.items() for name, ms in own.items()}
    parts |= {(k, k): ms for k, ms in result.breakdown.items() if k not in splits}
    stages = result.peak_memory_by_stage_gib
    return Simulated(
        step_ms=result.step_ms,
        peak_memory_bytes=result.peak_memory_bytes,
        fullest_stage=max(range(len(stages)), key=stages.__getitem__),
        fits=result.fits,
        tokens_per_s_per_gpu=result.tokens_per_s_per_gpu,
        mfu=result.mfu,
        parts_ms=parts,
    )
