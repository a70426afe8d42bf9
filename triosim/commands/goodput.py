"""python -m triosim goodput --work-s 4.7e6 --gpus 16384 --gpu-mtbf-hours 5e4 ..."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from triosim.amounts import long_time_words
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
        _fails(given["gpus"], found.mtbf_s),
        "",
        f"  goodput        {found.goodput:10.2%}  useful work",
        f"  checkpoints    {found.checkpoint_share:10.2%}  {_written(found.interval_s)}",
        f"  done again     {found.rework_share:10.2%}  what failures undid",
        f"  restarts       {found.restart_share:10.2%}",
        "",
        f"  the run takes {long_time_words(found.wall_s)} instead of "
        f"{long_time_words(given['work_s'])}, with {_failures(found.failures)}",
        f"  best interval: {_best(found)}",
    ]
    return "\n".join([*lines, ""])


def _fails(gpus: int, mtbf_s: float) -> str:
    every = f"every {long_time_words(mtbf_s)} on average"
    if gpus == 1:
        return "1 GPU, which " + (f"fails {every}" if mtbf_s < math.inf else "never fails")
    return f"{gpus:,} GPUs, " + (
        f"one of which fails {every}" if mtbf_s < math.inf else "none of which ever fails"
    )


def _written(interval_s: float) -> str:
    if interval_s == math.inf:
        return "none is written"
    return f"every {long_time_words(interval_s)} of work" if interval_s else "all the time"


def _failures(count: float) -> str:
    if 0.95 <= count < 1e6:
        return f"{count:,.1f} failures"
    return f"{count:.3g} failures" if count else "no failure"


def _best(found: Goodput) -> str:
    if found.daly_s == math.inf:
        return "none, as nothing fails"
    if not found.daly_s:
        return "the shorter the better, as checkpoints take no time"
    return f"{long_time_words(found.daly_s)} (Daly), {long_time_words(found.young_s)} (Young)"
