"""python -m triosim sweep spec.toml"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Executor
from contextlib import ExitStack

from triosim.commands.output import (
    FlagError,
    Parser,
    print_text,
    read_workers,
    write_json,
)
from triosim.errors import Infeasible, counted
from triosim.export.files import write_atomically
from triosim.export.table import to_csv
from triosim.sweep import Point, SweepResult, read_spec, sweep
from triosim.sweep.cluster import connect
from triosim.sweep.found import metric_named, without_effect

EXAMPLES = """examples:
  python -m triosim sweep spec.toml
  python -m triosim sweep spec.toml --metric tokens_per_s_per_gpu --csv points.csv
  python -m triosim sweep spec.toml --store results/ --workers 4
  python -m triosim sweep spec.toml --scheduler tcp://10.0.0.1:8786

spec.toml, where scenario may also be the path of a saved one:
  [scenario]
  model = "llama3-8b"
  gpus = 64
  [sweep]
  tp = [1, 2, 4, 8]
  micro_batch_size = { from = 1, to = 8, factor = 2 }
"""
LISTED = 20
EVERY_S = 0.5


def run(arguments: Sequence[str]) -> None:
    options = _parser().parse_args(arguments)
    if options.scheduler and options.workers:
        raise FlagError("--workers: the scheduler has its own; give one of them.")
    metric_named(options.metric)
    spec = read_spec(options.spec)
    progress = Progress(len(spec))
    with ExitStack() as stack:
        executor: Executor | None = None
        if options.scheduler is not None:
            executor = stack.enter_context(connect(options.scheduler))
        result = sweep(
            spec,
            executor=executor,
            workers=read_workers(options.workers),
            store=options.store,
            on_point=None if options.quiet else progress.advance,
        )
    progress.end()
    if options.json != "-":
        print_text(_summary(result, options.metric))
    if options.csv is not None:
        write_atomically(options.csv, to_csv(result.frame))
    if options.json is not None:
        write_json(options.json, result.to_json())
    if not _rated(result, options.metric):
        raise Infeasible(_why_none(result, options.metric))


def _parser() -> Parser:
    parser = Parser("sweep", "One scenario with some fields going through their values.", EXAMPLES)
    parser.add_argument("spec", metavar="SPEC.toml", help="the scenario and what varies")
    parser.add_argument("--metric", default="step_ms", help="what to rank by (default: step_ms)")
    parser.add_argument("--store", metavar="FOLDER", help="keep results there, and go on from them")
    parser.add_argument("--workers", metavar="N", help="processes (default: one per core)")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="of a Dask cluster to run on")
    parser.add_argument("--json", metavar="FILE|-", help="write all points as JSON")
    parser.add_argument("--csv", metavar="FILE.csv", help="write all points as a table")
    parser.add_argument("--quiet", action="store_true", help="no progress on standard error")
    return parser


class Progress:
    """How many points are known, how fast they come and how long the rest takes, on one line."""

    def __init__(self, total: int) -> None:
        self.total, self.done = total, 0
        self._began_s = self._shown_s = time.monotonic()
        self._shown = False

    def advance(self, point: Point) -> None:
        self.done += 1
        now = time.monotonic()
        if now - self._shown_s < EVERY_S and self.done < self.total:
            return
        self._shown_s, self._shown = now, True
        rate = self.done / max(now - self._began_s, 1e-9)
        left_s = (self.total - self.done) / rate
        text = f"{self.done:,} of {self.total:,} points, {rate:,.0f}/s, {left_s:,.0f} s left"
        print(f"\r{text:70}", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._shown:
            print(file=sys.stderr)


def _summary(result: SweepResult, metric: str) -> str:
    known = metric_named(metric)
    names = [axis.field for axis in result.spec.axes]
    rated = _rated(result, metric)
    unit = f" ({known.unit})" if known.unit else ""
    head = (*names, f"{known.text}{unit}", "memory (GiB)")
    rows = [
        (
            *(str(point.settings[name]) for name in names),
            f"{point.metrics[metric]:,.4g}",
            f"{point.metrics['peak_memory_gib']:,.1f}",
        )
        for point in rated[:LISTED]
    ]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = ["  ".join(map(str.rjust, row, widths)) for row in (head, *rows)] if rows else []
    if len(rated) > LISTED:
        lines.append(f"... and {counted(len(rated) - LISTED, 'more point')}")
    idle = without_effect(result.points)
    lines += [f"{name}: this changes nothing in these steps." for name in names if name in idle]
    left_out = _reasons(result.points)
    if left_out:
        total = sum(left_out.values())
        lines += [""] if lines else []
        lines.append(f"{counted(total, 'point')} of {len(result.points):,} left out:")
        lines += [f"  {count:,}: {reason}" for reason, count in left_out.most_common(LISTED)]
    return "\n".join([*lines, ""])


def _rated(result: SweepResult, metric: str) -> list[Point]:
    """Points that have a place in the list, the best first."""
    rated = [p for p in result.points if p.feasible and p.metrics[metric] is not None]
    sign = 1 if metric_named(metric).less_is_better else -1
    return sorted(rated, key=lambda point: sign * (point.metrics[metric] or 0.0))


def _reasons(points: Sequence[Point]) -> Counter[str]:
    """Why the others have no place in the list, and how often."""
    return Counter(
        "does not fit in memory" if point.problem is None else point.reason
        for point in points
        if point.reason is not None
    )


def _why_none(result: SweepResult, metric: str) -> str:
    """One sentence for a sweep whose list is empty."""
    left_out = _reasons(result.points)
    if sum(left_out.values()) < len(result.points):
        return f"{metric}: no point of this sweep has it; --metric step_ms is of all steps."
    reason, count = left_out.most_common(1)[0]
    none = f"No point of {len(result.points):,} has an answer and fits in memory"
    return f"{none}; {count:,} because: {reason.removesuffix('.')}."
