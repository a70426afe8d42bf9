"""The command line: python -m triosim -trace-dir FOLDER -GPUnumber 4 -case 1

Flags keep TrioSim's names, defaults and units, with one dash or two. Results go to standard output,
messages to standard error. Exit status 0; 1 for a trace that cannot be read, a scenario without an
answer or a simulation error; 2 for a flag.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import triosim
from triosim.commands import collective, listing, pipeline, train, validate
from triosim.commands.output import FlagError, print_text, read_topology, say
from triosim.errors import ConfigError, TrioSimError
from triosim.export.chrome import chrome_trace
from triosim.export.files import write_atomically
from triosim.export.summary import summary
from triosim.export.table import timeline_csv
from triosim.legal import SPEEDS
from triosim.network.topology.describe import Description
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
    Flag("gpu", "gpu", "GPU to run on, by name (default: as in the trace)"),
    Flag("trace-gpu", "trace_gpu", "GPU the trace was taken on (default: its meta.json's)"),
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
    Flag("circuit-teardown-ms", "circuit_teardown_ms", "time to take one down, ms", float),
    Flag("wavelengths", "wavelengths", "circuits per mesh link and direction (default: any)", int),
    Flag(
        "topology",
        "topology",
        "how GPUs are joined: a name of `list topologies`, a file, or a description as JSON",
    ),
    Flag("algorithm", "algorithm", "of the all-reduces: a name of `list algorithms`, or auto"),
    Flag(
        "overlap-slowdown",
        "overlap_slowdown",
        "0.2: computing takes 1.2 times as long beside communication (default: measured on "
        "machines, else 0)",
        float,
    ),
    Flag("slow-every", "slow_every", "slow GPUs are slow in one step out of so many", int),
    Flag("jitter", "jitter", "standard deviation of computing times, as a share", float),
    Flag("seed", "seed", "of the jitter", int),
)
COMMANDS: dict[str, Callable[[Sequence[str]], None]] = {
    "collective": collective.run,
    "pipeline": pipeline.run,
    "train": train.run,
    "validate": validate.run,
    "list": listing.run,
}
# Flags of the commands that are shorter than what they set.
SHORTER = {"operation": "op", "size_bytes": "bytes", "link_gb_per_s": "bandwidth"}
DESCRIBED = ("}", ".toml", ".json")  # how a topology ends that is no name
INTERCONNECTS = {"0": "electrical", "1": "optical"}
SWITCHES = (
    ("resident", "tensors that exist before the step are on the GPU already"),
    ("no-fold", "simulate every rank, also identical ones"),
    ("no-protocol", "links without the protocol costs measured on such machines"),
    ("quiet", "print neither the summary nor warnings"),
)
FILES = (
    ("json", "FILE|-", "write the result as JSON (- : to standard output, and nothing else)"),
    ("timeline", "FILE.csv", "write the timeline"),
    ("perfetto", "FILE.json", "write the timeline for Perfetto or chrome://tracing"),
    ("scenario", "FILE.json", "start from a saved scenario; flags beside it win"),
    ("save-scenario", "FILE.json", "save the scenario"),
)
_WITH_VALUE = {flag.name for flag in FLAGS} | {name for name, *_ in FILES} | {"slow", "dead-links"}
_WITHOUT_VALUE = {name for name, _ in SWITCHES} | {"version", "help", "h"}
EXAMPLES = """other commands, each with --help: train, validate, collective, pipeline, list

examples:
  python -m triosim -trace-dir sample_trace/transformer -GPUnumber 4 -case 1
  python -m triosim -case 2 -GPUnumber 64 --bucket-mb 10 --resident
  python -m triosim -case 4 -GPUnumber 4 -micro-batch-size 1 --schedule 1f1b --slow 2=0.5
  python -m triosim -case 1 -GPUnumber 8 -interconnects 1 -numRows 2 -numCols 4
  python -m triosim -case 2 -GPUnumber 8 --trace-gpu a40 --gpu h100-sxm
  python -m triosim --scenario saved.json -GPUnumber 16 --json -
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words and words[0] in COMMANDS:
        return _run(COMMANDS[words[0]], words[1:])
    options = argparse.Namespace()
    try:
        _parser().parse_args(_words(words), options)
        scenario = _scenario(options)
        if options.save_scenario is not None:
            write_atomically(options.save_scenario, scenario.to_json())
        result = simulate(scenario)
        unused = _unused(scenario, options)
        if unused:
            result = replace(result, warnings=(*result.warnings, *unused))
        _write(result, options)
    except FlagError as error:
        return _fail(2, str(error))
    except ConfigError as error:
        return _fail(2, _in_flags(error, options))
    except TrioSimError as error:
        return _fail(1, str(error))
    except OSError as error:
        return _fail(1, f"{error.filename}: {error.strerror}.")
    return 0


