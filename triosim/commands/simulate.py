"""python -m triosim -trace-dir FOLDER -GPUnumber 4 -case 1: TrioSim's own flags and units.

Flags have one dash or two. A mistake in one is told with the flag's name and the value as typed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import triosim
from triosim.chakra import write_chakra
from triosim.commands.flags import FILES, FLAGS, INTERCONNECTS, SWITCHES, Flag
from triosim.commands.output import FlagError, UnknownWordError, print_text, read_topology, say
from triosim.errors import ConfigError
from triosim.export.chrome import chrome_trace
from triosim.export.files import write_atomically
from triosim.export.hta import write_hta
from triosim.export.summary import summary
from triosim.export.table import timeline_csv
from triosim.legal import SPEEDS
from triosim.result import Result
from triosim.scenario import Scenario, read_scenario
from triosim.simulate import simulate

DESCRIBED = ("}", ".toml", ".json")  # how a topology ends that is no name
_WITH_VALUE = {flag.name for flag in FLAGS} | {name for name, *_ in FILES} | {"slow", "dead-links"}
_WITHOUT_VALUE = {name for name, _ in SWITCHES} | {"version", "help", "h"}
EXAMPLES = """other commands, each with --help: train, compare, explain, sweep, search, validate,
  collective, pipeline, goodput, list

examples:
  python -m triosim -trace-dir sample_trace/transformer -GPUnumber 4 -case 1
  python -m triosim -case 2 -GPUnumber 64 --bucket-mb 10 --resident
  python -m triosim -case 4 -GPUnumber 4 -micro-batch-size 1 --schedule 1f1b --slow 2=0.5
  python -m triosim -case 1 -GPUnumber 8 -interconnects 1 -numRows 2 -numCols 4
  python -m triosim -case 2 -GPUnumber 8 --trace-gpu a40 --gpu h100-sxm
  python -m triosim --scenario saved.json -GPUnumber 16 --json -
"""


def run(arguments: Sequence[str]) -> None:
    options = argparse.Namespace()
    try:
        _parser().parse_args(_words(arguments), options)
        scenario = _scenario(options)
        if options.save_scenario is not None:
            write_atomically(options.save_scenario, scenario.to_json())
        result = simulate(scenario)
    except ConfigError as error:
        raise FlagError(_in_flags(error, options)) from None
    unused = _unused(scenario, options)
    if unused:
        result = replace(result, warnings=(*result.warnings, *unused))
    _write(result, options)


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
            raise UnknownWordError(word)
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
    if options.hta is not None:
        write_hta(result, options.hta)
    if options.chakra is not None:
        write_chakra(result, options.chakra)
    if not options.quiet:
        for warning in result.warnings:
            say(f"warning: {warning}")
    if options.json == "-":
        print_text(result.to_json())
    elif not options.quiet:
        print_text(summary(result) + "\n")
