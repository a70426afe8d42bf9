"""How long a large profiler file takes to convert: python -m benchmarks.convert [FILE] [EVENTS]

The rows of a published recording (ResNet-50 on an A100, two ranks, three steps) are laid end to end
until there are 216,000 events, about what one step of a large language model has. The target is
10 s and 1 GB, in a process of its own.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.memory import peak_bytes
from tracer.convert import convert

ROOT = Path(__file__).resolve().parents[1]
FILE = "r03_hta_a100_resnet_ddp2_nccl_meta.json.gz"
DEFAULT = ROOT.parent / "shared" / "traces" / "kineto" / FILE
EVENTS = 216_000
TARGET_S = 10.0
TARGET_BYTES = 1e9
_IDS = ("External id", "correlation", "Record function id", "Ev Idx")


def tile(source: Path, target: Path, events: int = EVENTS) -> None:
    """Repeat the rows of `source`, later and with other ids, until `target` has `events`."""
    content = json.loads(gzip.decompress(source.read_bytes()))
    rows = [row for row in content["traceEvents"] if "ts" in row]
    begin = min(row["ts"] for row in rows)
    length = max(row["ts"] + row.get("dur", 0) for row in rows) - begin + 1000
    steps = sum(row["name"].startswith("ProfilerStep") for row in rows if row.get("ph") == "X")
    tiled = []
    for copy in range(-(-events // len(rows))):
        tiled += [_moved(row, copy, copy * length, copy * steps) for row in rows]
    content["traceEvents"] = tiled[:events]
    target.write_bytes(json.dumps(content, indent=1).encode())


def _moved(row: dict[str, Any], copy: int, later: float, steps: int) -> dict[str, Any]:
    args = dict(row.get("args", {}))
    for key in _IDS:
        if type(args.get(key)) is int:
            args[key] += copy * 10_000_000
    name = row["name"]
    if name.startswith("ProfilerStep#"):
        name = f"ProfilerStep#{int(name.removeprefix('ProfilerStep#')) + steps}"
    return {**row, "name": name, "ts": row["ts"] + later, "args": args}


def measure(file: Path) -> dict[str, float]:
    """Seconds on the clock and of this process, and the most memory (bytes) that it ever had."""
    start_s, own_s = time.perf_counter(), time.process_time()
    _, report = convert(file)
    return {
        "events": report.file.events,
        "kernels": report.file.kernels,
        "steps": len(report.steps),
        "attributed": report.attributed,
        "seconds": time.perf_counter() - start_s,
        "own_seconds": time.process_time() - own_s,
        "memory_bytes": peak_bytes(),
    }


def in_own_processes(source: Path, folder: Path, events: int = EVENTS) -> dict[str, float]:
    """Tile in one process and convert in another: a child starts with its parent's peak memory."""
    file = folder / "profiler_tiled.json"
    _python("tile(Path(a), Path(b), int(c))", source, file, events)
    result: dict[str, float] = json.loads(_python("print(json.dumps(measure(Path(a))))", file))
    return {**result, "file_bytes": file.stat().st_size}


def _python(statement: str, *values: object) -> str:
    names = "".join(f"{name}, " for name in "abc"[: len(values)])
    code = (
        "import json, sys; from pathlib import Path; from benchmarks.convert import measure, tile; "
        f"{names}= sys.argv[1:]; {statement}"
    )
    words = [sys.executable, "-c", code, *map(str, values)]
    return subprocess.run(words, capture_output=True, text=True, check=True, cwd=ROOT).stdout


def main() -> None:
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT
    events = int(sys.argv[2]) if len(sys.argv) > 2 else EVENTS
    if not source.is_file():
        raise SystemExit(f"{source}: no such file; give a profiler file (.json.gz)")
    with tempfile.TemporaryDirectory() as folder:
        found = in_own_processes(source.resolve(), Path(folder), events)
    print(
        f"events {found['events']}, kernels {found['kernels']}, steps {found['steps']}, "
        f"file {found['file_bytes'] / 1e6:.1f} MB, attributed {found['attributed']:.2%}"
    )
    print(
        f"time {found['seconds']:.2f} s, of which on the processor {found['own_seconds']:.2f} s "
        f"(target {TARGET_S:.0f} s)"
    )
    print(f"memory {found['memory_bytes'] / 1e6:.0f} MB (target {TARGET_BYTES / 1e6:.0f} MB)")


if __name__ == "__main__":
    main()
