"""Published runs: the presets of the page Train, and what was measured for a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from triosim.errors import TrioSimError
from triosim.train import TrainScenario, make_plan
from triosim.train.plan import Plan
from triosim.validation import Row, Source, load_source, rows_of, source_names
from triosim.validation.tables import STEP

SOURCE = "torchtitan"
# Rows of the source by their number there.
PUBLISHED: Mapping[str, int] = {
    "Llama 8B, 8 GPUs, eager": 0,
    "Llama 8B, 8 GPUs, compiled": 1,
    "Llama 8B, 8 GPUs, compiled, fp8": 2,
    "Llama 8B, 128 GPUs, eager": 3,
    "Llama 8B, 128 GPUs, compiled": 4,
    "Llama 8B, 128 GPUs, compiled, fp8": 5,
    "Llama 8B, 128k tokens, cp 4": 8,
    "Llama 70B, 256 GPUs, tp 8": 10,
    "Llama 70B, 256 GPUs, tp 8, async": 11,
    "Llama 405B, 512 GPUs, 1F1B": 12,
    "Llama 405B, 512 GPUs, interleaved": 13,
}
OWN: Mapping[str, TrainScenario] = {
    "GPT-2 small, 1 GPU": TrainScenario(
        model="gpt2", gpu="h100-sxm", gpus=1, micro_batch_size=8, seq_len=1024, stack="generic"
    ),
}


@dataclass(frozen=True, kw_only=True)
class Published:
    """A measured run and where it is from."""

    row: Row
    source: Source

    @property
    def tokens_per_s_per_gpu(self) -> float | None:
        scenario, seconds = self.row.scenario, self.row.published_s
        if seconds is None or scenario.global_batch is None:
            return None
        return scenario.global_batch * scenario.sequence / (seconds * scenario.gpus)


def preset_names() -> tuple[str, ...]:
    return (*PUBLISHED, *OWN)


def preset(name: str) -> TrainScenario:
    """The scenario of a preset, with what follows from other settings left open.

    So another number of GPUs needs no other change.
    """
    if name in OWN:
        return OWN[name]
    rows = rows_of(load_source(SOURCE))
    exact = next(row.scenario for row in rows if row.number == PUBLISHED[name])
    open_ = replace(exact, dp_shard=-1, global_batch=None, compile=None)
    return open_ if spelt_out(make_plan(open_)) == spelt_out(make_plan(exact)) else exact


def spelt_out(plan: Plan) -> TrainScenario:
    """The plan's scenario with every default written as the value that it stands for."""
    sizes = {axis: plan.sizes[axis] for axis in ("dp_replicate", "dp_shard", "cp", "tp", "pp")}
    return replace(
        plan.scenario,
        **sizes,
        global_batch=plan.global_batch,
        machine=plan.machine,
        zero=plan.zero,
        seq_len=plan.seq,
        compile=plan.scenario.compiled,
    )


def published_for(plan: Plan) -> Published | None:
    """What was measured with exactly these settings."""
    return _known().get(spelt_out(plan))


@lru_cache(maxsize=1)
def _known() -> dict[TrainScenario, Published]:
    """Every published step by its scenario; of two runs with the same settings the first."""
    found: dict[TrainScenario, Published] = {}
    for name in source_names():
        source = load_source(name)
        if source.kind != "train" or source.table is None:
            continue
        for row in rows_of(source):
            if row.measured == STEP:
                _add(found, Published(row=row, source=source))
    return found


def _add(found: dict[TrainScenario, Published], run: Published) -> None:
    try:
        found.setdefault(spelt_out(make_plan(run.row.scenario)), run)
    except TrioSimError:
        return  # a run that the engine refuses has no simulated value to stand beside
