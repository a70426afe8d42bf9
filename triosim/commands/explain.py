"""python -m triosim explain scenario.json --rank 3"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from triosim.analysis.breakdown import CLASSES
from triosim.commands.output import Parser, print_text, write_json
from triosim.errors import ConfigError
from triosim.explain import Explanation, Wait, WhatIf, explain
from triosim.resolved import read_any_scenario
from triosim.resolved import run as run_scenario

EXAMPLES = """examples:
  python -m triosim -case 2 -GPUnumber 8 --save-scenario ddp.json
  python -m triosim explain ddp.json
  python -m triosim explain ddp.json --rank 3 --longest 20 --json -

the file is a saved scenario of either kind, or a result written with --json
"""
MOST_LISTED = 10_000


def run(arguments: Sequence[str]) -> None:
    parser = Parser("explain", "Why a GPU stands still, and what would help.", EXAMPLES)
    parser.add_argument("scenario", metavar="FILE.json", help="a scenario or a result")
    parser.add_argument("--rank", default="0", help="the GPU whose gaps are listed (0)")
    parser.add_argument("--longest", metavar="N", default="10", help="how many gaps (10)")
    parser.add_argument("--no-what-if", action="store_true", help="leave out the runs with changes")
    parser.add_argument("--json", metavar="FILE|-", help="write the explanation as JSON")
    options = parser.parse_args(arguments)
    rank = _whole("rank", options.rank)
    most = _whole("longest", options.longest)
    if not 0 <= most <= MOST_LISTED:
        raise ConfigError("longest", most, f"must be a whole number from 0 to {MOST_LISTED:,}")
    found = explain(run_scenario(read_any_scenario(options.scenario)))
    gaps = found.longest(rank, most)
    changes = () if options.no_what_if else found.what_if()
    if options.json is not None:
        text = json.dumps(_plain(found, rank, gaps, changes), indent=2, allow_nan=False)
        write_json(options.json, text + "\n")
    if options.json != "-":
        print_text(_summary(found, rank, gaps, changes))


def _whole(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ConfigError(name, text, "must be a whole number") from None


def _plain(
    found: Explanation, rank: int, gaps: Sequence[Wait], changes: Sequence[WhatIf]
) -> dict[str, Any]:
    """Plain values; milliseconds."""
    return {
        "step_ms": found.result.total_ms,
        "rank": rank,
        "waits_ms": _waits_ms(found, rank),
        "longest_gaps": [
            {
                "kind": wait.kind,
                "transfer": " ".join(wait.key).strip(),
                "start_ms": wait.start_s * 1e3,
                "end_ms": wait.end_s * 1e3,
                "ms": wait.seconds * 1e3,
                "reason": found.reason(wait),
                "why": list(found.why(wait)),
            }
            for wait in gaps
        ],
        "critical_path": [
            {
                "rank": step.rank,
                "stream": step.stream,
                "name": step.name,
                "kind": step.kind,
                "start_ms": step.start_s * 1e3,
                "end_ms": step.end_s * 1e3,
            }
            for step in found.critical_path
        ],
        "critical_totals_ms": found.critical_totals,
        "what_if": [
            {
                "kind": row.kind,
                "free_ms": row.free_ms,
                "twice_as_fast_ms": row.twice_as_fast_ms,
                "base_ms": row.base_ms,
            }
            for row in changes
        ],
        "scenario": found.result.scenario.to_dict(),
    }


def _waits_ms(found: Explanation, rank: int) -> dict[str, float]:
    sums = {kind: 0.0 for kind in CLASSES if kind != "compute"}
    for wait in found.gaps(rank):
        sums[wait.kind] += wait.seconds * 1e3
    return sums


def _summary(found: Explanation, rank: int, gaps: Sequence[Wait], changes: Sequence[WhatIf]) -> str:
    step_ms = found.result.total_ms
    waits = {kind: ms for kind, ms in _waits_ms(found, rank).items() if ms}
    lines = [f"step time {step_ms:,.4f} ms; GPU {rank} does not compute for", ""]
    lines += _shares(waits, step_ms) or ["  no time at all"]
    if gaps:
        lines += ["", f"longest gaps of GPU {rank}", ""]
        for wait in gaps:
            first, *more = found.why(wait)
            lines += [f"  at {wait.start_s * 1e3:,.4f} ms: {first}", *(f"    {x}" for x in more)]
    lines += ["", f"critical path: {len(found.critical_path):,} tasks, made of", ""]
    lines += _shares(found.critical_totals, step_ms)
    if changes:
        lines += ["", f"{'what if it were':36}{'free':>26}{'twice as fast':>26}", ""]
        for row in changes:
            free, faster = _change(row.free_ms, row), _change(row.twice_as_fast_ms, row)
            lines.append(f"  {row.kind:34}{free:>26}{faster:>26}")
    return "\n".join([*lines, ""])


def _shares(parts_ms: dict[str, float], step_ms: float) -> list[str]:
    return [
        f"  {kind.replace('_', ' '):34}{ms:12,.4f} ms  {ms / step_ms if step_ms else 0:6.1%}"
        for kind, ms in parts_ms.items()
    ]


def _change(ms: float, row: WhatIf) -> str:
    """By how much the step changes."""
    share = ms / row.base_ms - 1 if row.base_ms else 0.0
    return f"{ms - row.base_ms:+,.4f} ms ({share:+.1%})"
