"""Record one training step of a model on this machine: python tracer/datacollect.py 16

    python tracer/datacollect.py 128 --model torchvision:vgg13 torchvision:resnet50
    python tracer/datacollect.py 8 --model transformers:gpt2 --dtype bf16 --seq-len 1024
    python tracer/datacollect.py 32 --model my.package:factory --device cpu --iters 10

Then `python tracer/dataprocess.py` makes traces of what lies in the folder. Exit status 0; 2 where
an argument is wrong or a package is missing.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

TRACER = Path(__file__).resolve().parent
if __package__ in (None, ""):  # run as a script: the packages lie beside this file's folder
    sys.path[0] = str(TRACER.parent)

from tracer.commands import fail  # noqa: E402 - after the path
from triosim.errors import ConfigError  # noqa: E402 - after the path

DEFAULT_MODEL = "torchvision:resnet50"


def main(argv: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(argv)
    try:
        from tracer.collect import collect

        for model in options.model:
            recording = collect(
                model,
                batch_size=options.batch,
                iters=options.iters,
                device=options.device,
                dtype=options.dtype,
                optimizer=options.optimizer,
                data=options.data,
                seq_len=options.seq_len,
                output=options.output,
            )
            milliseconds = recording.meta["step_time_s"] * 1e3
            print(f"{recording.profiler}: {milliseconds:.3f} ms a step without the profiler")
    except (ConfigError, ImportError, OSError) as error:
        return fail("datacollect", error)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="datacollect.py", description="Record one training step of a model on this machine."
    )
    add = parser.add_argument
    add("batch", type=int, help="samples in a batch")
    add(
        "--model",
        nargs="+",
        default=[DEFAULT_MODEL],
        help="torchvision:NAME, transformers:NAME or package.module:factory; several are recorded "
        f"one after the other (default: {DEFAULT_MODEL})",
    )
    add("--iters", type=int, default=43, help="training steps, of which the last is recorded (43)")
    add("--device", choices=("cuda", "cpu"), help="cuda is also ROCm (default: what is there)")
    add("--dtype", default="fp32", choices=("fp32", "tf32", "bf16", "fp16"), help="(fp32)")
    add("--optimizer", default="adam", choices=("sgd", "adam", "adamw"), help="(adam)")
    add("--data", metavar="DIR", help="a folder of class folders of images (default: random)")
    add("--seq-len", type=int, help="tokens in a sample (default: 512, or the model's limit)")
    add(
        "--output", metavar="DIR", type=Path, default=TRACER / "data",
        help="where the files go (default: tracer/data, where dataprocess.py looks)",
    )  # fmt: skip
    return parser


if __name__ == "__main__":
    sys.exit(main())