def _fail(status: int, sentence: str) -> int:
    say(sentence)
    return status


def _run(command: Callable[[Sequence[str]], None], arguments: Sequence[str]) -> int:
    """A command with a word of its own."""
    try:
        command(arguments)
    except FlagError as error:
        return _fail(2, str(error))
    except ConfigError as error:
        flag = SHORTER.get(error.field, error.field).replace("_", "-")
        shown = '""' if error.value == "" else error.value
        return _fail(2, ConfigError(error.field, shown, error.problem).named(f"--{flag}"))
    except TrioSimError as error:
        return _fail(1, str(error))
    except OSError as error:
        return _fail(1, f"{error.filename}: {error.strerror}.")
    return 0


def _in_flags(error: ConfigError, options: argparse.Namespace) -> str:
    """The sentence with the names of the command line and the value as it was typed."""
    for flag in FLAGS:
        if flag.field == error.field:
            typed = getattr(options, flag.field)
            # What is wrong in a description tells more than the whole of it.
            described = flag.field == "topology" and str(typed).lower().endswith(DESCRIBED)
            value = error.value if described else typed or error.value
            return ConfigError(error.field, value, error.problem).named(f"-{flag.name}")
    others = {
        "rank_speed": "--slow",
        "dead_links": "--dead-links",
        "scenario": "--scenario",
        "schema_version": "--scenario: schema_version",
    }
    return error.named(others.get(error.field, error.field))


def _unused(scenario: Scenario, options: argparse.Namespace) -> list[str]:
    """The engine cannot tell a flag given at its default from one not given."""
    given = options.ptp_bandwidth_gb_per_s
    if given is None or scenario.ptp_bandwidth_gb_per_s != Scenario.ptp_bandwidth_gb_per_s:
        return []
    if scenario.interconnect == "optical":
        why = f"the optical interconnect has {scenario.optical_gb_per_s:g} GB/s per circuit"
    elif scenario.on_topology and scenario.topology is not None and not scenario.generic_topology:
        why = f"{scenario.topology_name} has links of its own"
    else:
        return []
    return [f"-ptp-bandwidth {given} is unused: {why}."]


def _words(arguments: Sequence[str]) -> Iterator[str]:
    """The arguments as --flag or --flag=value.

    Left to itself, argparse takes beginnings of flags with one dash, and -1e5 for a flag.
    """
    left = iter(arguments)
    for word in left:
        name, (_, equals, value) = _flag(word), word.partition("=")
        if name is None:
            raise FlagError(_unknown(word))
        if name in _WITH_VALUE:
            if not equals:
                value = next(left, "")
            if not value or (not equals and _flag(value)):
                raise FlagError(f"{word}: needs a value after it.")
            yield f"--{name}={value}"
        elif equals:
            raise FlagError(f"{word}: this flag takes no value.")
        else:
            yield f"--{name}"


def _unknown(word: str) -> str:
    """A word that is no flag may be meant as a command."""
    meant = [] if word.startswith("-") else get_close_matches(word, COMMANDS)
    if not meant:
        return f"{word}: no such flag; --help lists them."
    if word in COMMANDS:
        return f"{word}: a command comes first, as in python -m triosim {word} --help."
    return f"{word}: no such command; did you mean {' or '.join(meant)}?"


def _flag(word: str) -> str | None:
    """The name of the flag that a word is or begins with."""
    name = word.removeprefix("-").removeprefix("-").partition("=")[0]
    return name if word.startswith("-") and name in _WITH_VALUE | _WITHOUT_VALUE else None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
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
            metavar=flag.name.upper() if flag.choices is None else "|".join(flag.choices),
            help=flag.help + shown,
        )
    for name, text in SWITCHES:
        parser.add_argument(f"-{name}", f"--{name}", action="store_true", default=None, help=text)
    parser.add_argument(
        "-slow",
        "--slow",
        metavar="RANK=SPEED",
        action="append",
        help="a rank's speed, 0.5 for half; repeatable",
    )
    parser.add_argument(
        "-dead-links",
        "--dead-links",
        metavar="A-B[=SHARE],...",
        action="append",
        help="connections that are down, or have a share of their bandwidth left; repeatable",
    )
    for name, metavar, text in FILES:
        parser.add_argument(f"-{name}", f"--{name}", metavar=metavar, help=text)
    version = f"triosim {triosim.__version__}"
    parser.add_argument("-version", "--version", action="version", version=version)
    parser.add_argument("-h", "--h", "-help", "--help", action="help", help="show this text")
    return parser


