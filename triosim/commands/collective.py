"""python -m triosim collective --op all-reduce --algorithm ring --bytes 1e9 --ranks 8"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from triosim.collective import CollectiveResult, collective
from triosim.commands.output import Parser, print_text, read_topology, say, write_json
from triosim.errors import ConfigError
from triosim.network.closed_forms import bus_factor

EXAMPLES = """examples:
  python -m triosim collective --op all-reduce --algorithm ring --bytes 1e9 --bandwidth 450
  python -m triosim collective --ranks 16 --topology seminar-h100 --algorithm hierarchical
  python -m triosim collective --op all-to-all --topology torus:4x4 --ranks 16 --json -
"""


def run(arguments: Sequence[str]) -> None:
    options = _parser().parse_args(arguments)
    result = collective(
        options.op,
        size_bytes=options.bytes,
        ranks=options.ranks,
        algorithm=options.algorithm,
        link_gb_per_s=options.bandwidth,
        latency_us=options.latency_us,
        topology=_topology(options.topology),
        group=_group(options.group),
    )
    for warning in result.warnings:
        say(f"warning: {warning}")
    if options.json is not None:
        write_json(options.json, result.to_json())
    if options.json != "-":
        print_text(_summary(result))


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        "collective", "What one collective costs on an otherwise idle network.", EXAMPLES
    )
    parser.add_argument("--op", default="all-reduce", help="the operation (default: all-reduce)")
    parser.add_argument("--algorithm", default="auto", help="see `list algorithms` (default: auto)")
    parser.add_argument("--bytes", default="1e9", help="size of the full array (default: 1e9)")
    parser.add_argument("--ranks", default="8", help="GPUs (default: 8)")
    parser.add_argument("--bandwidth", help="GB/s per link and direction (100)")
    parser.add_argument("--latency-us", help="latency of a step, microseconds (0)")
    parser.add_argument("--topology", metavar="NAME|FILE|JSON", help="see `list topologies`")
    parser.add_argument("--group", metavar="RANK,RANK,...", help="who takes part (default: all)")
    parser.add_argument("--json", metavar="FILE|-", help="write the result as JSON")
    return parser


def _topology(text: str | None) -> Any:
    return None if text is None else read_topology(text)


def _group(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise ConfigError("group", text, "must be ranks with commas, as in 0,1,2") from None


def _summary(result: CollectiveResult) -> str:
    factor = bus_factor(result.group_size, result.operation)
    size = f"{result.size_bytes:,.0f} bytes"
    lines = [
        f"{result.operation} of {size} over {result.group_size:,} of {result.ranks:,} GPUs, "
        f"{result.algorithm}",
        "",
        f"  time          {result.time_ms:14.6g} ms, of it latency {result.latency_ms:.6g} ms in "
        f"{result.steps:,} {'step' if result.steps == 1 else 'steps'}",
        f"  algbw         {_rate(result.algbw_gb_per_s)}",
        f"  busbw         {_rate(result.busbw_gb_per_s)} (algbw x {factor:.6g})",
        f"  busiest link  {result.link_bytes:14,.0f} bytes",
    ]
    if result.calibrated_ms is not None:
        lines.append(
            f"  calibrated    {result.calibrated_ms:14.6g} ms with measured protocol costs"
        )
    return "\n".join([*lines, "", f"  {result.why}", ""])


def _rate(value: float | None) -> str:
    return f"{'n/a':>14}" if value is None else f"{value:14.6g} GB/s"
