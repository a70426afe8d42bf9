"""python -m triosim train --model llama3-8b --gpus 128 --recompute selective-op --compile true"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from triosim.chakra import write_chakra
from triosim.commands.output import Parser, print_text, read_number, say, write_json
from triosim.commands.train_flags import add_scenario_flags, scenario_of
from triosim.errors import ConfigError, counted
from triosim.export.chrome import chrome_trace
from triosim.export.files import write_atomically
from triosim.export.hta import write_hta
from triosim.train import TrainResult, train

EXAMPLES = """examples:
  python -m triosim train --model llama3-8b --gpus 128 --recompute selective-op --compile true
  python -m triosim train --model llama3.1-405b --gpus 512 --tp 8 --pp 8 --global-batch 256 \\
      --sequence-parallel true --recompute full --schedule interleaved --chunks 2
  python -m triosim train --config config.json --gpus 64 --stack torchtitan-compile --json -
  python -m triosim train --layers 24 --hidden 2048 --heads 16 --ffn 8192 --vocab 50000
  python -m triosim train --tokens 15e12 --gpu-hour-price 2.5 --gpus 1024
"""


def run(arguments: Sequence[str]) -> None:
    options = _parser().parse_args(list(arguments))
    scenario = scenario_of(options)
    if options.save_scenario is not None:
        write_atomically(options.save_scenario, scenario.to_json())
    result = train(scenario)
    extras = _extras(result, options)
    if options.json is not None:
        write_json(options.json, result.to_json(**extras))
    if options.perfetto is not None:
        write_atomically(options.perfetto, chrome_trace(result))
    if options.hta is not None:
        write_hta(result, options.hta)
    if options.chakra is not None:
        write_chakra(result, options.chakra)
    for warning in result.warnings:
        say(f"warning: {warning}")
    if options.json != "-":
        print_text(_summary(result, extras))


def _parser() -> argparse.ArgumentParser:
    parser = Parser("train", "One training step of a language model on a device mesh.", EXAMPLES)
    add_scenario_flags(parser)
    parser.add_argument("--tokens", metavar="N", help="a run over so many tokens: days and energy")
    parser.add_argument("--gpu-hour-price", metavar="X", help="what it costs")
    parser.add_argument("--measured-ms", metavar="X", help="a step you measured, to compare with")
    parser.add_argument("--json", metavar="FILE|-", help="write the result as JSON")
    parser.add_argument("--perfetto", metavar="FILE", help="write the timeline (.gz: packed)")
    parser.add_argument("--hta", metavar="FOLDER", help="for Holistic Trace Analysis")
    parser.add_argument("--chakra", metavar="FOLDER", help="write Chakra execution traces")
    parser.add_argument("--save-scenario", metavar="FILE", help="save the scenario")
    return parser


def _extras(result: TrainResult, options: argparse.Namespace) -> dict[str, Any]:
    """What was asked for beside the step: a whole run, a measurement."""
    extras: dict[str, Any] = {}
    if options.tokens is not None:
        price = options.gpu_hour_price
        cost = result.run_cost(
            read_number("tokens", options.tokens),
            None if price is None else read_number("gpu_hour_price", price),
        )
        extras["run"] = cost
    elif options.gpu_hour_price is not None:
        raise ConfigError("gpu_hour_price", options.gpu_hour_price, "needs --tokens beside it")
    if options.measured_ms is not None:
        measured = read_number("measured_ms", options.measured_ms)
        extras["measured_ms"] = measured
        extras["difference"] = result.difference_to(measured)
    return extras


def _summary(result: TrainResult, extras: Mapping[str, Any]) -> str:
    plan, band = result.plan, result.band
    axes = [f"{name} {size}" for name, size in plan.sizes.items() if size > 1]
    batch, throughput = _batch_and_throughput(result)
    lines = [
        f"{plan.model.name} on {plan.scenario.gpus:,} x {plan.gpu.name}, {plan.machine}: "
        f"{', '.join(axes) or 'one GPU'}; {batch}, micro-batches: {plan.microbatches:,}",
        "",
        f"  step time       {result.step_ms:12,.3f} ms  ({band.low_ms:,.0f} to {band.high_ms:,.0f} "
        f"within what is known of {plan.stack.name})",
        f"  throughput      {throughput}",
        *_flops_lines(result),
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


def _flops_lines(result: TrainResult) -> list[str]:
    if not result.model_flops:
        return ["  model FLOP/s    not known: the trace counts no operations"]
    return [
        f"  model FLOP/s    {result.model_tflops_per_gpu:12,.1f} TFLOP/s per GPU, MFU "
        f"{result.mfu:.1%} of {result.peak_flops / 1e12:,.0f} ({result.peak_dtype})",
        f"  hardware FLOP/s {result.hardware_tflops_per_gpu:12,.1f} TFLOP/s per GPU, HFU "
        f"{result.hfu:.1%}",
    ]


def _batch_and_throughput(result: TrainResult) -> tuple[str, str]:
    """In tokens where samples have some."""
    plan, rate = result.plan, result.samples_per_s
    if not plan.in_tokens:
        return counted(plan.global_batch, "sample"), f"{rate:12,.2f} samples/s"
    return (
        f"{counted(plan.global_batch, 'sequence')} of {counted(plan.seq, 'token')}",
        f"{result.tokens_per_s_per_gpu:12,.1f} tokens/s per GPU, {rate:,.2f} samples/s",
    )


def _memory_lines(result: TrainResult) -> list[str]:
    held = sorted(result.memory_breakdown_gib.items(), key=lambda item: -item[1])
    return [f"    {name:24}{size:12,.2f} GiB" for name, size in held if size >= 0.005]


def _change_lines(result: TrainResult) -> list[str]:
    if result.fits:
        return []
    lines = ["", "  would fit, the least slow-down first"]
    unit = "token" if result.plan.in_tokens else "sample"
    lines += [
        f"    {change.text}: {change.peak_memory_gib:,.1f} GiB, {change.slowdown:+.1%} a {unit}"
        for change in result.changes_to_fit
    ]
    return lines if len(lines) > 2 else ["", "  none of the changes tried makes it fit"]


def _extra_lines(result: TrainResult, extras: Mapping[str, Any]) -> list[str]:
    lines = []
    run = extras.get("run")
    if run is not None:
        price = "" if run.cost is None else f", cost {run.cost:,.0f}"
        unit = "tokens" if result.plan.in_tokens else "samples"
        lines += [
            "",
            f"  {run.tokens:,.0f} {unit}: {run.days:,.2f} days, {run.gpu_hours:,.0f} GPU hours"
            f"{price}, {run.energy_kwh:,.0f} kWh of the GPUs ({run.power_source})",
        ]
    if "measured_ms" in extras:
        lines += [
            "",
            f"  measured {extras['measured_ms']:,.3f} ms: the prediction is "
            f"{extras['difference']:+.1%}",
        ]
    return lines
