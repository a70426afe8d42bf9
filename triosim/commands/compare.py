"""python -m triosim compare before.json after.json"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from triosim.commands.output import FlagError, Parser, print_text, write_json
from triosim.compare import MOST, Comparison, Delta, compare
from triosim.errors import ConfigError
from triosim.resolved import AnyScenario, read_any_scenario

EXAMPLES = """examples:
  python -m triosim -case 2 -GPUnumber 8 --save-scenario before.json
  python -m triosim -case 2 -GPUnumber 16 --save-scenario after.json
  python -m triosim compare before.json after.json
  python -m triosim compare before.json after.json other.json --json -

a file is a saved scenario of either kind, or a result written with --json
"""
FIGURES = ("step_ms", "samples_per_s", "peak_memory_gib")
SHOWN = 40  # letters of a value in the table
BAR = 24  # letters of the longest bar of a waterfall


def run(arguments: Sequence[str]) -> None:
    parser = Parser(
        "compare", "Two to four steps side by side; the first is the baseline.", EXAMPLES
    )
    parser.add_argument("scenarios", nargs="*", metavar="FILE.json", help="two to four scenarios")
    parser.add_argument("--json", metavar="FILE|-", help="write the comparison as JSON")
    options = parser.parse_args(arguments)
    if not 2 <= len(options.scenarios) <= MOST:
        raise FlagError(f"compare: needs 2 to {MOST} files, {len(options.scenarios)} were given.")
    found = compare(*map(_read, options.scenarios))
    if options.json is not None:
        text = json.dumps(found.to_dict(), indent=2, default=str, allow_nan=False)
        write_json(options.json, text + "\n")
    if options.json != "-":
        print_text(_summary(found, [Path(path).stem for path in options.scenarios]))


def _read(path: str) -> AnyScenario:
    """A file's scenario; what is wrong in it is said with the file's name."""
    try:
        return read_any_scenario(path)
    except ConfigError as error:
        text = str(error)
        raise FlagError(text if path in text else f"{path}: {text}") from None


def _summary(found: Comparison, names: Sequence[str]) -> str:
    rows = [
        (f"{one.section}: {one.setting}", *map(_shown, one.values)) for one in found.differences
    ]
    figures = [
        (name, *(f"{_figure(result, name):,.3f}" for result in found.results)) for name in FIGURES
    ]
    lines = _table([("", *names), *figures, *rows])
    for index, name in list(enumerate(names))[1:]:
        lines += ["", f"{name}: {found.paragraph(index)}", *_waterfall(found.waterfall(index))]
    return "\n".join([*lines, ""])


def _figure(result: Any, name: str) -> float:
    if name == "peak_memory_gib":
        return float(result.peak_memory_bytes) / 2**30
    return float((result.total_ms if name == "step_ms" else result.samples_per_s) or 0.0)


def _shown(value: object) -> str:
    text = "-" if value is None else str(value)
    return text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip()
        for row in rows
    ]


def _waterfall(deltas: Sequence[Delta]) -> list[str]:
    most = max((abs(delta.ms) for delta in deltas), default=1.0)
    width = max((len(delta.words) for delta in deltas), default=0)
    bars = ["#" * round(abs(delta.ms) / most * BAR) for delta in deltas]
    lines = [
        f"  {delta.words.ljust(width)} {delta.ms:+13,.3f} ms  {bar}".rstrip()
        for delta, bar in zip(deltas, bars, strict=True)
    ]
    total = f"  {'step'.ljust(width)} {sum(delta.ms for delta in deltas):+13,.3f} ms"
    return [*lines, total] if deltas else []
