"""What a sweep can go through: the settings of the pages Simulate and Train, in plain groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from dashboard.settings import DESCRIBED, Setting, case_title, number_text
from dashboard.settings import SETTINGS as SIMULATE
from dashboard.topologies import NAMES
from dashboard.train_settings import EVERY_NTH, FIELDS, NAMED, OWN_GRID
from dashboard.train_settings import SETTINGS as TRAIN
from triosim.resolved import AnyScenario
from triosim.scenario import CASES
from triosim.trace import load_trace
from triosim.train import TrainScenario

# Fields of the engine by group, those that people ask about first on top.
TRAIN_GROUPS: Mapping[str, tuple[str, ...]] = {
    "Size": ("gpus", "micro_batch_size", "global_batch", "seq_len"),
    "Mesh": ("tp", "pp", "cp", "dp_shard", "dp_replicate", "ep", "zero"),
    "Hardware": ("gpu", "machine"),
    "Memory": ("recompute", "precision", "optimizer_state", "reshard", "offload"),
    "Pipeline": ("schedule", "chunks", "optimizer_sync"),
    "Communication": (
        "sequence_parallel", "loss_parallel", "async_tp", "context", "fsdp", "prefetch",
        "bucket_mb",
    ),
    "Software": (
        "stack", "compile", "cuda_graphs", "optimizer", "fused_optimizer", "extra_ms_per_step",
    ),
    "Model": (
        "model", "layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "experts", "top_k",
        "expert_skew",
    ),
}  # fmt: skip
TRACE_GROUPS: Mapping[str, tuple[str, ...]] = {
    "Size": ("gpus", "batch_size_sim", "micro_batch_size", "accumulate"),
    "Links": (
        "ptp_bandwidth_gb_per_s", "latency_us", "topology", "algorithm", "ptp_convention",
        "protocol", "interconnect",
    ),
    "Hardware": ("gpu", "bandwidth_gb_per_s", "capacity_log2", "resident"),
    "Layout": ("case", "schedule", "stage_cut", "bucket_mb"),
    "Imperfections": ("jitter", "seed", "slow_every", "overlap_slowdown"),
    "Optical": (
        "optical_gb_per_s", "hop_latency_ns", "circuit_setup_ms", "circuit_teardown_ms",
        "wavelengths", "mesh_rows",
    ),
}  # fmt: skip
_LABELS = {
    "tp": "Tensor parallel (tp)", "pp": "Pipeline stages (pp)", "cp": "Context parallel (cp)",
    "dp_shard": "FSDP (dp_shard)", "dp_replicate": "Replicas (dp_replicate)",
    "ep": "Expert parallel (ep)", "gpu": "GPU type", "gpus": "GPUs",
    "machine": "Machine or network",
    "expert_skew": "Expert skew", "model": "Model", "micro_batch_size": "Micro-batch",
}  # fmt: skip
# Where a doubling from the base's value says little.
_PROPOSED = {
    "gpus": "8 to 64 x2", "tp": "1, 2, 4, 8", "pp": "1, 2, 4", "cp": "1, 2, 4",
    "dp_replicate": "1, 2, 4, 8", "dp_shard": "1, 2, 4, 8", "ep": "1, 2, 4, 8",
    "micro_batch_size": "1 to 8 x2", "chunks": "1, 2, 4", "seq_len": "2048 to 32768 x2",
    "jitter": "0, 0.02, 0.05, 0.1", "seed": "0 to 7", "overlap_slowdown": "0, 0.1, 0.2, 0.4",
    "expert_skew": "1, 1.2, 1.5, 2", "extra_ms_per_step": "0, 10, 50, 100", "mesh_rows": "1, 2, 4",
    "prefetch": "0, 1, 2", "capacity_log2": "34, 35, 36, 37", "top_k": "1, 2, 4, 8",
    "accumulate": "1, 2, 4, 8", "circuit_setup_ms": "0, 0.1, 1, 10",
    "circuit_teardown_ms": "0, 0.1, 1, 10", "slow_every": "1, 2, 5, 10",
    "wavelengths": "1, 2, 4, 8",
    "experts": "8, 16, 32", "kv_heads": "1, 2, 4, 8", "latency_us": "0, 1, 5, 20",
}  # fmt: skip
_TYPICAL = {"gpu": 4, "model": 4, "stack": 4, "machine": 3}


@dataclass(frozen=True, kw_only=True)
class Field:
    """A field of a scenario: what people call it, and which values are legal.

    `choices` maps what people read to values; it is empty for numbers, which are from `low` to
    `high` and `whole` or not.
    """

    name: str
    label: str
    group: str
    choices: Mapping[str, Any]
    whole: bool
    low: float
    high: float

    @property
    def short(self) -> str:
        """Without unit or remark, for a sentence."""
        return self.label.partition(" (")[0]

    @property
    def title(self) -> str:
        """With its group, for a list."""
        return f"{self.group}: {self.label}"


def fields_of(scenario: AnyScenario) -> Mapping[str, Field]:
    """What a scenario of its kind can go through, by the engine's names."""
    return fields_of_kind("train" if isinstance(scenario, TrainScenario) else "trace")


