"""What a result is called, what matters most about it, and what a reader has to know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import singledispatch
from pathlib import Path
from typing import Any

from triosim.amounts import bytes_words, memory_words, time_words
from triosim.chakra import ReplayResult
from triosim.collective import CollectiveResult
from triosim.compare import Comparison
from triosim.errors import counted
from triosim.explain import Explanation
from triosim.pipelines import PipelineResult
from triosim.result import Result
from triosim.saved import SavedResult
from triosim.scenario import CASES, Scenario
from triosim.search import SearchResult
from triosim.sweep import SweepResult
from triosim.train import TrainResult


@singledispatch
def title_of(shown: Any) -> str:
    """What was asked, in a line."""
    raise TypeError(type(shown).__name__)


@singledispatch
def headline(shown: Any) -> str:
    """The figure that matters most."""
    raise TypeError(type(shown).__name__)


@singledispatch
def notes_of(shown: Any) -> Sequence[str]:
    """What has to be said beside the figures: warnings, reasons, checks that failed."""
    return ()


@title_of.register
def _(shown: Result) -> str:
    return _of_trace(shown.scenario)


@title_of.register
def _(shown: TrainResult) -> str:
    plan = shown.plan
    return _of_training(shown.scenario, plan.model.name, plan.machine, plan.sizes)


@title_of.register
def _(shown: ReplayResult) -> str:
    return f"{shown.workload.name} replayed on {counted(shown.scenario.gpus, 'GPU')}"


@title_of.register
def _(shown: SavedResult) -> str:
    if isinstance(shown.scenario, Scenario):
        return _of_trace(shown.scenario)
    plan = shown.values["plan"]
    return _of_training(shown.scenario, plan["model"], plan["machine"], plan["sizes"])


def _of_trace(scenario: Scenario) -> str:
    name = Path(scenario.trace_dir).resolve().name
    network = scenario.topology_name if scenario.on_topology else scenario.interconnect
    return (
        f"{name}, case {scenario.case} ({CASES[scenario.case]}), "
        f"{counted(scenario.gpus, 'GPU')}, {network or 'electrical'}"
    )


def _of_training(scenario: Any, model: str, machine: str, sizes: Mapping[str, int]) -> str:
    axes = ", ".join(f"{name} {size}" for name, size in sizes.items() if size > 1)
    return (
        f"{model} on {counted(scenario.gpus, 'GPU')} ({scenario.gpu}, {machine}): "
        f"{axes or 'one GPU'}"
    )


@title_of.register
def _(shown: PipelineResult) -> str:
    schedule = shown.schedule
    chunks = f", {schedule.chunks} chunks each" if schedule.chunks > 1 else ""
    return (
        f"{schedule.name}, {counted(schedule.stages, 'stage')}{chunks}, "
        f"micro-batches: {schedule.microbatches:,}"
    )


@title_of.register
def _(shown: CollectiveResult) -> str:
    return (
        f"{shown.operation} of {bytes_words(shown.size_bytes)} over "
        f"{counted(shown.group_size, 'GPU')}, {shown.algorithm}, links {shown.topology}"
    )


@title_of.register
def _(shown: Comparison) -> str:
    return "; ".join(
        f"{letter}: {title_of(result)}"
        for letter, result in zip("ABCD", shown.results, strict=False)
    )


@title_of.register
def _(shown: SweepResult) -> str:
    axes = " and ".join(axis.field for axis in shown.spec.axes)
    return f"sweep over {axes}, {counted(len(shown.points), 'point')}"


@title_of.register
def _(shown: SearchResult) -> str:
    return f"search of {counted(len(shown.ranked), 'layout')}, {counted(shown.plans, 'legal plan')}"


@title_of.register
def _(shown: Explanation) -> str:
    return f"waits in {title_of(shown.result)}"


@headline.register(Result)
@headline.register(SavedResult)
def _(shown: Result | SavedResult) -> str:
    return (
        f"step time {time_words(shown.total_ms / 1e3)}, "
        f"peak memory {memory_words(shown.peak_memory_bytes)}"
    )


@headline.register
def _(shown: ReplayResult) -> str:
    return f"step time {time_words(shown.total_ms / 1e3)}"


@headline.register
def _(shown: PipelineResult) -> str:
    return f"makespan {shown.makespan:g}, bubble {shown.bubble_of_total:.1%} of the period"


@headline.register
def _(shown: CollectiveResult) -> str:
    return time_words(shown.time_ms / 1e3)


@headline.register
def _(shown: Comparison) -> str:
    return " against ".join(time_words(result.total_ms / 1e3) for result in shown.results)


@headline.register
def _(shown: SweepResult) -> str:
    return f"{sum(point.feasible for point in shown.points):,} with an answer that fits"


@headline.register
def _(shown: SearchResult) -> str:
    if shown.best is None or shown.best.step_ms is None:
        return "none fits"
    return f"the fastest takes {time_words(shown.best.step_ms / 1e3)}"


@headline.register
def _(shown: Explanation) -> str:
    kind, ms = next(iter(shown.critical_totals.items()), ("nothing", 0.0))
    return f"{time_words(ms / 1e3)} of the critical path are {kind.replace('_', ' ')}"


@notes_of.register(Result)
@notes_of.register(SavedResult)
def _(shown: Result | SavedResult) -> Sequence[str]:
    failed = [f"FAILED {check.id}: {check.detail}" for check in shown.checks if not check.passed]
    made_up = {kind: share for kind, share in shown.provenance.items() if share}
    said = ", ".join(f"{share:.1%} {kind}" for kind, share in made_up.items())
    origin = [f"Computing time: {said}."] if said and set(made_up) != {"measured"} else []
    return (*failed, *map(str, shown.warnings), *origin)


@notes_of.register
def _(shown: PipelineResult) -> Sequence[str]:
    return shown.notes


@notes_of.register
def _(shown: CollectiveResult) -> Sequence[str]:
    return (shown.why, *shown.warnings)


@notes_of.register
def _(shown: Comparison) -> Sequence[str]:
    return [f"{'ABCD'[i]}: {shown.paragraph(i)}" for i in range(1, len(shown.results))]


@notes_of.register
def _(shown: SweepResult) -> Sequence[str]:
    reasons = Counter(point.reason for point in shown.points if point.problem is not None)
    return [f"{counted(n, 'point')} without an answer: {why}" for why, n in reasons.most_common(5)]


@notes_of.register
def _(shown: SearchResult) -> Sequence[str]:
    return shown.assumptions
