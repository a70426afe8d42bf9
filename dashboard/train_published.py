"""Published runs: the presets of the page Train, and what was measured for a scenario."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from dashboard.validation_run import is_here
from triosim.errors import ConfigError, TrioSimError, counted
from triosim.network.topology.description import Description
from triosim.train import TrainScenario, make_plan
from triosim.train.plan import Plan
from triosim.validation import (
    Row,
    Source,
    load_source,
    published_folder,
    rows_of,
    source_names,
)
from triosim.validation.tables import STEP


@dataclass(frozen=True, kw_only=True)
class Published:
    """A measured run, a step's or one layer's, and where it is from."""

    row: Row
    source: Source

    @property
    def label(self) -> str:
        """The run in a few words, with its source and how much a step holds."""
        batch = self.row.scenario.global_batch
        held = "" if batch is None else f", {counted(batch, 'sequence')}"
        label = self.row.label.replace(", recompute none", "")
        return f"{self.source.title}: {label}{held}"

    @property
    def tokens_per_s_per_gpu(self) -> float | None:
        scenario, seconds = self.row.scenario, self.row.published_s
        if seconds is None or scenario.global_batch is None:
            return None
        return scenario.global_batch * scenario.sequence / (seconds * scenario.gpus)


@lru_cache(maxsize=1)
def presets() -> Mapping[str, Published]:
    """Every published step with its source's table, by label; same labels get the row's number."""
    found = [run for run in _runs(_shipped(), published_folder()) if run.row.measured == STEP]
    often = Counter(run.label for run in found)
    return {
        run.label if often[run.label] == 1 else f"{run.label} (row {run.row.number})": run
        for run in found
    }


def preset(name: str) -> TrainScenario:
    """The scenario of a preset, with what follows from other settings left open.

    So another number of GPUs needs no other change.
    """
    exact = presets()[name].row.scenario
    free = replace(exact, dp_shard=-1, global_batch=None, compile=None)
    return free if spelt_out(make_plan(free)) == spelt_out(make_plan(exact)) else exact


def spelt_out(plan: Plan) -> TrainScenario:
    """The plan's scenario with every default written as the value that it stands for."""
    sizes = {axis: plan.sizes[axis] for axis in ("dp_replicate", "dp_shard", "cp", "tp", "pp")}
    described = isinstance(plan.scenario.machine, Description)
    traced = plan.scenario.trace_dir is not None  # whose sequence is not the scenario's
    return replace(
        plan.scenario,
        **sizes,
        global_batch=plan.global_batch,
        machine=plan.scenario.machine if described else plan.machine,
        zero=plan.zero,
        seq_len=None if traced else plan.seq,
        compile=plan.scenario.compiled,
    )


def published_for(plan: Plan) -> Published | None:
    """What was measured with exactly these settings, whatever is assumed of the software.

    Of two runs with the same settings the first. Data sets that are not part of the project count
    where they are here.
    """
    wanted = _measurable(plan)
    # Making a plan takes too long to do it for all of them.
    for run in _by_likeness(_here(), published_folder()).get(_alike(plan.scenario), ()):
        if _planned(run.row.scenario) == wanted:
            return run
    return None


def _alike(scenario: TrainScenario) -> tuple[object, ...]:
    """What no default stands for."""
    s = scenario
    model = s.model, s.layers, s.hidden
    return s.gpus, s.gpu, model, s.precision, s.micro_batch_size, s.schedule, s.recompute


def _measurable(plan: Plan) -> TrainScenario:
    """The plan without what only says how it is simulated."""
    return replace(spelt_out(plan), stack="generic", constants=None)


@lru_cache(maxsize=2048)
def _planned(scenario: TrainScenario) -> TrainScenario | None:
    """A published run's settings; None for a run that the engine refuses."""
    try:
        return _measurable(make_plan(scenario))
    except TrioSimError:
        return None


def _shipped() -> tuple[str, ...]:
    """Sources whose runs are part of the project."""
    return tuple(
        source.name
        for source in map(load_source, source_names())
        if source.kind == "train" and source.table is not None
    )


def _here() -> tuple[str, ...]:
    """These, and those whose data set lies in the folder of published data."""
    return tuple(
        source.name
        for source in map(load_source, source_names())
        if source.kind == "train" and is_here(source)
    )


@lru_cache(maxsize=4)
def _by_likeness(
    names: tuple[str, ...], folder: Path
) -> Mapping[tuple[object, ...], Sequence[Published]]:
    """Runs by what no default stands for; steps come before the times of a layer."""
    found: dict[tuple[object, ...], list[Published]] = {}
    for run in sorted(_runs(names, folder), key=lambda run: run.row.measured != STEP):
        found.setdefault(_alike(run.row.scenario), []).append(run)
    return found


@lru_cache(maxsize=4)
def _runs(names: tuple[str, ...], folder: Path) -> tuple[Published, ...]:
    found: list[Published] = []
    for source in map(load_source, names):
        # A data set that cannot be read is said on the page Validation.
        with suppress(ConfigError):
            found += [Published(row=row, source=source) for row in rows_of(source, folder)]
    return tuple(found)
