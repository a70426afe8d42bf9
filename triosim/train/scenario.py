"""What to train on what: everything that determines a training step, validated and frozen."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from triosim.errors import ConfigError
from triosim.hardware import load_gpu
from triosim.hardware.stacks import RANGED, SHARES, Stack, load_stack
from triosim.legal import (
    SCHEMA_VERSION,
    as_whole,
    number,
    number_of,
    rank_speeds,
    read_json,
    saved_fields,
)
from triosim.network.topology.description import Description
from triosim.schedules import SCHEDULES
from triosim.workload import Transformer, from_config, load_model

MAX_GPUS = 2**20
MAX_COUNT = 2**30
CONTEXTS: Mapping[str, str] = {
    "ring": "keys and values go round; each rank holds a contiguous part of the sequence",
    "ring-zigzag": "the same, each rank holding an early and a late part, so that work is even",
    "ring-pass-q": "queries go round contiguous parts, and their partial results come back",
    "ring-zigzag-pass-q": "the same with an early and a late part on each rank",
    "ulysses": "all-to-all from tokens to heads before attention and back after it",
    "ulysses-ring": "all-to-all over as many ranks as KV heads allow, a ring over the rest",
    "allgather": "every rank gathers all keys and values first, as Llama 3 was trained",
}
PRECISIONS = ("fp32", "tf32", "bf16", "fp16", "fp8-tensorwise", "fp8-rowwise")
RECOMPUTE: Mapping[str, str] = {
    "none": "everything that backward needs is kept",
    "full": "each layer keeps its input and runs forward again",
    "selective-op": "attention and every second product are kept, as torchtitan's default",
    "selective-layer:N": "every N-th layer as with full, the others keep everything",
    "attention": "only the core of attention runs again (Megatron's selective)",
}
_CHOICES: Mapping[str, tuple[Any, ...]] = {
    "context": tuple(CONTEXTS),
    "precision": PRECISIONS,
    "optimizer": ("sgd", "adam", "adamw"),
    "optimizer_state": ("fp32", "bf16"),
    "fused_optimizer": (None, False, True),
    "optimizer_sync": ("global", "stage"),
    "fsdp": (1, 2),
    "zero": (None, 0, 1, 2, 3),
    "schedule": tuple(SCHEDULES),
    "compile": (None, False, True),
}
_SWITCHES = (
    "reshard", "sequence_parallel", "async_tp", "loss_parallel", "cuda_graphs", "offload",
    "prefill",
)  # fmt: skip
_AXES = ("dp_replicate", "dp_shard", "cp", "tp", "pp")
_COUNTS = ("gpus", "ep", "micro_batch_size", "chunks")
_MODEL_COUNTS = (
    "layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab", "experts", "top_k",
    "shared_experts", "expert_ffn",
)  # fmt: skip
_MODEL_SWITCHES = ("gated", "tied")
_NEEDED = ("layers", "hidden", "heads", "ffn", "vocab")
DEFAULT_MODEL = "llama3-8b"
DEFAULT_SEQUENCE = 8192


@dataclass(frozen=True, kw_only=True)
class TrainScenario:
    """One step of training a language model on a device mesh.

    The model is one of the catalogue (`model`), a Hugging Face `config.json` (`config`), typed in
    (`layers` to `tied` give a model of their own, or change the named one), or a recorded step
    (`trace_dir`), whose layers are found by module path. `seq_len` is by default the model's, at
    most 8,192.

    Mesh axes multiply to `gpus`; one of them may be -1, what is left. Neighbouring ranks are those
    of tp, then cp, dp_shard, dp_replicate and pp; ep takes ranks of dp_shard x cp. `zero` says what
    is divided over dp_shard (x cp): 1 optimizer state, 2 and gradients, 3 and parameters; by
    default 3 where that is above 1. `fsdp` 1 has one flat parameter for each block, 2 shards each
    parameter. `reshard`: parameters are given back after forward and gathered again; in pipelines
    they are gathered once a step. `prefetch` units are gathered ahead of the one in use (by default
    1, and 2 under fsdp 1, as its rate limiter allows). `global_batch` (sequences) is by default
    micro_batch_size x data-parallel ranks x pp. `grid` is a schedule of one's own
    (`triosim.schedules.read_grid`). `expert_skew` is what the busiest expert-parallel rank has to
    do over the mean. After the modules `graph_breaks` of each layer, as in "self_attn,mlp", the
    graph of torch.compile breaks. `compile` and `fused_optimizer` None are the stack's own.
    `prefill` runs forward only, up to the first token. `machine` is a name of `list machines`, a
    topology's name, file or description (also as a dict); None follows from the GPU. `rank_speed`
    maps ranks to speeds (0.5: half), `constants` names of the stack's constants to other values;
    both are kept as sorted pairs. `extra_ms_per_step` is time in which the CPU launches nothing.

    Raises `ConfigError` naming the field, its value and what would be legal.
    """

    model: str | None = None
    config: str | None = None
    trace_dir: str | None = None
    layers: int | None = None
    hidden: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    ffn: int | None = None
    gated: bool | None = None
    vocab: int | None = None
    tied: bool | None = None
    experts: int | None = None
    top_k: int | None = None
    shared_experts: int | None = None
    expert_ffn: int | None = None
    gpu: str = "h100-sxm"
    gpus: int = 8
    machine: str | Description | None = None
    stack: str = "generic"
    dp_replicate: int = 1
    dp_shard: int = -1
    cp: int = 1
    tp: int = 1
    pp: int = 1
    ep: int = 1
    zero: int | None = None
    fsdp: int = 2
    reshard: bool = True
    prefetch: int | None = None
    bucket_mb: float = 25
    micro_batch_size: int = 1
    global_batch: int | None = None
    seq_len: int | None = None
    schedule: str = "1f1b"
    chunks: int = 1
    grid: str | None = None
    context: str = "ring-zigzag"
    expert_skew: float = 1
    sequence_parallel: bool = False
    async_tp: bool = False
    loss_parallel: bool = False
    precision: str = "bf16"
    recompute: str = "none"
    optimizer: str = "adamw"
    optimizer_state: str = "fp32"
    fused_optimizer: bool | None = None
    optimizer_sync: str = "global"
    compile: bool | None = None
    cuda_graphs: bool = False
    graph_breaks: str | None = None
    offload: bool = False
    prefill: bool = False
    extra_ms_per_step: float = 0
    rank_speed: Mapping[int, float] | tuple[tuple[int, float], ...] | None = None
    constants: Mapping[str, float] | tuple[tuple[str, float], ...] | None = None

    def __post_init__(self) -> None:
        for name in _COUNTS:
            most = MAX_GPUS if name in ("gpus", "ep") else MAX_COUNT
            self._set(name, whole(name, getattr(self, name), 1, most))
        for name in _AXES:
            value = getattr(self, name)
            self._set(name, -1 if value == -1 else whole(name, value, 1, MAX_GPUS))
        for name in ("global_batch", "seq_len", *_MODEL_COUNTS):
            if getattr(self, name) is not None:
                least = 0 if name in ("experts", "top_k", "shared_experts") else 1
                self._set(name, whole(name, getattr(self, name), least, MAX_COUNT))
        if self.prefetch is not None:
            self._set("prefetch", whole("prefetch", self.prefetch, 0, MAX_COUNT))
        for name, legal in _CHOICES.items():
            self._set(name, _choice(name, getattr(self, name), legal))
        for name in (*_SWITCHES, *_MODEL_SWITCHES):
            value = getattr(self, name)
            if not isinstance(value, bool) and not (value is None and name in _MODEL_SWITCHES):
                raise ConfigError(name, value, "must be true or false")
        self._set("recompute", _recompute(self.recompute))
        self._set("extra_ms_per_step", number("extra_ms_per_step", self.extra_ms_per_step, 0, 1e9))
        self._set("expert_skew", number("expert_skew", self.expert_skew, 1, 1e6))
        self._set("bucket_mb", number("bucket_mb", self.bucket_mb, 1e-6, 1e6))
        self._set("rank_speed", rank_speeds(self.rank_speed, self.gpus))
        self._set("constants", _constants(self.constants))
        if self.grid is not None and not isinstance(self.grid, str):
            raise ConfigError("grid", self.grid, "must be text with a line for each stage")
        self._set("graph_breaks", _names(self.graph_breaks))
        machine: object = self.machine  # a table where a file or a caller gives one
        if isinstance(machine, Mapping):
            self._set("machine", _described(machine))
        for name in ("config", "trace_dir", "machine"):
            text = getattr(self, name)
            if name == "machine" and isinstance(text, Description):
                continue
            if text is not None and (not isinstance(text, str) or not text or "\0" in text):
                raise ConfigError(name, text, "must be a name or a path, as text")
        self._set("gpu", load_gpu(self.gpu).name)
        self._set("stack", load_stack(self.stack).name)
        self._check_model()

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _check_model(self) -> None:
        named = [
            name for name in ("model", "config", "trace_dir") if getattr(self, name) is not None
        ]
        if len(named) > 1:
            one, other = named[0], named[1]
            problem = f"give it or {one} ({getattr(self, one)}), not both"
            raise ConfigError(other, getattr(self, other), problem)
        typed = [
            name
            for name in ("seq_len", *_MODEL_COUNTS, *_MODEL_SWITCHES)
            if getattr(self, name) is not None
        ]
        if self.trace_dir is not None:
            if typed:
                value = getattr(self, typed[0])
                raise ConfigError(typed[0], value, "cannot be changed in a trace")
            return
        if not named and not set(_NEEDED) <= set(typed):
            self._set("model", DEFAULT_MODEL)
        if self.model is not None:
            self._set("model", load_model(self.model).name)
        self.transformer()

    def transformer(self) -> Transformer:
        """The model, with what the scenario changes of it."""
        given = {
            name: getattr(self, name)
            for name in (*_MODEL_COUNTS, *_MODEL_SWITCHES)
            if getattr(self, name) is not None
        }
        if self.config is not None:
            base = from_config(Path(self.config))
        elif self.model is not None:
            base = load_model(self.model)
        else:
            return Transformer(name="custom", seq_len=self.seq_len or DEFAULT_SEQUENCE, **given)
        if not given:
            return base
        if "heads" in given and "kv_heads" not in given and base.kv_heads is not None:
            given["kv_heads"] = min(given["heads"], base.kv_heads)
        return replace(base, **given)

    @property
    def sequence(self) -> int:
        """Tokens of a sample."""
        if self.seq_len is not None:
            return self.seq_len
        return min(self.transformer().seq_len, DEFAULT_SEQUENCE)

    @property
    def speeds(self) -> dict[int, float]:
        """Ranks that are not at full speed."""
        return dict(self.rank_speed or ())

    def made_stack(self) -> Stack:
        """The stack, with what the scenario changes of it."""
        return load_stack(self.stack).changed(dict(self.constants or ()))

    @property
    def compiled(self) -> bool:
        """As chosen, else as the stack has it."""
        return load_stack(self.stack).compile if self.compile is None else self.compile

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, with the version of their meaning."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        if self.rank_speed is not None:
            values["rank_speed"] = {str(rank): speed for rank, speed in self.speeds.items()}
        if self.constants is not None:
            values["constants"] = dict(self.constants)
        if isinstance(self.machine, Description):
            values["machine"] = self.machine.to_dict()
        return {"schema_version": SCHEMA_VERSION, **values}

    @classmethod
    def from_dict(cls, values: object) -> TrainScenario:
        """The inverse of `to_dict`; absent fields take their defaults."""
        return cls(**checked_fields(values))

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2) + "\n"


def checked_fields(values: object) -> dict[str, Any]:
    """The fields of a saved scenario by name, the version checked and taken off."""
    return saved_fields(values, [field.name for field in fields(TrainScenario)])


def read_train_scenario(path: str | Path) -> dict[str, Any]:
    """The fields that a saved scenario file sets."""
    return checked_fields(read_json("scenario", path))


def layer_period(recompute: str) -> int:
    """Every how many layers one is computed again; 0 where that is not by layers."""
    _, colon, count = recompute.partition(":")
    return int(count) if colon else 0


def whole(name: str, value: object, low: int, high: int) -> int:
    """A whole number in a range, also as 8.0 or a NumPy number."""
    found = as_whole(value)
    if found is None or not low <= found <= high:
        rest = ", or -1 for what is left" if name in _AXES else ""
        raise ConfigError(name, value, f"must be a whole number from {low} to {high:,}{rest}")
    return found


def _choice(name: str, value: object, legal: tuple[Any, ...]) -> object:
    for known in legal:
        if value == known and isinstance(value, bool) == isinstance(known, bool):
            return known
    names = ", ".join("none given" if known is None else str(known).lower() for known in legal)
    raise ConfigError(name, value, f"must be one of {names}")


def _described(table: Mapping[str, Any]) -> Description:
    try:
        return Description.from_dict(table)
    except ConfigError as error:
        raise ConfigError("machine", error.value, error.problem) from None


def _names(value: object) -> str | None:
    """Names with commas, each once and in one order; None for none."""
    if value is None:
        return None
    given = value.split(",") if isinstance(value, str) else value
    if not isinstance(given, (list, tuple)) or not all(isinstance(name, str) for name in given):
        raise ConfigError("graph_breaks", value, "must be modules with commas, as in self_attn,mlp")
    return ",".join(sorted({name.strip() for name in given if name.strip()})) or None


def _recompute(value: object) -> str:
    text = str(value).strip().casefold()
    name, colon, count = text.partition(":")
    if name == "selective-layer":
        period = int(count) if colon and count.isdecimal() else 2 if not colon else 0
        if 1 <= period <= MAX_COUNT:
            return f"selective-layer:{period}"
    elif text in RECOMPUTE:
        return text
    legal = "none, full, selective-op, selective-layer:N (N from 1) or attention"
    raise ConfigError("recompute", value, f"must be {legal}")


def _constants(given: Any) -> tuple[tuple[str, float], ...] | None:
    if given is None:
        return None
    try:
        pairs = dict(given)
    except (TypeError, ValueError):
        legal = 'must map names to values, as in {"gemm": 0.7}'
        raise ConfigError("constants", given, legal) from None
    for name, value in pairs.items():
        if name not in RANGED:
            raise ConfigError("constants", name, f"no such constant; known are {', '.join(RANGED)}")
        least, most = (1e-6, 1.0) if name in SHARES else (0.0, 1e9)
        pairs[name] = number_of("constants", name, value, least, most)
    return tuple(sorted(pairs.items())) or None
