"""The figures of each kind of result, by name; each is drawn when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, singledispatch
from typing import Any

from triosim.chakra import ReplayResult
from triosim.collective import CollectiveResult
from triosim.compare import Comparison
from triosim.errors import ConfigError
from triosim.explain import Explanation, PathStep, explain
from triosim.figures import (
    Style,
    breakdown_bars,
    communication_bars,
    critical_bars,
    gantt_bars,
    memory_figure,
    step_times_figure,
    topology_figure,
    what_if_tornado,
)
from triosim.figures.algorithms import algorithm_bars
from triosim.figures.breakdown import part_bars
from triosim.figures.compare_colours import LETTERS
from triosim.figures.compare_gantt import compare_gantts
from triosim.figures.compare_memory import compare_memory
from triosim.figures.compare_waterfall import compare_waterfall
from triosim.figures.gantt import makespan_ms
from triosim.figures.schedule_grid import schedule_grid
from triosim.figures.schedule_trade import memory_by_stage as in_flight_by_stage
from triosim.figures.search import fastest_layouts
from triosim.figures.sweep import sweep_line, sweep_pareto
from triosim.figures.sweep_heatmap import sweep_heatmap
from triosim.figures.text import TIMES
from triosim.figures.train_breakdown import stage_bars, train_breakdown
from triosim.figures.train_memory import memory_by_stage, memory_over_step
from triosim.figures.train_timeline import step_timeline
from triosim.notebook.tables import algorithms_ms
from triosim.notebook.words import title_of
from triosim.pipelines import PipelineResult
from triosim.result import Result
from triosim.saved import SavedResult
from triosim.search import SearchResult
from triosim.sweep import METRICS, SweepResult
from triosim.train import TrainResult, TrainScenario


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """How to draw: on which ground, and which GPUs (None: one of each group of identical ones)."""

    style: Style
    ranks: tuple[int, ...] | None = None

    def of(self, result: Result) -> Sequence[int]:
        """The ranks to draw; raises `ConfigError` for one that there is not."""
        if self.ranks is None:
            return [group.rank for group in result.classes]
        if not self.ranks:
            raise ConfigError("ranks", "[]", "must name at least one GPU")
        for rank in self.ranks:
            result.class_of(rank)
        return self.ranks

    def fullest(self, result: Result) -> int:
        """The GPU among them that needs most memory."""
        return max(self.of(result), key=lambda r: result.memory[result.class_of(r)].peak_bytes)


Draw = Callable[[Asked], Any]  # Plotly figures, which `triosim.figures` alone names
Drawings = Mapping[str, Draw]


@singledispatch
def drawings_of(shown: Any) -> Drawings:
    """The figures of a result, the most telling first."""
    raise TypeError(type(shown).__name__)


@drawings_of.register
def _(shown: Result) -> Drawings:
    drawings: dict[str, Draw] = {
        "gantt": partial(_gantt, shown),
        "breakdown": lambda a: breakdown_bars(shown, a.of(shown), style=a.style),
        "memory": lambda a: memory_figure(shown, a.fullest(shown), style=a.style),
        "communication": lambda a: communication_bars(shown, style=a.style),
        "topology": lambda a: topology_figure(shown, style=a.style),
    }
    if shown.step_times is not None:
        drawings["step_times"] = lambda a: step_times_figure(shown, style=a.style)
    return drawings


@drawings_of.register
def _(shown: ReplayResult) -> Drawings:
    return {
        "gantt": partial(_gantt, shown),
        "breakdown": lambda a: breakdown_bars(shown, a.of(shown), style=a.style),
        "communication": lambda a: communication_bars(shown, style=a.style),
    }


@drawings_of.register
def _(shown: TrainResult) -> Drawings:
    return {
        "gantt": partial(_gantt, shown),
        "breakdown": lambda a: train_breakdown(shown, style=a.style),
        "memory": lambda a: memory_over_step(
            shown, shown.class_of(a.fullest(shown)), style=a.style
        ),
        "stages": lambda a: memory_by_stage(shown, style=a.style),
        "communication": lambda a: communication_bars(shown, style=a.style),
    }


def _gantt(result: Result, asked: Asked, path: Sequence[PathStep] = ()) -> Any:
    window = (0.0, makespan_ms(result))
    if isinstance(result, TrainResult) and asked.ranks is None:
        return step_timeline(result, window, path=path, style=asked.style)
    return gantt_bars(result, asked.of(result), window, path=path, style=asked.style)


@drawings_of.register
def _(shown: SavedResult) -> Drawings:
    return {
        "breakdown": lambda a: _saved_breakdown(shown, a.style),
        "communication": lambda a: communication_bars(shown, style=a.style),
    }


def _saved_breakdown(saved: SavedResult, style: Style) -> Any:
    if saved.trained:
        rest = {name: ms for name, ms in saved.breakdown.items() if name != "compute"}
        parts = {**saved.breakdown_splits["compute"], **rest}
        return stage_bars(["mean over GPUs"], [parts], saved.total_ms, style=style)
    labels = [
        f"GPU {row['rank']}" + (f" ({TIMES}{row['members']:,})" if "members" in row else "")
        for row in saved.per_rank
    ]
    rows = [
        {name.removesuffix("_ms"): ms for name, ms in row.items() if name.endswith("_ms")}
        for row in saved.per_rank
    ]
    return part_bars(labels, rows, saved.total_ms, style=style)


@drawings_of.register
def _(shown: PipelineResult) -> Drawings:
    return {
        "schedule": lambda a: schedule_grid(shown, style=a.style),
        "memory": lambda a: in_flight_by_stage(
            shown.peak_in_flight, "micro-batches in flight", style=a.style
        ),
    }


@drawings_of.register
def _(shown: CollectiveResult) -> Drawings:
    return {
        "algorithms": lambda a: algorithm_bars(
            algorithms_ms(shown), shown.algorithm, style=a.style
        ),
    }


@drawings_of.register
def _(shown: Comparison) -> Drawings:
    names = [title_of(result) for result in shown.results]
    several = len(shown.results) > 2
    waterfalls = {
        f"waterfall {LETTERS[i]}" if several else "waterfall": partial(_waterfall, shown, i)
        for i in range(1, len(shown.results))
    }
    return {
        "gantt": lambda a: compare_gantts(shown.results, names, style=a.style),
        **waterfalls,
        "memory": lambda a: compare_memory(shown.results, names, style=a.style),
    }


def _waterfall(shown: Comparison, index: int, asked: Asked) -> Any:
    return compare_waterfall(shown.waterfall(index), shown.baseline.total_ms, style=asked.style)


@drawings_of.register
def _(shown: SweepResult) -> Drawings:
    """The step time and the trade against memory, then each other metric that a point has."""
    pareto = {"pareto": partial(_pareto, shown)}
    if len(shown.spec.axes) > 2:  # no plane has room for a metric over them
        return pareto
    had = [m for m in METRICS if any(point.metrics[m] is not None for point in shown.points)]
    metrics = {name: partial(_metric, shown, name) for name in had or ["step_ms"]}
    first = next(iter(metrics))
    return {first: metrics.pop(first), **pareto, **metrics}


def _metric(shown: SweepResult, metric: str, asked: Asked) -> Any:
    fields = [axis.field for axis in shown.spec.axes]
    if len(fields) == 1:
        return sweep_line(shown.points, fields[0], fields[0], metric, say=_say, style=asked.style)
    pair = (fields[0], fields[1])
    return sweep_heatmap(shown.points, pair, pair, metric, say=_say, style=asked.style)


def _pareto(shown: SweepResult, asked: Asked) -> Any:
    trained = isinstance(shown.spec.base, TrainScenario)
    gain = "tokens_per_s_per_gpu" if trained else "samples_per_s_per_gpu"
    return sweep_pareto(shown.points, gain, say=_say, style=asked.style)


def _say(field: str, value: object) -> str:
    return f"{field} {value}"


@drawings_of.register
def _(shown: SearchResult) -> Drawings:
    return {"fastest": lambda a: fastest_layouts(shown.ranked, style=a.style)}


@drawings_of.register
def _(shown: Explanation) -> Drawings:
    result = shown.result
    return {
        "gantt": lambda a: _gantt(result, a, path=shown.critical_path),
        "path": lambda a: critical_bars(shown.critical_totals, style=a.style),
        "what_if": lambda a: what_if_tornado(explain(result).what_if(), style=a.style),
    }