def _scenario(options: argparse.Namespace) -> Scenario:
    values: dict[str, Any] = {} if options.scenario is None else read_scenario(options.scenario)
    for flag in FLAGS:
        text = getattr(options, flag.field)
        if text is not None:
            values[flag.field] = _value(flag, text)
    if options.resident:
        values["resident"] = True
    if options.no_fold:
        values["fold"] = False
    if options.no_protocol:
        values["protocol"] = False
    if options.dead_links:
        values["dead_links"] = tuple(k for text in options.dead_links for k in text.split(","))
    if options.slow:
        values["rank_speed"] = _slow(options.slow)
    return Scenario(**values)


def _value(flag: Flag, text: str) -> object:
    if flag.choices is not None and text not in flag.choices:
        raise ConfigError(flag.field, text, f"must be {' or '.join(flag.choices)}")
    if flag.field == "interconnect":
        return INTERCONNECTS[text]
    if flag.field == "topology":
        return read_topology(text)
    try:
        return flag.kind(text)
    except ValueError:
        return text  # `Scenario` says what is legal


def _slow(items: Sequence[str]) -> dict[int, float]:
    speeds: dict[int, float] = {}
    for item in items:
        rank, _, text = item.partition("=")
        try:
            number, speed = int(rank), float(text)
        except ValueError:
            raise ConfigError("rank_speed", item, "must be RANK=SPEED, as in 3=0.5") from None
        if not SPEEDS[0] <= speed <= SPEEDS[1]:
            legal = f"the speed must be a number from {SPEEDS[0]:g} to {SPEEDS[1]:g}"
            raise ConfigError("rank_speed", item, legal)
        if number in speeds:
            earlier = next(other for other in items if int(other.partition("=")[0]) == number)
            raise ConfigError(
                "rank_speed", item, f"{earlier} came before; give each rank one speed"
            )
        speeds[number] = speed
    return speeds


def _write(result: Result, options: argparse.Namespace) -> None:
    if options.json not in (None, "-"):
        write_atomically(options.json, result.to_json())
    if options.timeline is not None:
        write_atomically(options.timeline, timeline_csv(result))
    if options.perfetto is not None:
        write_atomically(options.perfetto, chrome_trace(result))
    if not options.quiet:
        for warning in result.warnings:
            say(f"warning: {warning}")
    if options.json == "-":
        print_text(result.to_json())
    elif not options.quiet:
        print_text(summary(result) + "\n")


def command_line(scenario: Scenario) -> str:
    """The command that reproduces a scenario."""
    default = Scenario()
    words = ["python -m triosim", f"-trace-dir {shlex.quote(_from_here(scenario.trace_dir))}"]
    for flag in FLAGS[1:]:
        value = getattr(scenario, flag.field)
        if value != getattr(default, flag.field):
            if flag.field == "interconnect":
                value = {name: number for number, name in INTERCONNECTS.items()}[value]
            words.append(f"-{flag.name} {_typed(flag, value)}")
    words += [f"--slow {rank}={speed!r}" for rank, speed in scenario.speeds.items()]
    if scenario.dead_links:
        words.append(f"--dead-links {shlex.quote(','.join(scenario.dead_links))}")
    words += ["--no-protocol"] * (not scenario.protocol)
    words += ["--resident"] * scenario.resident + ["--no-fold"] * (not scenario.fold)
    return " ".join(words)


def _typed(flag: Flag, value: object) -> str:
    """A value as it is typed after its flag."""
    if isinstance(value, float):
        short = f"{value:g}"
        return short if flag.kind(short) == value else repr(value)
    text = json.dumps(value.to_dict()) if isinstance(value, Description) else str(value)
    return shlex.quote(text)


def _from_here(folder: str) -> str:
    """A shorter path where there is one, in a form that no shell or parser takes for a flag."""
    path = Path(folder)
    if path.is_absolute() and path.is_relative_to(Path.cwd()):
        folder = str(path.relative_to(Path.cwd()))
    return f"./{folder}" if folder.startswith("-") else folder
