"""python -m triosim overlay scenario.json rank0.json.gz rank1.json.gz"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from triosim.commands.output import Parser, print_text, read_number, write_json
from triosim.errors import ConfigError
from triosim.overlay import Overlay, overlay
from triosim.resolved import read_any_scenario
from triosim.resolved import run as run_scenario

EXAMPLES = """examples:
  python -m triosim -case 2 -GPUnumber 2 --save-scenario ddp.json
  python -m triosim overlay ddp.json rank0.pt.trace.json.gz rank1.pt.trace.json.gz
  python -m triosim overlay ddp.json rank*.json.gz --step 12 --json -

the first file is a saved scenario of either kind, or a result written with --json; the others are
profiler files of PyTorch, one a rank
"""


def run(arguments: Sequence[str]) -> None:
    parser = Parser("overlay", "A measured run beside its prediction, lane by lane.", EXAMPLES)
    parser.add_argument("scenario", metavar="SCENARIO.json", help="a scenario or a result")
    parser.add_argument("files", nargs="+", metavar="PROFILER.json", help="one for each rank")
    parser.add_argument("--step", metavar="N", help="of a file that holds several (last complete)")
    parser.add_argument("--json", metavar="FILE|-", help="write the comparison as JSON")
    options = parser.parse_args(arguments)
    step = None if options.step is None else read_number("step", options.step)
    if step is not None and not step.is_integer():
        raise ConfigError("step", options.step, "must be a whole number")
    found = overlay(
        run_scenario(read_any_scenario(options.scenario)),
        options.files,
        step=None if step is None else int(step),
    )
    if options.json is not None:
        write_json(options.json, json.dumps(_plain(found), indent=2, allow_nan=False) + "\n")
    if options.json != "-":
        print_text(_summary(found))


def _plain(found: Overlay) -> dict[str, Any]:
    """Plain values; milliseconds, and null for an error against nothing."""
    return {
        "step": found.measured.step,
        "clock": found.measured.clock,
        "measured_ms": found.measured_ms,
        "predicted_ms": found.predicted_ms,
        "error": _or_none(found.error),
        "lanes": [
            {**row, "error": _or_none(row["error"])}
            for row in found.frame.to_dict(orient="records")
        ],
    }


def _or_none(error: float) -> float | None:
    return None if math.isnan(error) else error


def _summary(found: Overlay) -> str:
    head = f"{'':8}{'':24}{'measured':>12}{'predicted':>14}{'error':>10}"
    rows = [("all", "step", found.measured_ms, found.predicted_ms, found.error)]
    lanes = found.frame[["rank", "lane", "measured_ms", "predicted_ms", "error"]]
    rows += [
        (f"GPU {rank}", str(lane), float(measured), float(predicted), float(error))
        for rank, lane, measured, predicted, error in lanes.to_numpy().tolist()
    ]
    lines = [
        f"{who:8}{lane:24}{measured:>9,.3f} ms{predicted:>11,.3f} ms"
        f"{'n/a' if math.isnan(error) else f'{error:+.1%}':>10}"
        for who, lane, measured, predicted, error in rows
    ]
    return "\n".join([f"step {found.measured.step}. {found.measured.clock}", "", head, *lines, ""])
