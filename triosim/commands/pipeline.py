"""python -m triosim pipeline --schedule interleaved --stages 8 --microbatches 16 --chunks 2"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from triosim.commands.output import Parser, print_text, say, write_json
from triosim.errors import ConfigError
from triosim.pipelines import PipelineResult, pipeline

EXAMPLES = """examples:
  python -m triosim pipeline --schedule 1f1b --stages 4 --microbatches 8
  python -m triosim pipeline --schedule interleaved --chunks 2 --stages 8 --microbatches 16
  python -m triosim pipeline --schedule zb-h1 --forward 1,1,1,2 --transfer 0.1 --json -
  python -m triosim pipeline --grid mine.txt
"""
GRID = """a grid has a line for each stage, such as F0 F1 B0 W0 B1 W1: forward, backward and weight
part of a micro-batch (without W, B is the whole backward); F0.1 is chunk 1, a dot is idle
"""
# What a grid says itself.
SHAPE = {
    "schedule": "schedule",
    "stages": "stages",
    "microbatches": "micro-batches",
    "chunks": "chunks",
}


def run(arguments: Sequence[str]) -> None:
    options = _parser().parse_args(arguments)
    times: dict[str, Any] = {
        name: _values(getattr(options, name))
        for name in ("forward", "backward", "weight", "transfer")
        if getattr(options, name) is not None
    }
    given = {name: value for name in SHAPE if (value := getattr(options, name)) is not None}
    grid = None if options.grid is None else _read(options.grid)
    if grid is not None:
        for name, value in given.items():
            say(f"warning: --{name} {value} is unused: the grid says the {SHAPE[name]} itself.")
    result = pipeline(grid=grid, **(given if grid is None else {}), **times)
    if options.json is not None:
        write_json(options.json, result.to_json())
    if options.json != "-":
        print_text(_summary(result))


def _parser() -> argparse.ArgumentParser:
    parser = Parser("pipeline", "What a pipeline schedule takes and holds.", f"{EXAMPLES}\n{GRID}")
    parser.add_argument("--schedule", help="see `list schedules` (default: 1f1b)")
    parser.add_argument("--stages", help="stages, one device each (4)")
    parser.add_argument("--microbatches", help="micro-batches of a step (8)")
    parser.add_argument("--chunks", help="virtual stages on each stage (1)")
    each = "one value, or one for each stage with commas"
    parser.add_argument("--forward", metavar="TIME", default="1", help=f"{each} (1)")
    parser.add_argument("--backward", metavar="TIME", default="2", help="includes --weight (2)")
    parser.add_argument("--weight", metavar="TIME", help="weight part (1, at most --backward)")
    parser.add_argument("--transfer", metavar="TIME", default="0", help="delay of a hop (0)")
    parser.add_argument("--grid", metavar="FILE", help="a schedule of your own; see below")
    parser.add_argument("--json", metavar="FILE|-", help="write the result as JSON")
    return parser


def _read(grid: str) -> str:
    try:
        return Path(grid).read_text(encoding="utf-8")
    except ValueError:
        raise ConfigError("grid", grid, "must be a readable text file") from None


def _values(text: str) -> str | list[str]:
    return text.split(",") if "," in text else text


def _summary(result: PipelineResult) -> str:
    schedule = result.schedule
    held = ", ".join(f"{value:g}" for value in result.peak_in_flight)
    lines = [
        f"{schedule.name}: stages {schedule.stages:,}, micro-batches {schedule.microbatches:,}, "
        f"chunks on each stage {schedule.chunks:,}",
        "",
        f"  makespan        {result.makespan:12.6g}  first start to last end",
        f"  period          {result.period:12.6g}  largest span of a stage",
        f"  bubble          {result.bubble_of_ideal:12.2%}  of the ideal time {result.ideal:g}",
        f"                  {result.bubble_of_total:12.2%}  of the period",
        f"  in flight       {held} (micro-batches whose activations each stage holds at most)",
    ]
    if result.parameter_copies > 1:
        lines.append(f"  parameters      held {result.parameter_copies} times over the pipeline")
    for note in result.notes:
        lines += ["", f"  {note}"]
    return "\n".join([*lines, ""])
