"""The command line: python -m triosim -trace-dir FOLDER -GPUnumber 4 -case 1

Flags keep TrioSim's names, defaults and units, with one dash or two. Results go to standard output,
messages to standard error. Exit status 0; 1 for a trace that cannot be read, a scenario without an
answer or a simulation error; 2 for a flag.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import triosim
from triosim.errors import ConfigError, TrioSimError
from triosim.export.chrome import chrome_trace
from triosim.export.files import write_atomically
from triosim.export.summary import summary
from triosim.export.table import timeline_csv
from triosim.result import Result
from triosim.scenario import Scenario, read_scenario
from triosim.simulate import simulate


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag: its name without dashes, the field of `Scenario` it sets, and its help."""

    name: str
    field: str
    help: str
    kind: type = str
    choices: tuple[str, ...] | None = None


FLAGS = (
    Flag("trace-dir", "trace_dir", "folder with trace.csv and tensor.csv"),
    Flag("batch-size", "batch_size", "batch the trace was taken at (default: its own)", int),
    Flag("batch-size-sim", "batch_size_sim", "batch to simulate (default: batch-size)", int),
    Flag("bandwidth", "bandwidth_gb_per_s", "GPU to remote memory, GB/s per GPU", float),
    Flag("ptp-bandwidth", "ptp_bandwidth_gb_per_s", "GPU to GPU, GB/s", float),
    Flag("GPUnumber", "gpus", "number of GPUs", int),
    Flag("micro-batch-size", "micro_batch_size", "micro-batch of case 4 (default: the batch)", int),
    Flag(
        "case",
        "case",
        "0 training (each GPU alone), 1 standard data parallel, 2 distributed data parallel, "
        "3 tensor parallel, 4 pipeline parallel",
        int,
    ),
    Flag("capacity", "capacity_log2", "memory per GPU, 2^CAPACITY bytes", int),
    Flag("numCols", "mesh_cols", "columns of the optical mesh (default: GPUnumber)", int),
    Flag("numRows", "mesh_rows", "rows of the optical mesh (default: 1)", int),
    Flag("interconnects", "interconnect", "0 electrical, 1 optical", choices=("0", "1")),
    Flag(
        "ptp-convention",
        "ptp_convention",
        "algbw: ptp-bandwidth is the all-reduce's algorithm bandwidth in cases 1-3, as TrioSim "
        "reads it; link: it is the speed of a link",
        choices=("algbw", "link"),
    ),
    Flag("latency-us", "latency_us", "latency of one electrical step, microseconds", float),
    Flag("bucket-mb", "bucket_mb", "gradient bucket of case 2, in 2^20 bytes", float),
    Flag("accumulate", "accumulate", "batches per step in cases 1 and 2", int),
    Flag("schedule", "schedule", "pipeline schedule", choices=("gpipe", "1f1b")),
    Flag(
        "stage-cut",
        "stage_cut",
        "time: the largest stage is as small as possible; count: equal numbers of operators, as "
        "TrioSim",
        choices=("time", "count"),
    ),
    Flag("optical-bandwidth", "optical_gb_per_s", "GB/s per circuit and direction", float),
    Flag("hop-latency-ns", "hop_latency_ns", "latency of one optical hop, nanoseconds", float),
    Flag("circuit-setup-ms", "circuit_setup_ms", "time to set up a circuit, milliseconds", float),
)
INTERCONNECTS = {"0": "electrical", "1": "optical"}
EXAMPLES = """examples:
  python -m triosim -trace-dir sample_trace/transformer -GPUnumber 4 -case 1
  python -m triosim -case 2 -GPUnumber 64 --bucket-mb 10 --resident
  python -m triosim -case 4 -GPUnumber 4 -micro-batch-size 1 --schedule 1f1b --slow 2=0.5
  python -m triosim -case 1 -GPUnumber 8 -interconnects 1 -numRows 2 -numCols 4
  python -m triosim --scenario saved.json -GPUnumber 16 --json -
"""