def fields_of_kind(kind: str) -> Mapping[str, Field]:
    """The same of every scenario of a kind, train or trace."""
    return _train_fields() if kind == "train" else _trace_fields()


def matters(name: str, base: AnyScenario) -> bool:
    """Whether a field changes anything of a step, as the page Simulate has it."""
    if isinstance(base, TrainScenario):
        return True
    values = {name: getattr(base, setting.field, None) for name, setting in SIMULATE.items()}
    if base.topology is not None and not base.generic_topology:
        values["topology"] = DESCRIBED  # as a machine's, its links have speeds of their own
    return SIMULATE[name].matters(values)


@lru_cache(maxsize=1)
def _train_fields() -> Mapping[str, Field]:
    controls = {field: TRAIN[name] for name, field in FIELDS.items()}
    return {
        name: _field(name, group, controls[name], _train_choices(controls[name]))
        for group, names in TRAIN_GROUPS.items()
        for name in names
    }


@lru_cache(maxsize=1)
def _trace_fields() -> Mapping[str, Field]:
    return {
        name: _field(name, group, SIMULATE[name], _trace_choices(SIMULATE[name]))
        for group, names in TRACE_GROUPS.items()
        for name in names
    }


def _field(name: str, group: str, setting: Setting, choices: Mapping[str, Any]) -> Field:
    return Field(
        name=name,
        label=_LABELS.get(name, setting.label),
        group=group,
        choices=choices,
        whole=setting.kind == "whole",
        low=setting.low,
        high=setting.high,
    )


def _train_choices(setting: Setting) -> Mapping[str, Any]:
    if setting.kind == "switch":
        return {"off": False, "on": True}
    if setting.name in NAMED:
        return NAMED[setting.name]
    no_values = (OWN_GRID, EVERY_NTH)
    return {choice: choice for choice in setting.choices if choice not in no_values}


def _trace_choices(setting: Setting) -> Mapping[str, Any]:
    if setting.kind == "switch":
        return {"off": False, "on": True}
    if setting.name == "case":
        # Commas stand between the values.
        return {f"{case}: {case_title(case).replace(',', '')}": case for case in CASES}
    if setting.name == "topology":
        return {"as TrioSim": None, **{name: name for name in NAMES}}
    if setting.name == "gpu":
        return {"as traced": None, **{name: name for name in setting.choices}}
    return {choice: choice for choice in setting.choices}


def proposed(field: Field, base: AnyScenario) -> str:
    """Values to begin with, as text."""
    now = getattr(base, field.name)
    if field.choices:
        names = [name for name, value in field.choices.items() if value == now]
        others = [name for name, value in field.choices.items() if value != now]
        return ", ".join([*names, *others][: _TYPICAL.get(field.name, 6)])
    if field.name in _PROPOSED:
        return _PROPOSED[field.name]
    if now is None:
        now = _stands_for(field.name, base)
    low, high = max(field.low, now / 4), min(field.high, now * 4)
    if field.whole:
        low, high = max(1, round(low)), round(high)
    return f"{number_text(low)} to {number_text(high)} x2"


def _stands_for(name: str, base: AnyScenario) -> float:
    """What nothing stands for."""
    if isinstance(base, TrainScenario):
        if name == "global_batch":
            return base.gpus * base.micro_batch_size
        found = getattr(base.transformer(), name, None)
        return found if isinstance(found, int) and found else 8
    return load_trace(base.trace_dir).batch_size
