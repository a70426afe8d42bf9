"""python -m triosim train --model llama3-8b --gpus 128 --recompute selective-op --compile true"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from triosim.commands.output import Parser, print_text, say, write_json
from triosim.errors import ConfigError, counted
from triosim.export.chrome import chrome_trace
from triosim.export.files import write_atomically
from triosim.train import TrainResult, TrainScenario, train
from triosim.train.scenario import read_train_scenario

EXAMPLES = """examples:
  python -m triosim train --model llama3-8b --gpus 128 --recompute selective-op --compile true
  python -m triosim train --model llama3.1-405b --gpus 512 --tp 8 --pp 8 --global-batch 256 \\
      --sequence-parallel true --recompute full --schedule interleaved --chunks 2
  python -m triosim train --config config.json --gpus 64 --stack torchtitan-compile --json -
  python -m triosim train --layers 24 --hidden 2048 --heads 16 --ffn 8192 --vocab 50000
  python -m triosim train --tokens 15e12 --gpu-hour-price 2.5 --gpus 1024
"""
HELP: Mapping[str, str] = {
    "model": "a name of `list models`",
    "config": "a Hugging Face config.json",
    "trace_dir": "a recorded step: folder with trace.csv and tensor.csv",
    "gpu": "a name of `list gpus`",
    "gpus": "how many",
    "machine": "a name of `list machines` or `list topologies`, or a file (default: by the GPU)",
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
    "context": "ring, ring-zigzag, ulysses, ulysses-ring or allgather",
    "expert_skew": "tokens of the busiest expert-parallel rank over the mean",
    "precision": "fp32, tf32, bf16, fp16, fp8-tensorwise or fp8-rowwise",
    "recompute": "a name of `list recompute`",
    "optimizer": "sgd, adam or adamw",
    "optimizer_sync": "global: after all stages; stage: each on its own",
    "compile": "overrides the stack's mode",
    "rank_speed": "speeds of slow ranks, as in 3=0.5,7=0.8",
    "constants": "other values of the stack's constants, as in gemm=0.7,launch_us=5",
    "extra_ms_per_step": "time in which the CPU launches nothing",
}
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def run(arguments: Sequence[str]) -> None:
    options = _parser().parse_args(list(arguments))
    scenario = _scenario(options)
    if options.save_scenario is not None:
        write_atomically(options.save_scenario, scenario.to_json())
    result = train(scenario)
    extras = _extras(result, options)
    if options.json is not None:
        write_json(options.json, result.to_json(**extras))
    if options.perfetto is not None:
        write_atomically(options.perfetto, chrome_trace(result))
    for warning in result.warnings:
        say(f"warning: {warning}")
    if options.json != "-":
        print_text(_summary(result, extras))


def _parser() -> argparse.ArgumentParser:
    parser = Parser("train", "One training step of a language model on a device mesh.", EXAMPLES)
    defaults = TrainScenario()
    for field in fields(TrainScenario):
        default = getattr(defaults, field.name)
        shown = "" if default is None else f" (default: {_word(default)})"
        about = HELP.get(field.name, "").rstrip()
        # A switch alone means true, as other programs have it.
        alone: dict[str, Any] = {"nargs": "?", "const": "true"}
        parser.add_argument(
            f"--{field.name.replace('_', '-')}",
            dest=field.name,
            metavar="VALUE",
            help=f"{about}{shown}".strip() or "of a model typed in, or of one that is changed",
            **(alone if "bool" in str(field.type) else {}),
        )
    parser.add_argument("--tokens", metavar="N", help="a run over so many tokens: days and energy")
    parser.add_argument("--gpu-hour-price", metavar="X", help="what it costs")
    parser.add_argument("--measured-ms", metavar="X", help="a step you measured, to compare with")
    parser.add_argument("--json", metavar="FILE|-", help="write the result as JSON")
    parser.add_argument("--perfetto", metavar="FILE", help="write the timeline for Perfetto")
    parser.add_argument("--scenario", metavar="FILE", help="start from a saved scenario")
    parser.add_argument("--save-scenario", metavar="FILE", help="save the scenario")
    return parser


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _scenario(options: argparse.Namespace) -> TrainScenario:
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


def _extras(result: TrainResult, options: argparse.Namespace) -> dict[str, Any]:
    """What was asked for beside the step: a whole run, a measurement."""
    extras: dict[str, Any] = {}
    if options.tokens is not None:
        price = options.gpu_hour_price
        cost = result.run_cost(
            _number("tokens", options.tokens),
            None if price is None else _number("gpu_hour_price", price),
        )
        extras["run"] = cost
    elif options.gpu_hour_price is not None:
        raise ConfigError("gpu_hour_price", options.gpu_hour_price, "needs --tokens beside it")
    if options.measured_ms is not None:
        measured = _number("measured_ms", options.measured_ms)
        extras["measured_ms"] = measured
        extras["difference"] = result.difference_to(measured)
    return extras


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigError(name, text, "must be a number") from None


def _summary(result: TrainResult, extras: Mapping[str, Any]) -> str:
    plan, band = result.plan, result.band
    axes = [f"{name} {size}" for name, size in plan.sizes.items() if size > 1]
    lines = [
        f"{plan.model.name} on {plan.scenario.gpus:,} x {plan.gpu.name}, {plan.machine}: "
        f"{', '.join(axes) or 'one GPU'}; {counted(plan.global_batch, 'sequence')} of "
        f"{plan.seq:,} tokens, micro-batches: {plan.microbatches:,}",
        "",
        f"  step time       {result.step_ms:12,.3f} ms  ({band.low_ms:,.0f} to {band.high_ms:,.0f} "
        f"within what is known of {plan.stack.name})",
        f"  throughput      {result.tokens_per_s_per_gpu:12,.1f} tokens/s per GPU, "
        f"{result.samples_per_s:,.2f} samples/s",
        f"  model FLOP/s    {result.model_tflops_per_gpu:12,.1f} TFLOP/s per GPU, MFU "
        f"{result.mfu:.1%} of {result.peak_flops / 1e12:,.0f} ({result.peak_dtype})",
        f"  hardware FLOP/s {result.hardware_tflops_per_gpu:12,.1f} TFLOP/s per GPU, HFU "
        f"{result.hfu:.1%}",
        f"  memory          {result.peak_memory_gib:12,.2f} GiB of "
        f"{result.capacity_bytes / 2**30:,.0f} GiB: {'fits' if result.fits else 'does not fit'}",
    ]
    lines += _memory_lines(result)
    lines += ["", "  where the step goes, mean over GPUs"]
    lines += [
        f"    {name.replace('_', ' '):24}{value:12,.3f} ms  {value / result.step_ms:6.1%}"
        for name, value in result.breakdown.items()
    ]
    lines += _change_lines(result) + _extra_lines(result, extras)
    failed = [check for check in result.checks if not check.passed]
    lines.append("")
    lines.append(f"  {counted(len(result.checks), 'check')}, {len(failed)} failed")
    lines += [f"    {check.id}: {check.detail}" for check in failed]
    return "\n".join([*lines, ""])


def _memory_lines(result: TrainResult) -> list[str]:
    held = sorted(result.memory_breakdown_gib.items(), key=lambda item: -item[1])
    return [f"    {name:24}{size:12,.2f} GiB" for name, size in held if size >= 0.005]


def _change_lines(result: TrainResult) -> list[str]:
    if result.fits:
        return []
    lines = ["", "  would fit, the least slow-down first"]
    lines += [
        f"    {change.text}: {change.peak_memory_gib:,.1f} GiB, {change.slowdown:+.1%} a token"
        for change in result.changes_to_fit
    ]
    return lines if len(lines) > 2 else ["", "  none of the changes tried makes it fit"]


def _extra_lines(result: TrainResult, extras: Mapping[str, Any]) -> list[str]:
    lines = []
    run = extras.get("run")
    if run is not None:
        price = "" if run.cost is None else f", cost {run.cost:,.0f}"
        lines += [
            "",
            f"  {run.tokens:,.0f} tokens: {run.days:,.2f} days, {run.gpu_hours:,.0f} GPU hours"
            f"{price}, {run.energy_kwh:,.0f} kWh of the GPUs ({run.power_source})",
        ]
    if "measured_ms" in extras:
        lines += [
            "",
            f"  measured {extras['measured_ms']:,.3f} ms: the prediction is "
            f"{extras['difference']:+.1%}",
        ]
    return lines
