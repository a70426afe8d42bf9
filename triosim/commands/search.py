"""python -m triosim search --model llama3-70b --gpus 512 --stack torchtitan-compile"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from triosim.commands.output import (
    Parser,
    print_text,
    read_number,
    read_whole,
    read_workers,
    write_json,
)
from triosim.commands.train_flags import add_scenario_flags, scenario_of
from triosim.errors import ConfigError, Infeasible, counted
from triosim.export.files import write_atomically
from triosim.export.table import to_csv
from triosim.search import OUTCOMES, Limits, Ranked, SearchResult, search
from triosim.search.found import BEST, BOUNDED, ILLEGAL, SLOWER
from triosim.train.scenario import MAX_COUNT, MAX_GPUS

EXAMPLES = """examples:
  python -m triosim search --model llama3-70b --gpus 512 --stack torchtitan-compile
  python -m triosim search --gpus 64 --micro-batch-sizes 1,2 --recompute-modes none,full
  python -m triosim search --gpus 128 --tokens 1e12 --gpu-hour-price 2.5 --most-cost 300000
  python -m triosim search --gpus 16 --most-memory-gib 60 --json -

the axes of the mesh, micro-batch, recompute and schedule are what is searched, so that their own
flags do not count
"""
LISTED = 30
_LISTS = {
    "micro_batch_sizes": "micro-batch sizes to try (1,2,4,8)",
    "recompute_modes": "recompute modes to try (none,selective-op,full)",
    "schedules": "schedules to try in pipelines (1f1b,interleaved)",
    "zero_stages": "ZeRO stages to try where dp_shard is above 1 (1,2,3)",
}
_LIMITS = ("memory_gib", "cost", "energy_kwh", "days")


def run(arguments: Sequence[str]) -> None:
    options = _parser().parse_args(list(arguments))
    base = scenario_of(options)
    try:
        found = search(
            base,
            limits=_limits(options),
            top=read_whole("top", options.top, MAX_GPUS),
            workers=read_workers(options.workers),
            on_progress=None if options.quiet else _say,
            **_choices(options),
        )
    except ConfigError as error:
        # The flag of this field is the other command's.
        field = "recompute_modes" if error.field == "recompute" else error.field
        raise ConfigError(field, error.value, error.problem) from None
    if not options.quiet:
        print(file=sys.stderr)
    if options.json != "-":
        print_text(_summary(found))
    if options.csv is not None:
        write_atomically(options.csv, to_csv(found.frame))
    if options.json is not None:
        write_json(options.json, found.to_json())
    nearest = found.ranked[0]
    if nearest.outcome != BEST:
        raise Infeasible(f"No layout can be used; the nearest: {nearest.reason.removesuffix('.')}.")


def _parser() -> argparse.ArgumentParser:
    parser = Parser("search", "The fastest layout of a model, and why others are not.", EXAMPLES)
    add_scenario_flags(parser)
    for name, text in _LISTS.items():
        parser.add_argument(f"--{name.replace('_', '-')}", metavar="LIST", help=text)
    parser.add_argument("--most-cp", metavar="N", help="largest context-parallel degree")
    for name in _LIMITS:
        flag = f"--most-{name.replace('_', '-')}"
        parser.add_argument(
            flag, metavar="X", help="a limit; of a run over --tokens but for memory"
        )
    parser.add_argument("--tokens", metavar="N", help="tokens of the run that limits are about")
    parser.add_argument("--gpu-hour-price", metavar="X", help="price of an hour of one GPU")
    parser.add_argument("--top", default="10", metavar="N", help="places that must be exact (10)")
    parser.add_argument("--workers", metavar="N", help="processes (default: one per core)")
    parser.add_argument("--json", metavar="FILE|-", help="write all layouts as JSON")
    parser.add_argument("--csv", metavar="FILE.csv", help="write all layouts as a table")
    parser.add_argument("--quiet", action="store_true", help="no progress on standard error")
    return parser


def _choices(options: argparse.Namespace) -> dict[str, Any]:
    chosen: dict[str, Any] = {}
    if options.micro_batch_sizes is not None:
        sizes = options.micro_batch_sizes.split(",")
        chosen["micro_batch_sizes"] = [
            read_whole("micro_batch_sizes", size, MAX_COUNT) for size in sizes
        ]
    if options.recompute_modes is not None:
        chosen["recompute"] = [mode.strip() for mode in options.recompute_modes.split(",")]
    if options.schedules is not None:
        chosen["schedules"] = [name.strip() for name in options.schedules.split(",")]
    if options.zero_stages is not None:
        stages = options.zero_stages.split(",")
        chosen["zero"] = [read_whole("zero_stages", stage, 3) for stage in stages]
    if options.most_cp is not None:
        chosen["most_cp"] = read_whole("most_cp", options.most_cp, MAX_GPUS)
    return chosen


def _limits(options: argparse.Namespace) -> Limits:
    given = {name: getattr(options, f"most_{name}") for name in _LIMITS}
    given |= {name: getattr(options, name) for name in ("tokens", "gpu_hour_price")}
    return Limits(**{k: read_number(k, text) for k, text in given.items() if text is not None})


def _say(what: str, done: int, total: int) -> None:
    print(f"\r{f'{what}: {done:,} of {total:,}':60}", end="", file=sys.stderr, flush=True)


def _summary(found: SearchResult) -> str:
    counts = {name: count for name, count in found.counts().items() if count}
    legal = sum(count for name, count in counts.items() if name != ILLEGAL)
    head = "place  replicate  shard   cp   tp   pp  step (ms)  memory (GiB)  micro-batch  why"
    lines = [
        f"{counted(legal, 'legal layout')}, {counted(found.plans, 'plan')}, of which "
        f"{found.simulated:,} were simulated and the rest excluded by bounds",
    ]
    placed = [one for one in found.ranked if one.scenario is not None]
    lines += ["", head] if placed else []
    lines += [_line(place, one) for place, one in enumerate(placed[:LISTED], 1)]
    if len(placed) > LISTED:
        lines.append(f"... and {len(placed) - LISTED:,} more, all with --csv or --json")
    lines += ["", *(f"  {count:6,} {OUTCOMES[name]}" for name, count in counts.items())]
    return "\n".join([*lines, "", *found.assumptions, ""])


def _line(place: int, one: Ranked) -> str:
    sizes = one.sizes
    at_least = "" if one.at_least_ms is None else f">{one.at_least_ms:,.0f}"
    step = at_least if one.step_ms is None else f"{one.step_ms:,.0f}"
    memory = "" if one.at_least_gib is None else f"{one.at_least_gib:,.1f}"
    more = "" if one.figures is not None else ">"
    shown = f"{place:,}" if one.outcome in (BEST, SLOWER, BOUNDED) else ""
    assert one.scenario is not None
    chosen = [f"{one.scenario.micro_batch_size}"]
    if one.scenario.zero is not None:
        chosen.append(f"zero-{one.scenario.zero}")
    if one.scenario.recompute != "none":
        chosen.append(one.scenario.recompute)
    if one.scenario.pp > 1:
        chosen.append(one.scenario.schedule)
    return (
        f"{shown:>5}  {sizes['dp_replicate']:9,}  {sizes['dp_shard']:5,}  {sizes['cp']:3,}  "
        f"{sizes['tp']:3,}  {sizes['pp']:3,}  {step:>9}  {more + memory:>12}  "
        f"{' '.join(chosen)}: {one.reason}"
    )
