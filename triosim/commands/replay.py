"""python -m triosim replay FOLDER --topology dgx-h100"""

from __future__ import annotations

from collections.abc import Sequence

from triosim.analysis.breakdown import CLASSES
from triosim.chakra import ReplayResult, replay
from triosim.commands.output import (
    Parser,
    print_text,
    read_number,
    read_topology,
    say,
    write_json,
)
from triosim.errors import counted
from triosim.export.chrome import chrome_trace
from triosim.export.files import write_atomically

EXAMPLES = """examples:
  python -m triosim -case 2 -GPUnumber 8 --chakra traces
  python -m triosim replay traces --topology dgx-h100
  python -m triosim replay traces --algorithm ring --bandwidth 50 --latency-us 2 --json -

a folder holds NAME.RANK.et for every rank, and may hold comm_groups.json: {"0": [0, 1], ...}
"""


def run(arguments: Sequence[str]) -> None:
    parser = Parser("replay", "Chakra execution traces of all ranks, run on a network.", EXAMPLES)
    parser.add_argument("folder", metavar="FOLDER", help="with NAME.RANK.et for every rank")
    parser.add_argument("--topology", help="as in `list topologies` (as the algorithm needs it)")
    parser.add_argument("--algorithm", default="auto", help="of the collectives (auto)")
    parser.add_argument("--bandwidth", metavar="GB/s", default="100", help="of a link (100)")
    parser.add_argument("--latency-us", metavar="US", default="0", help="of a step (0)")
    parser.add_argument(
        "--no-protocol", action="store_true", help="links without measured protocol costs"
    )
    parser.add_argument("--json", metavar="FILE|-", help="write the result as JSON")
    parser.add_argument("--perfetto", metavar="FILE", help="write the timeline (.gz: packed)")
    options = parser.parse_args(arguments)
    result = replay(
        options.folder,
        topology=None if options.topology is None else read_topology(options.topology),
        algorithm=options.algorithm,
        link_gb_per_s=read_number("link_gb_per_s", options.bandwidth),
        latency_us=read_number("latency_us", options.latency_us),
        protocol=not options.no_protocol,
    )
    if options.json is not None:
        write_json(options.json, result.to_json())
    if options.perfetto is not None:
        write_atomically(options.perfetto, chrome_trace(result))
    for warning in result.warnings:
        say(f"warning: {warning}")
    if options.json != "-":
        print_text(_summary(result))


def _summary(result: ReplayResult) -> str:
    nodes = sum(map(len, result.workload.ranks))
    lines = [
        f"{result.workload.name}: {counted(len(result.workload.ranks), 'rank')}, "
        f"{counted(nodes, 'node')}",
        "",
        f"  step time       {result.total_ms:12.4f} ms",
        f"  sent GPU to GPU {result.communication_bytes / 1e9:12.3f} GB in all",
        "",
        "  where the time goes, mean over GPUs:",
    ]
    lines += [
        f"    {name.replace('_', ' '):22}{result.breakdown[name]:12.4f} ms" for name in CLASSES
    ]
    failed = [check for check in result.checks if not check.passed]
    lines += ["", f"  {len(result.checks) - len(failed)} of {len(result.checks)} checks passed"]
    lines += [f"    FAILED {check.id}: {check.detail}" for check in failed]
    return "\n".join([*lines, ""])
