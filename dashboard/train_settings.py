"""Every setting of the page Train: its name in the address, label, default and legal values.

The names differ from those of the other pages, because a bound parameter belongs to one widget.
`FIELDS` says which field of `TrainScenario` each one is. A default must never change within a
version of links, which leave defaults out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dashboard.settings import Setting
from triosim.hardware import gpu_names
from triosim.hardware.stacks import stack_names
from triosim.network.topology.machines import machine_names
from triosim.schedules import SCHEDULES
from triosim.train.scenario import CONTEXTS, PRECISIONS, TrainScenario
from triosim.workload import model_names

TABS = ("Timeline", "Where time goes", "Memory", "Mesh", "Checks and assumptions", "Export")
AUTO = "auto"
# What the address and the page call a value; a bound choice has one name.
NAMED: Mapping[str, Mapping[str, Any]] = {
    "machine": {AUTO: None, **{name: name for name in machine_names()}},
    "mode": {"as the stack": None, "eager": False, "compiled": True},
    "zero": {AUTO: None, "0": 0, "1": 1, "2": 2, "3": 3},
    "fsdp": {"1": 1, "2": 2},
}
RECOMPUTE = (
    "none", "selective-op", "selective-layer:2", "selective-layer:3", "selective-layer:4",
    "attention", "full",
)  # fmt: skip
AXES = ("dp_replicate", "dp_shard", "cp", "tp", "pp", "ep")
MAX_GPUS = 131_072
MAX_COUNT = 1_000_000


def _choice(name: str, label: str, default: str, choices: tuple[str, ...]) -> Setting:
    return Setting(name=name, label=label, default=default, kind="choice", choices=choices)


def _named(name: str, label: str, default: str) -> Setting:
    return _choice(name, label, default, tuple(NAMED[name]))


def _whole(name: str, label: str, default: int | None, high: int = MAX_GPUS) -> Setting:
    return Setting(name=name, label=label, default=default, kind="whole", low=1, high=high)


def _switch(name: str, label: str, default: bool = False) -> Setting:
    return Setting(name=name, label=label, default=default, kind="switch")


_ALL = (
    _choice("model", "Model", "llama3-8b", tuple(model_names())),
    _choice("accelerator", "GPU", "h100-96gb", tuple(gpu_names())),
    _named("machine", "Machine", "seminar-h100"),
    _whole("world", "GPUs", 8),
    _whole("micro", "Micro-batch", 2, MAX_COUNT),
    _whole("seq", "Sequence (tokens)", 8192, 2**24),
    _whole("shard", "dp_shard: FSDP", None),
    _whole("tp", "tp: tensor", 1),
    _whole("pp", "pp: pipeline", 1),
    _whole("cp", "cp: context", 1),
    _choice("stack", "Software stack", "torchtitan-compile", tuple(stack_names())),
    _choice("recompute", "Recompute", "selective-op", RECOMPUTE),
    _choice("precision", "Precision", "bf16", PRECISIONS),
    _named("mode", "Compile", "as the stack"),
    _whole("batch", "Global batch (sequences)", None, MAX_COUNT),
    _whole("replicate", "dp_replicate: DDP, HSDP", 1),
    _whole("ep", "ep: experts", 1),
    _named("zero", "ZeRO stage", AUTO),
    _named("fsdp", "FSDP version", "2"),
    _switch("reshard", "Reshard after forward", True),
    _choice("pipeline", "Pipeline schedule", "1f1b", tuple(SCHEDULES)),
    _whole("chunks", "Virtual stages per stage", 1, 1024),
    _choice("context", "Context parallelism", "ring-zigzag", tuple(CONTEXTS)),
    _switch("sp", "Sequence parallel"),
    _switch("async_tp", "Async TP"),
    _switch("loss_parallel", "Loss parallel"),
    _choice("optimizer", "Optimizer", "adamw", ("sgd", "adam", "adamw")),
    _switch("graphs", "CUDA graphs"),
    _switch("offload", "Activations to the host"),
)
FIELDS: Mapping[str, str] = {
    **{setting.name: setting.name for setting in _ALL},
    "accelerator": "gpu", "world": "gpus", "micro": "micro_batch_size", "seq": "seq_len",
    "shard": "dp_shard", "mode": "compile", "batch": "global_batch", "replicate": "dp_replicate",
    "pipeline": "schedule", "sp": "sequence_parallel", "graphs": "cuda_graphs",
}  # fmt: skip
VIEW = (
    _choice("look", "Tab", TABS[0], TABS),
    Setting(
        name="measured", label="Your measured step (ms)", default=None, kind="number",
        low=1e-3, high=1e9,
    ),
    _choice("colour_by", "Colour ranks by their group of", AXES[1], AXES),
    _switch("streams", "Communication streams"),
)  # fmt: skip
SETTINGS: Mapping[str, Setting] = {setting.name: setting for setting in (*_ALL, *VIEW)}
# Where the engine names something that no control is called.
ALSO: Mapping[str, str] = {
    "microbatches": "batch", "stages": "pp", "topology": "machine", "heads": "tp",
    "kv_heads": "tp", "layers": "pp",
}  # fmt: skip


def control_of(field: str) -> str:
    """The control of a field of `TrainScenario`; "" where the page has none."""
    for name, own in FIELDS.items():
        if own == field:
            return name
    return ALSO.get(field, "")


def values_of(scenario: TrainScenario) -> dict[str, Any]:
    """What the controls say for a scenario."""
    values: dict[str, Any] = {}
    for name, field in FIELDS.items():
        value = getattr(scenario, field)
        if name in NAMED:
            value = next(said for said, meant in NAMED[name].items() if meant == value)
        elif name == "shard" and value == -1:
            value = None
        elif name == "seq":
            value = scenario.sequence
        values[name] = value
    return values


def scenario_of(values: Mapping[str, Any]) -> TrainScenario:
    """The scenario that the controls say.

    Raises `ConfigError` naming the field.
    """
    given: dict[str, Any] = {}
    for name, field in FIELDS.items():
        value = values[name]
        if name in NAMED:
            value = NAMED[name][value]
        elif name == "shard" and value is None:
            value = -1
        given[field] = value
    return TrainScenario(**given)