class FlagError(Exception):
    """A flag cannot be read; exit status 2."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise FlagError(message[:1].upper() + message[1:].rstrip(".") + ".")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    try:
        options = _parser().parse_args(arguments)
        scenario = _scenario(options)
    except FlagError as error:
        return _fail(2, str(error))
    except ConfigError as error:
        return _fail(2, _in_flags(error))
    try:
        if options.save_scenario:
            write_atomically(options.save_scenario, scenario.to_json())
        result = simulate(scenario)
        _write(result, options)
    except ConfigError as error:
        return _fail(2, _in_flags(error))
    except TrioSimError as error:
        return _fail(1, str(error))
    except OSError as error:
        return _fail(1, f"{error.filename}: {error.strerror}.")
    return 0


def _fail(status: int, sentence: str) -> int:
    print(f"triosim: {sentence}", file=sys.stderr)
    return status


def _in_flags(error: ConfigError) -> str:
    """The sentence in the names of the command line."""
    value = error.value
    names = {flag.field: f"-{flag.name}" for flag in FLAGS} | {
        "rank_speed": "--slow",
        "scenario": "--scenario",
        "schema_version": "--scenario: schema_version",
    }
    if error.field == "interconnect":
        value = {"electrical": 0, "optical": 1}.get(str(value), value)
    return ConfigError(error.field, value, error.problem).named(names.get(error.field, error.field))


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m triosim",
        description="Simulate one training step on many GPUs from a trace of one.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        add_help=False,
    )
    defaults = Scenario()
    for flag in FLAGS:
        default = getattr(defaults, flag.field)
        if flag.field == "interconnect":
            default = 0
        elif flag.field == "trace_dir":
            default = "a shipped trace"
        shown = "" if default is None else f" (default: {default})"
        parser.add_argument(
            f"-{flag.name}",
            f"--{flag.name}",
            dest=flag.field,
            metavar=flag.field.upper() if flag.choices is None else "|".join(flag.choices),
            help=flag.help + shown,
        )
    more = (
        ("resident", "tensors that exist before the step are on the GPU already"),
        ("no-fold", "simulate every rank, also identical ones"),
        ("quiet", "print neither the summary nor warnings"),
    )
    for name, text in more:
        parser.add_argument(f"-{name}", f"--{name}", action="store_true", default=None, help=text)
    parser.add_argument(
        "-slow",
        "--slow",
        metavar="RANK=SPEED",
        action="append",
        help="a rank's speed, 0.5 for half; repeatable",
    )
    files = (
        ("json", "FILE|-", "write the result as JSON (- : to standard output, and nothing else)"),
        ("timeline", "FILE.csv", "write the timeline"),
        ("perfetto", "FILE.json", "write the timeline for Perfetto or chrome://tracing"),
        ("scenario", "FILE.json", "start from a saved scenario; flags beside it win"),
        ("save-scenario", "FILE.json", "save the scenario"),
    )
    for name, metavar, text in files:
        parser.add_argument(f"-{name}", f"--{name}", metavar=metavar, help=text)
    version = f"triosim {triosim.__version__}"
    parser.add_argument("-version", "--version", action="version", version=version)
    parser.add_argument("-h", "-help", "--help", action="help", help="show this text")
    return parser


def _scenario(options: argparse.Namespace) -> Scenario:
    values: dict[str, Any] = read_scenario(options.scenario) if options.scenario else {}
    for flag in FLAGS:
        text = getattr(options, flag.field)
        if text is not None:
            values[flag.field] = _value(flag, text)
    if options.resident:
        values["resident"] = True
    if options.no_fold:
        values["fold"] = False
    if options.slow:
        values["rank_speed"] = _slow(options.slow)
    return Scenario(**values)


def _value(flag: Flag, text: str) -> object:
    if flag.choices is not None and text not in flag.choices:
        raise ConfigError(flag.field, text, f"must be {' or '.join(flag.choices)}")
    if flag.field == "interconnect":
        return INTERCONNECTS[text]
    if flag.kind is str:
        return text
    try:
        return flag.kind(text)
    except ValueError:
        what = "a whole number" if flag.kind is int else "a number"
        raise ConfigError(flag.field, text, f"must be {what}") from None


def _slow(items: Sequence[str]) -> dict[int, float]:
    speeds: dict[int, float] = {}
    for item in items:
        rank, _, speed = item.partition("=")
        try:
            speeds[int(rank)] = float(speed)
        except ValueError:
            raise ConfigError("rank_speed", item, "must be RANK=SPEED, as in 3=0.5") from None
    return speeds


def _write(result: Result, options: argparse.Namespace) -> None:
    if options.json == "-":
        sys.stdout.write(result.to_json())
    elif options.json:
        write_atomically(options.json, result.to_json())
    if options.timeline:
        write_atomically(options.timeline, timeline_csv(result))
    if options.perfetto:
        write_atomically(options.perfetto, chrome_trace(result))
    if options.quiet:
        return
    for warning in result.warnings:
        print(f"triosim: warning: {warning}", file=sys.stderr)
    if options.json != "-":
        print(summary(result))


def command_line(scenario: Scenario) -> str:
    """The command that reproduces a scenario."""
    default = Scenario()
    words = ["python -m triosim", f"-trace-dir {_quoted(Path(scenario.trace_dir))}"]
    for flag in FLAGS[1:]:
        value = getattr(scenario, flag.field)
        if value != getattr(default, flag.field):
            if flag.field == "interconnect":
                value = {name: number for number, name in INTERCONNECTS.items()}[value]
            words.append(
                f"-{flag.name} {value:g}" if isinstance(value, float) else f"-{flag.name} {value}"
            )
    words += [f"--slow {rank}={speed!r}" for rank, speed in scenario.speeds.items()]
    words += ["--resident"] * scenario.resident + ["--no-fold"] * (not scenario.fold)
    return " ".join(words)


def _quoted(path: Path) -> str:
    text = str(path)
    if path.is_absolute() and path.is_relative_to(Path.cwd()):
        text = str(path.relative_to(Path.cwd()))
    return text if text and all(c.isalnum() or c in "/._-" for c in text) else f"'{text}'"
