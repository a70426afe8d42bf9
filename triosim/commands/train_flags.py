"""The fields of `TrainScenario` as flags, for the commands that start from one."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from triosim.commands.output import read_topology
from triosim.errors import ConfigError
from triosim.train import TrainScenario
from triosim.train.scenario import read_train_scenario

HELP: Mapping[str, str] = {
    "model": "a name of `list models`",
    "config": "a Hugging Face config.json",
    "trace_dir": "a recorded step: folder with trace.csv and tensor.csv",
    "gpu": "a name of `list gpus`",
    "gpus": "how many",
    "machine": "a name of `list machines` or `list topologies`, a file, or a description in JSON "
    "(default: by the GPU)",
    "stack": "a name of `list stacks`",
    "dp_replicate": "replicas of the shards",
    "dp_shard": "ranks that parameters are sharded over; -1: what is left",
    "cp": "context parallel",
    "tp": "tensor parallel",
    "pp": "pipeline stages",
    "ep": "expert parallel, inside dp_shard x cp",
    "zero": "sharded: 1 optimizer state, 2 and gradients, 3 and parameters (3)",
    "fsdp": "1 flat parameters, 2 each parameter",
    "reshard": "give parameters back after forward",
    "prefetch": "units gathered ahead of the one in use",
    "bucket_mb": "DDP's buckets of gradients, in 2^20 bytes",
    "micro_batch_size": "sequences of a micro-batch",
    "global_batch": "sequences of a step (micro-batch x data-parallel ranks x pp)",
    "seq_len": "tokens of a sequence (the model's, at most 8192)",
    "schedule": "a name of `list schedules`",
    "chunks": "virtual stages on each stage",
    "grid": "a file with a schedule of your own, as in `pipeline --help`",
    "prefill": "forward only: time to first token",
    "context": "a name of `list contexts`",
    "expert_skew": "tokens of the busiest expert-parallel rank over the mean",
    "precision": "fp32, tf32, bf16, fp16, fp8-tensorwise or fp8-rowwise",
    "recompute": "a name of `list recompute`",
    "optimizer": "sgd, adam or adamw",
    "optimizer_state": "fp32 or bf16: momentum and variance",
    "fused_optimizer": "one kernel instead of one for each operation (default: as the stack)",
    "optimizer_sync": "global: after all stages; stage: each on its own",
    "compile": "overrides the stack's mode",
    "graph_breaks": "modules of a layer after which its graph breaks, as in self_attn,mlp",
    "rank_speed": "speeds of slow ranks, as in 3=0.5,7=0.8",
    "constants": "other values of the stack's constants, as in gemm=0.7,launch_us=5",
    "extra_ms_per_step": "time in which the CPU launches nothing",
}
ALIASES: Mapping[str, tuple[str, ...]] = {"machine": ("--topology",)}  # as `simulate` has it
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def add_scenario_flags(parser: argparse.ArgumentParser) -> None:
    """One flag for each field, and one for a saved scenario to start from."""
    defaults = TrainScenario()
    for field in fields(TrainScenario):
        default = getattr(defaults, field.name)
        shown = "" if default is None else f" (default: {_word(default)})"
        about = HELP.get(field.name, "").rstrip()
        # A switch alone means true, as other programs have it.
        alone: dict[str, Any] = {"nargs": "?", "const": "true"}
        parser.add_argument(
            f"--{field.name.replace('_', '-')}",
            *ALIASES.get(field.name, ()),
            dest=field.name,
            metavar="VALUE",
            help=f"{about}{shown}".strip() or "of a model typed in, or of one that is changed",
            **(alone if "bool" in str(field.type) else {}),
        )
    parser.add_argument("--scenario", metavar="FILE", help="start from a saved scenario")


def flag_of(name: str) -> str:
    """The flag of a field; any other word as it is."""
    known = {field.name for field in fields(TrainScenario)}
    return f"--{name.replace('_', '-')}" if name in known else name


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def scenario_of(options: argparse.Namespace) -> TrainScenario:
    """The scenario of the flags; raises `ConfigError`."""
    values = {} if options.scenario is None else read_train_scenario(options.scenario)
    for field in fields(TrainScenario):
        text = getattr(options, field.name)
        if text is not None:
            values[field.name] = _value(field.name, str(field.type), text)
    return TrainScenario(**values)


def _value(name: str, kind: str, text: str) -> Any:
    """As the field's type reads it; what it cannot read stays text, which the field refuses."""
    if name == "grid":
        return Path(text).read_text(encoding="utf-8", errors="replace")
    if name == "machine" and text.lstrip().startswith("{"):
        return read_topology(text, name)
    if name == "rank_speed":
        return _pairs(name, text, int, "3=0.5,7=0.8")
    if name == "constants":
        return _pairs(name, text, str, "gemm=0.7,launch_us=5")
    if "bool" in kind:
        word = text.casefold()
        return True if word in _TRUE else False if word in _FALSE else text
    if text.casefold() == "none" and "None" in kind:
        return None
    for read in (int, float):
        if read.__name__ in kind:
            try:
                return read(text)
            except ValueError:
                continue
    return text


def _pairs(name: str, text: str, key: Callable[[str], Any], example: str) -> dict[Any, float]:
    try:
        pairs = [item.split("=") for item in text.split(",")]
        return {key(left.strip()): float(right) for left, right in pairs}
    except ValueError:
        raise ConfigError(name, text, f"must be pairs, as in {example}") from None
