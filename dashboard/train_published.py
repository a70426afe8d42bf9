"""Published runs: the presets of the page Train, and what was measured for a scenario."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from triosim.errors import TrioSimError, counted
from triosim.network.topology.description import Description
from triosim.train import TrainScenario, make_plan
from triosim.train.plan import Plan
from triosim.validation import Row, Source, load_source, rows_of, source_names
from triosim.validation.tables import STEP


@dataclass(frozen=True, kw_only=True)
class Published:
    """A measured run and where it is from."""

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
    found = _steps()
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

    Of two runs with the same settings the first.
    """
    wanted, alike = _measurable(plan), _alike(plan.scenario)
    for number, run in enumerate(_steps()):
        # Making a plan takes too long to do it for all of them.
        if _alike(run.row.scenario) == alike and _planned(number) == wanted:
            return run
    return None


def _alike(scenario: TrainScenario) -> tuple[object, ...]:
    """What no default stands for."""
    return scenario.gpus, scenario.gpu, scenario.model, scenario.layers, scenario.precision


def _measurable(plan: Plan) -> TrainScenario:
    """The plan without what only says how it is simulated."""
    return replace(spelt_out(plan), stack="generic", constants=None)


@lru_cache(maxsize=256)
def _planned(number: int) -> TrainScenario | None:
    """A published step's settings; None for a run that the engine refuses."""
    try:
        return _measurable(make_plan(_steps()[number].row.scenario))
    except TrioSimError:
        return None


@lru_cache(maxsize=1)
def _steps() -> tuple[Published, ...]:
    return tuple(
        Published(row=row, source=source)
        for source in map(load_source, source_names())
        if source.kind == "train" and source.table is not None
        for row in rows_of(source)
        if row.measured == STEP
    )
