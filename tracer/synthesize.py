"""A trace without a GPU: python tracer/synthesize.py transformers:gpt2 --gpu h100-sxm --batch 8

Runs the real module forward, backward and optimizer step on tensors without memory or values and
takes times from a roofline of the GPU. Exit status 0; 2 where an argument is wrong, a package is
missing or the model cannot run without values.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

TRACER = Path(__file__).resolve().parent
if __package__ in (None, ""):  # run as a script: the packages lie beside this file's folder
    sys.path[0] = str(TRACER.parent)

from tracer.commands import fail  # noqa: E402 - after the path
from triosim.errors import ConfigError  # noqa: E402 - after the path
from triosim.hardware import gpu_names  # noqa: E402 - after the path
from triosim.trace import Trace, write_trace  # noqa: E402 - after the path


def main(argv: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(argv)
    try:
        from tracer.derive import derive

        trace = derive(
            options.model,
            gpu=options.gpu,
            batch_size=options.batch,
            dtype=options.dtype,
            seq_len=options.seq_len,
            optimizer=options.optimizer,
            attention=options.attention,
        )
    except (ConfigError, ImportError) as error:
        return fail("synthesize", error)
    name = options.name or trace.name
    trace = replace(trace, name=name, meta={**trace.meta, "command": _command(options)})
    folder = Path(options.output or TRACER / "data" / "derived" / name)
    try:
        write_trace(trace, folder)
    except OSError as error:
        return fail("synthesize", error)
    print(_summary(trace, folder))
    return 0


def _summary(trace: Trace, folder: Path) -> str:
    flops = sum(op.flops or 0.0 for op in trace.operators)
    lines = [
        f"{folder}: {len(trace.operators)} operators, {trace.meta['parameters']:,} parameters",
        f"{trace.total_s * 1e3:.3f} ms and {flops / 1e12:.3f} TFLOP a step of {trace.batch_size} "
        f"on {trace.meta['gpu']}",
        *trace.meta["notes"],
    ]
    return "\n".join(lines)


def _command(options: argparse.Namespace) -> str:
    """How to make this trace again, without the folder it went to."""
    words = ["python", "tracer/synthesize.py", options.model]
    for flag in ("gpu", "batch", "dtype", "seq_len", "optimizer", "attention"):
        value = getattr(options, flag)
        if value is not None:
            words += [f"--{flag.replace('_', '-')}", str(value)]
    return shlex.join(words)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="synthesize.py", description="Derive the trace of a training step without a GPU."
    )
    add = parser.add_argument
    add("model", help="torchvision:NAME, transformers:NAME or package.module:factory")
    add("--gpu", required=True, help=", ".join(gpu_names()))
    add("--batch", type=int, required=True, help="samples in a batch")
    add("--dtype", default="fp32", choices=("fp32", "tf32", "bf16", "fp16"), help="(fp32)")
    add("--seq-len", type=int, help="tokens in a sample (default: 512, or the model's limit)")
    add("--optimizer", default="adam", choices=("sgd", "adam", "adamw"), help="(adam)")
    add(
        "--attention",
        default="flash",
        choices=("flash", "math"),
        help="flash: a fused kernel, which keeps no scores; math: product, softmax, product",
    )
    add("--name", help="the trace's name (default: the model's)")
    add("--output", metavar="DIR", help="the trace's folder (default: tracer/data/derived/NAME)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
