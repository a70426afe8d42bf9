"""Every setting of the page Train: its name in the address, label, default and legal values.

The names differ from those of the other pages, because a bound parameter belongs to one widget.
`FIELDS` says which field of `TrainScenario` each one is. A default must never change within a
version of links, which leave defaults out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from dashboard.links import WHOLE_STEP
from dashboard.settings import DESCRIBED, Setting, Values, whole_setting
from dashboard.settings import choice_setting as _choice
from dashboard.settings import number_setting as _number
from dashboard.settings import switch_setting as _switch
from dashboard.settings import text_setting as _text
from triosim.errors import ConfigError
from triosim.hardware import gpu_names
from triosim.hardware.stacks import RANGED, SHARES, stack_names
from triosim.network.topology.describe import GENERIC
from triosim.network.topology.machines import machine_names
from triosim.schedules import SCHEDULES
from triosim.train.scenario import CONTEXTS, PRECISIONS
from triosim.workload import model_names

TABS = (
    "Timeline", "Where time goes", "Memory", "Mesh", "Whole run", "Checks and assumptions",
    "Export",
)  # fmt: skip
AUTO = "auto"
STACKS_OWN = "as the stack"
CATALOGUE, TYPED, CONFIG, TRACE = ORIGINS = (
    "the catalogue", "sizes typed in", "a config.json", "a recorded step",
)  # fmt: skip
OWN_GRID = "typed as a grid"
EVERY_NTH = "selective-layer:N"
_SWITCH: Mapping[str, bool | None] = {"yes": True, "no": False}
# What the address and the page call a value; a bound choice has one name.
NAMED: Mapping[str, Mapping[str, Any]] = {
    "machine": {
        AUTO: None, **{name: name for name in (*machine_names(), *GENERIC)},
    },
    "mode": {STACKS_OWN: None, "eager": False, "compiled": True},
    "fused": {STACKS_OWN: None, **_SWITCH},
    "zero": {AUTO: None, "0": 0, "1": 1, "2": 2, "3": 3},
    "fsdp": {"1": 1, "2": 2},
    "gated": {"as the model": None, **_SWITCH},
    "tied": {"as the model": None, **_SWITCH},
    "sync": {"after all stages": "global", "each stage alone": "stage"},
}  # fmt: skip
RECOMPUTE = (
    "none", "selective-op", "selective-layer:2", "selective-layer:3", "selective-layer:4",
    EVERY_NTH, "attention", "full",
)  # fmt: skip
AXES = ("dp_replicate", "dp_shard", "cp", "tp", "pp", "ep")
MAX_GPUS = 131_072
MAX_COUNT = 1_000_000
# Networks whose sizes can be chosen, as in torus:4x8.
SHAPED = tuple(name for name, generic in GENERIC.items() if generic.counts)
# What a model of one's own needs, and what may change another one.
NEEDED = ("layers", "hidden", "heads", "ffn", "vocab")


def _named(name: str, label: str) -> Setting:
    names = tuple(NAMED[name])
    return _choice(name, label, names[0], names)


def _whole(
    name: str, label: str, default: int | None, high: int = MAX_GPUS, low: int = 1
) -> Setting:
    return whole_setting(name, label, default, low, high)


_SIZES = (
    _whole("layers", "Layers", None, 1024),
    _whole("hidden", "Hidden size", None, 2**18),
    _whole("heads", "Heads", None, 4096),
    _whole("kv_heads", "KV heads", None, 4096),
    _whole("head_dim", "Size of a head", None, 2**16),
    _whole("ffn", "MLP width", None, 2**20),
    _named("gated", "Gated MLP"),
    _whole("vocab", "Vocabulary", None, 2**24),
    _named("tied", "Tied embeddings"),
    _whole("experts", "Experts", None, 4096, low=0),
    _whole("top_k", "Experts per token", None, 4096, low=0),
    _whole("shared_experts", "Shared experts", None, 256, low=0),
    _whole("expert_ffn", "Width of an expert", None, 2**20),
)
SIZES = tuple(setting.name for setting in _SIZES)
_SCENARIO = (
    _choice("model", "Model", "llama3-8b", tuple(model_names())),
    _text("config", "Uploaded config.json"),
    _text("recorded", "Recorded step"),
    *_SIZES,
    _switch("prefill", "Prefill only: time to first token"),
    _choice("accelerator", "GPU", "h100-96gb", tuple(gpu_names())),
    _choice("machine", "Machine", "seminar-h100", (*NAMED["machine"], DESCRIBED)),
    _whole("world", "GPUs", 8),
    _whole("micro", "Micro-batch", 2, MAX_COUNT),
    _whole("seq", "Sequence (tokens)", None, 2**24),
    _whole("shard", "dp_shard: FSDP", None),
    _whole("tp", "tp: tensor", 1),
    _whole("pp", "pp: pipeline", 1),
    _whole("cp", "cp: context", 1),
    _choice("stack", "Software stack", "torchtitan-2024", tuple(stack_names())),
    _choice("recompute", "Recompute", "selective-op", RECOMPUTE),
    _choice("precision", "Precision", "bf16", PRECISIONS),
    _named("mode", "Compile"),
    _whole("batch", "Global batch (sequences)", None, MAX_COUNT),
    _whole("replicate", "dp_replicate: DDP", 1),
    _whole("ep", "ep: experts", 1),
    _number("skew", "Expert skew (busiest rank over the mean)", 1.0, 1, 1e6),
    _named("zero", "ZeRO stage"),
    _choice("fsdp", "FSDP version", "2", tuple(NAMED["fsdp"])),
    _switch("reshard", "Reshard after forward", True),
    _whole("prefetch", "Prefetched layers", None, 1024, low=0),
    _number("buckets", "Buckets (MiB)", 25.0, 1e-6, 1e6),
    _choice("pipeline", "Pipeline schedule", "1f1b", (*SCHEDULES, OWN_GRID)),
    _whole("chunks", "Virtual stages per stage", 1, 1024),
    _text("grid", "Grid (a line for each stage)"),
    _choice("context", "Context parallelism", "ring-zigzag", tuple(CONTEXTS)),
    _switch("sp", "Sequence parallel"),
    _switch("async_tp", "Async TP"),
    _switch("loss_parallel", "Loss parallel"),
    _choice("optimizer", "Optimizer", "adamw", ("sgd", "adam", "adamw")),
    _choice("state", "Optimizer state", "fp32", ("fp32", "bf16")),
    _named("fused", "Fused optimizer"),
    _named("sync", "Parameters are updated"),
    _switch("graphs", "CUDA graphs"),
    _text("breaks", "Graph breaks after modules"),
    _switch("offload", "Activations to the host"),
    _text("slow", "Slow GPUs (rank=speed)"),
    _number("extra", "More time per step (ms)", 0.0, 0, 1e9),
)
FIELDS: Mapping[str, str] = {
    **{setting.name: setting.name for setting in _SCENARIO},
    "recorded": "trace_dir", "accelerator": "gpu", "world": "gpus", "micro": "micro_batch_size",
    "seq": "seq_len", "shard": "dp_shard", "mode": "compile", "batch": "global_batch",
    "replicate": "dp_replicate", "skew": "expert_skew", "buckets": "bucket_mb",
    "pipeline": "schedule", "sp": "sequence_parallel", "state": "optimizer_state",
    "fused": "fused_optimizer", "sync": "optimizer_sync", "graphs": "cuda_graphs",
    "breaks": "graph_breaks", "slow": "rank_speed", "extra": "extra_ms_per_step",
}  # fmt: skip
# A stack's constants by their control: other values than the stack's own.
CONSTANTS: Mapping[str, str] = {f"stack_{name}": name for name in RANGED}
_CONSTANTS = tuple(
    _number(control, name, None, 1e-6 if name in SHARES else 0.0, 1.0 if name in SHARES else 1e9)
    for control, name in CONSTANTS.items()
)
# Settings that are no field alone: they say where one is from, or how it goes on.
_PARTS = (
    _choice("origin", "Model from", CATALOGUE, ORIGINS),
    _text("shape", "Shape of the network"),
    _text("described", "Description of the network"),
    _whole("period", "Every N-th layer: N", 5, MAX_COUNT),
)
VIEW = (
    _choice("look", "Tab", TABS[0], TABS),
    _number("measured", "Your measured step (ms)", None, 1e-3, 1e9),
    _number("tokens", "Tokens to train on (billion)", None, 1e-6, 1e9),
    _number("price", "Price of a GPU hour", None, 0, 1e6),
    _choice("colour_by", "Colour ranks by their group of", AXES[1], AXES),
    _switch("streams", "Communication streams"),
    _switch("train_path", "Critical path"),
    Setting(name="train_window", label="Window", default=WHOLE_STEP, kind="window"),
)
_MATTERS: Mapping[str, tuple[Callable[[Values], bool], str]] = {
    "model": (lambda v: v["origin"] == CATALOGUE, "the model is not from the catalogue"),
    "config": (lambda v: v["origin"] == CONFIG, "the model is not from a config.json"),
    "recorded": (lambda v: v["origin"] == TRACE, "the model is not a recorded step"),
    **dict.fromkeys(
        (*SIZES, "seq"), (lambda v: v["origin"] != TRACE, "a recorded step has its own sizes")
    ),
    "shape": (lambda v: v["machine"] in SHAPED, "this network has no shape to choose"),
    "described": (lambda v: v["machine"] == DESCRIBED, f"the machine is not {DESCRIBED}"),
    "period": (lambda v: v["recompute"] == EVERY_NTH, f"recompute is not {EVERY_NTH}"),
    "grid": (lambda v: v["pipeline"] == OWN_GRID, f"the schedule is not {OWN_GRID}"),
    "chunks": (lambda v: v["pipeline"] != OWN_GRID, "a grid has its own virtual stages"),
}


def _with_reason(setting: Setting) -> Setting:
    if setting.name not in _MATTERS:
        return setting
    matters, reason = _MATTERS[setting.name]
    return replace(setting, matters=matters, reason=reason)


SETTINGS: Mapping[str, Setting] = {
    setting.name: _with_reason(setting) for setting in (*_SCENARIO, *_CONSTANTS, *_PARTS, *VIEW)
}
_CONTROLS: Mapping[str, str] = {field: name for name, field in FIELDS.items()}
# Where the engine names something that no control is called.
_ALSO: Mapping[str, str] = {
    "topology": "machine", "origin": "origin", "shape": "shape", "described": "described",
    "constants": next(iter(CONSTANTS)),
}  # fmt: skip


def control_of(field: str) -> str:
    """The control of a field of `TrainScenario`; "" where the page has none."""
    return _CONTROLS.get(field) or _ALSO.get(field, "")


def label_of(field: str) -> str:
    """The label of a field's control, without its unit and what it explains; else the field."""
    name = control_of(field)
    return SETTINGS[name].plain_label.partition(":")[0] if name else field


def shown_value(value: object) -> object:
    """A switch as it stands on the page, anything else as it is."""
    return ("on" if value else "off") if isinstance(value, bool) else value


def in_labels(error: ConfigError) -> str:
    """The sentence with the labels of controls, and switches as they stand."""
    shown = ConfigError(error.field, shown_value(error.value), error.rule, error.near)
    return shown.named(label_of(error.field), label_of)
