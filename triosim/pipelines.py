"""One pipeline schedule on its own: the calculator behind `ts.pipeline` and `triosim pipeline`."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from triosim.errors import ConfigError
from triosim.schedules import (
    Durations,
    Grid,
    Schedule,
    Timing,
    make_schedule,
    read_grid,
    time_schedule,
)
from triosim.shown import Shown

MAX_TIME = 1e15
MAX_COUNT = 100_000
PerStage = float | Sequence[float]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PipelineResult(Shown):
    """What a schedule takes, in the unit of the times given.

    `forward`, `backward`, `weight` and `transfer` are per stage, all chunks together.
    """

    timing: Timing
    forward: tuple[float, ...]
    backward: tuple[float, ...]
    weight: tuple[float, ...]
    transfer: tuple[float, ...]

    @property
    def schedule(self) -> Schedule:
        """The cells, row by row."""
        return self.timing.schedule

    @property
    def makespan(self) -> float:
        """First start to last end, from rest."""
        return self.timing.makespan

    @property
    def period(self) -> float:
        """Time of a step in the steady state: the largest span of a stage, first task to last."""
        return self.timing.period

    @property
    def ideal(self) -> float:
        """The computing time of the busiest stage; m(F + B) where stages are equal."""
        return max(self.timing.busy)

    @property
    def bubble_of_ideal(self) -> float:
        """(period - ideal) / ideal; (p - 1)/m for GPipe and 1F1B."""
        return self._bubble / self.ideal

    @property
    def bubble_of_total(self) -> float:
        """(period - ideal) / period; (p - 1)/(m + p - 1) for GPipe and 1F1B."""
        return self._bubble / self.period

    @property
    def _bubble(self) -> float:
        return max(0.0, self.period - self.ideal)  # sums of the same times may round apart

    @property
    def peak_in_flight(self) -> tuple[float, ...]:
        """The most micro-batches whose activations each stage holds; a chunk is part of one."""
        return self.schedule.peak_in_flight

    @property
    def notes(self) -> tuple[str, ...]:
        """What may surprise: one sentence each."""
        schedule = self.schedule
        least = min(schedule.stages, schedule.microbatches)
        held = self.peak_in_flight[0]
        if schedule.name != "interleaved" or schedule.chunks > 1 or held <= least:
            return ()
        return (
            "With one chunk on each stage, interleaved keeps its long warm-up of 2(p - 1 - i) "
            f"forwards: stage 0 holds {held:g} micro-batches, where 1f1b holds {least} and takes "
            "no longer on equal stages.",
        )

    @property
    def idle(self) -> tuple[float, ...]:
        """Each stage's idle share of the makespan."""
        return tuple(1 - busy / self.makespan for busy in self.timing.busy)

    @property
    def parameter_copies(self) -> int:
        """How often the pipeline holds the model's parameters: 2 for DualPipe, else 1."""
        return self.schedule.parameter_copies

    @cached_property
    def timeline(self) -> pd.DataFrame:
        """One row for each task, by stage and start.

        Columns stage, chunk, microbatch, kind (F, B, W or F&B), start, end; for F&B chunk and
        microbatch are the forward's, backward_chunk and backward_microbatch the backward's (-1 in
        other rows).
        """
        rows = [(stage, *task) for stage, row in enumerate(self.schedule.rows) for task in row]
        columns = (
            "stage", "kind", "microbatch", "chunk", "backward_microbatch", "backward_chunk",
        )  # fmt: skip
        frame = pd.DataFrame(rows, columns=list(columns))
        frame["start"], frame["end"] = self.timing.start, self.timing.end
        order = ["stage", "chunk", "microbatch", "kind", "start", "end"]
        return frame[[*order, "backward_chunk", "backward_microbatch"]]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; the timeline as a list of rows."""
        schedule = self.schedule
        own = (
            "forward", "backward", "weight", "transfer", "makespan", "period", "ideal",
            "bubble_of_ideal", "bubble_of_total", "peak_in_flight", "idle", "parameter_copies",
            "notes",
        )  # fmt: skip
        return {
            "schedule": schedule.name,
            "stages": schedule.stages,
            "microbatches": schedule.microbatches,
            "chunks": schedule.chunks,
            **{name: getattr(self, name) for name in own},
            "timeline": self.timeline.to_dict("records"),
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict()) + "\n"


def pipeline(
    schedule: str = "1f1b",
    *,
    stages: int = 4,
    microbatches: int = 8,
    forward: PerStage = 1.0,
    backward: PerStage = 2.0,
    weight: PerStage | None = None,
    chunks: int = 1,
    transfer: PerStage = 0.0,
    grid: Grid | None = None,
) -> PipelineResult:
    """What a pipeline schedule takes and holds.

    `forward`, `backward` and `weight` (the part of `backward` that makes the weights' gradient) are
    the times of one micro-batch on a stage, all its chunks together; one value, or one for each
    stage. `weight` None is 1, or `backward` where that is less. `transfer` is the delay of a hop
    from a stage to the next one or back; the last stage's is to the first, where chunks run in
    loops. Under DualPipe values belong to parts of the model: stage i holds parts i and p - 1 - i.
    A `grid` (see `triosim.schedules.read_grid`) says the schedule, the stages, the micro-batches
    and the chunks itself.

    Raises `ConfigError` naming the nearest legal values.
    """
    if grid is None:
        made = make_schedule(
            str(schedule).strip().lower().replace("_", "-"),
            _whole("stages", stages),
            _whole("microbatches", microbatches),
            _whole("chunks", chunks),
        )
    else:
        made = read_grid(grid)
    times = {
        "forward": _per_stage("forward", forward, made.stages),
        "backward": _per_stage("backward", backward, made.stages),
        "transfer": _per_stage("transfer", transfer, made.stages),
    }
    if not any(times["forward"]) and not any(times["backward"]):
        raise ConfigError("forward", forward, "forward and backward cannot both be 0")
    whole = times["backward"]
    times["weight"] = (
        tuple(min(1.0, time) for time in whole)
        if weight is None
        else _per_stage("weight", weight, made.stages)
    )
    for part, time in zip(times["weight"], whole, strict=True):
        if part > time:
            raise ConfigError("weight", part, f"must be at most backward, here {time:g}")
    return PipelineResult(timing=time_schedule(made, _durations(made, times)), **times)


def _durations(schedule: Schedule, times: dict[str, tuple[float, ...]]) -> Durations:
    """Per-stage values to virtual stages: equal shares for a stage's chunks."""
    share = schedule.stages / schedule.virtual_stages
    forward, backward, weight = (
        [share * times[name][place.stage] for place in schedule.routes[0]]
        for name in ("forward", "backward", "weight")
    )
    return Durations(forward=forward, backward=backward, weight=weight, hop=times["transfer"])


def _whole(field: str, value: object) -> int:
    number = _number(value)
    if not (number.is_integer() and 1 <= number <= MAX_COUNT):
        raise ConfigError(field, value, f"must be a whole number from 1 to {MAX_COUNT:,}")
    return int(number)


def _per_stage(field: str, value: object, stages: int) -> tuple[float, ...]:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    values = list(value) if isinstance(value, list | tuple) else [value] * stages
    if len(values) != stages:
        words = [item for item in values if isinstance(item, str)]
        if len(words) == len(values):
            value = ",".join(words)  # as it is typed
        raise ConfigError(field, value, f"must be one number or one for each of {stages} stages")
    numbers = tuple(_number(item) for item in values)
    for item, number in zip(values, numbers, strict=True):
        if not 0 <= number <= MAX_TIME:
            raise ConfigError(field, item, f"must be a number from 0 to {MAX_TIME:g}")
    return numbers


def _number(value: object) -> float:
    """A number, or one in words of a command line; NaN for anything else."""
    if isinstance(value, bool):
        return math.nan
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return math.nan
