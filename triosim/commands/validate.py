"""python -m triosim validate --source torchtitan"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from triosim.commands.output import Parser, print_text, read_whole, write_json
from triosim.errors import ConfigError
from triosim.legal import MAX_WORKERS
from triosim.validation import (
    Source,
    bubble_rates,
    compare,
    load_source,
    source_names,
    summarise,
    worst,
)
from triosim.validation.bubbles import CITATION

EXAMPLES = """examples:
  python -m triosim validate --source torchtitan
  python -m triosim validate --source zero-bubble --rows --jobs 4
  python -m triosim validate --json validation.json
"""
BUBBLES = "bubbles"


def run(arguments: Sequence[str]) -> None:
    options = _parser().parse_args(arguments)
    jobs = read_whole("jobs", options.jobs, MAX_WORKERS)
    names = (options.source,) if options.source else (*source_names(), BUBBLES)
    report: dict[str, object] = {}
    for name in names:
        if name == BUBBLES:
            rates = bubble_rates()
            report[name] = rates.to_dict("records")
            text = _bubbles(rates, rows=options.rows)
        else:
            source = _source(name)
            try:
                frame = compare(source, options.published and Path(options.published), jobs)
            except ConfigError as error:
                if options.source or error.field != "published":
                    raise
                report[name] = {"problem": str(error)}
                text = f"{source.title}\n  {error}\n"
            else:
                report[name] = _plain(source, frame)
                text = "\n".join(_lines(source, frame, rows=options.rows)) + "\n"
        if options.json != "-":
            print_text(text + "\n")
    if options.json is not None:
        write_json(options.json, json.dumps(report, indent=1) + "\n")


def _parser() -> argparse.ArgumentParser:
    parser = Parser("validate", "Predictions against published runs.", EXAMPLES)
    names = ", ".join((*source_names(), BUBBLES))
    parser.add_argument(
        "--source", metavar="NAME", help=f"one of {names} (default: all, which takes minutes)"
    )
    parser.add_argument("--rows", action="store_true", help="print every row, not the worst ones")
    parser.add_argument(
        "--published", metavar="FOLDER",
        help="where data sets lie that are not part of this project (default: what the variable "
        "TRIOSIM_PUBLISHED says, else ../shared/published beside the repository)",
    )  # fmt: skip
    parser.add_argument("--jobs", default="1", help="processes (1)")
    parser.add_argument("--json", metavar="FILE|-", help="write every row as JSON")
    return parser


def _source(name: str) -> Source:
    if name not in source_names():
        known = ", ".join((*source_names(), BUBBLES))
        raise ConfigError("source", name, f"no such source; known are {known}")
    return load_source(name)


def _lines(source: Source, frame: pd.DataFrame, *, rows: bool) -> Iterator[str]:
    yield f"{source.title}: {source.about}"
    yield f"  {source.citation}"
    yield from _summary(source, frame)
    yield "  every row" if rows else "  the worst rows"
    for row in (frame if rows else worst(frame)).to_dict("records"):
        yield _line(row)
    for problem, numbers in frame[frame.problem != ""].groupby("problem", sort=False).row:
        yield f"  cannot be run: rows {', '.join(map(str, numbers))}: {problem}"
    for sentence in source.held_out:
        yield f"  sizes kept apart: {sentence}"
    for sentence in source.unidentified:
        yield f"  unidentified: {sentence}"
    for sentence in source.known_failures:
        yield f"  known failure: {sentence}"
    for item in source.left_out:
        yield f"  left out: rows {item.rows}: {item.why}"
    for sentence in source.assumptions:
        yield f"  assumed: {sentence}"


def _summary(source: Source, frame: pd.DataFrame) -> Iterator[str]:
    head = f"{'rows':>6} {'mean error':>11} {'bias':>8} {'90th percentile':>16} {'asked for':>11}"
    yield f"  {'':22} {head}"
    for found in summarise(frame).to_dict("records"):
        target = source.targets.get(found["quantity"])
        asked = "" if target is None else f"{getattr(target, found['stack']):g} %"
        name = found["quantity"] + (f", {found['stack']}" if source.kind == "train" else "")
        yield (
            f"  {name:22} {found['rows']:6,} {found['mean_error']:11.1%} {found['bias']:+8.1%} "
            f"{found['p90']:16.1%} {asked:>11}"
        )


def _line(row: Mapping[Any, Any]) -> str:
    """One row: published and predicted time and memory, the run, and what is to be said of it."""
    figures = []
    for label, unit, name in (("s", "s", "time"), ("GiB", "gib", "memory")):
        published, predicted = row[f"published_{unit}"], row[f"calibrated_{unit}"]
        if pd.notna(published):
            error = row[f"calibrated_{name}_error"]
            said = "no prediction" if pd.isna(predicted) else f"{predicted:.4g} {error:+.1%}"
            figures.append(f"{published:.4g} {label} -> {said}")
    mark = "" if row["status"] == "kept" else f" [{row['status']}: {row['note']}]"
    return f"  {row['row']:>6}  {'; '.join(figures)}  {row['run']}{mark}"


def _bubbles(rates: pd.DataFrame, *, rows: bool) -> str:
    lines = [
        "Zero Bubble's bubble rates from its stage times",
        f"  {CITATION}",
        f"  {int(rates.agrees.sum())} of {len(rates)} agree with the printed ones",
    ]
    lines += [
        f"  {row['size']} {row['schedule']}, {row['microbatches']} micro-batches: "
        f"{row['published']:.4f} -> {row['predicted']:.4f}"
        for row in rates[~rates.agrees | rows].to_dict("records")
    ]
    return "\n".join(lines) + "\n"


def _plain(source: Source, frame: pd.DataFrame) -> dict[str, object]:
    """Plain values for JSON; missing figures are null."""
    rows = frame.astype(object).where(frame.notna(), None)
    return {
        "title": source.title,
        "citation": source.citation,
        "summary": summarise(frame).to_dict("records"),
        "held_out": list(source.held_out),
        "unidentified": list(source.unidentified),
        "known_failures": list(source.known_failures),
        "left_out": [{"rows": item.rows, "why": item.why} for item in source.left_out],
        "assumptions": list(source.assumptions),
        "rows": rows.to_dict("records"),
    }
