"""python -m triosim goodput --work-s 4.7e6 --gpus 16384 --gpu-mtbf-hours 5e4 ..."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from triosim.analysis.goodput import Goodput, goodput
from triosim.commands.output import Parser, print_text, read_number, write_json
from triosim.legal import SCHEMA_VERSION

EXAMPLES = """examples:
  python -m triosim goodput --work-s 4.7e6 --gpus 16384 --gpu-mtbf-hours 50000 --checkpoint-s 60 \\
      --restart-s 600
  python -m triosim goodput --work-s 2.6e6 --gpus 1024 --gpu-mtbf-hours 50000 --checkpoint-s 30 \\
      --restart-s 300 --interval-s 3600 --json -
"""
# The arguments of `triosim.goodput`.
FLAGS = {
    "work_s": "training time without failures and checkpoints, seconds",
    "gpus": "GPUs that train together; one that fails stops all",
    "gpu_mtbf_hours": "mean time between failures of one GPU and its share of the machine, hours",
    "checkpoint_s": "how long training waits for a checkpoint, seconds",
    "restart_s": "from a failure until training goes on, seconds",
    "interval_s": "work between checkpoints, seconds (default: Daly's optimum)",
}


def run(arguments: Sequence[str]) -> None:
    options = _parser().parse_args(arguments)
    given: dict[str, Any] = {
        name: read_number(name, text)
        for name in FLAGS
        if (text := getattr(options, name)) is not None
    }
    if float(given["gpus"]).is_integer():
        given["gpus"] = int(given["gpus"])
    found = goodput(**given)
    if options.json is not None:
        write_json(options.json, _json(given, found))
    if options.json != "-":
        print_text(_summary(given, found))


def _parser() -> argparse.ArgumentParser:
    parser = Parser("goodput", "How much of a long run is useful work when GPUs fail.", EXAMPLES)
    for name, about in FLAGS.items():
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            metavar="N" if name == "gpus" else "TIME",
            required=name != "interval_s",
            help=about,
        )
    parser.add_argument("--json", metavar="FILE|-", help="write the result as JSON")
    return parser


def _json(given: dict[str, Any], found: Goodput) -> str:
    """What never happens has an infinite time, which JSON does not know: null."""
    values = {
        name: value if not isinstance(value, float) or math.isfinite(value) else None
        for name, value in (*asdict(found).items(), *given.items())
    }
    return json.dumps({"schema_version": SCHEMA_VERSION, **values}, indent=2) + "\n"


def _summary(given: dict[str, Any], found: Goodput) -> str:
    lines = [
        f"{given['gpus']:,} GPUs, one of which fails every {_time(found.mtbf_s)} on average",
        "",
        f"  goodput        {found.goodput:10.2%}  useful work",
        f"  checkpoints    {found.checkpoint_share:10.2%}  every {_time(found.interval_s)} of work",
        f"  done again     {found.rework_share:10.2%}  what failures undid",
        f"  restarts       {found.restart_share:10.2%}",
        "",
        f"  the run takes {_time(found.wall_s)} instead of {_time(given['work_s'])}, with "
        f"{found.failures:,.1f} failures",
        f"  best interval: {_time(found.daly_s)} (Daly), {_time(found.young_s)} (Young)",
    ]
    return "\n".join([*lines, ""])


def _time(seconds: float) -> str:
    """In the largest unit that leaves a number above 1."""
    for unit, size in (("days", 86_400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if size <= seconds < math.inf:
            return f"{seconds / size:,.2f} {unit}"
    return f"{seconds:,.2f} s" if seconds < math.inf else "never"
