"""Broken inputs to every reader of outside data: python -m benchmarks.fuzz [--inputs 200000]

Each input is a change of a valid one or made from nothing, drawn from its reader, number and seed.
A reader may return or raise `TrioSimError`; anything else is a fault, and so is an input that takes
more than 10 s or 1 GB. `--coverage` lets atheris choose the inputs (pip install .[fuzz]); its
changes are the same ones. The exit status is 1 where there was a fault.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import resource
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from benchmarks.memory import peak_bytes
from triosim.errors import TrioSimError

INPUTS = 200_000
LONGEST_S = 10
MOST_BYTES = 2**30  # of memory on top of what the program itself has
SHOWN = 5  # faults of one kind
ROOT = Path(__file__).resolve().parents[1]


class TooSlow(Exception):  # noqa: N818 - a fault of a reader
    """An input took more than `LONGEST_S`."""


@dataclass(kw_only=True)
class Tally:
    """What came of the inputs of one reader; `faults` are by kind and place, with input numbers."""

    inputs: int = 0
    seconds: float = 0.0
    slowest_s: float = 0.0
    slowest: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    faults: dict[str, list[int]] = field(default_factory=dict)

    def line(self, name: str) -> str:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in self.outcomes.most_common())
        return (
            f"{name:16}{self.inputs:9,} inputs {self.inputs / self.seconds:8,.0f} /s  "
            f"slowest {self.slowest_s * 1e3:7.1f} ms (input {self.slowest})  "
            f"peak {peak_bytes() / 2**20:5,.0f} MiB  {kinds}"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    logging.disable(logging.WARNING)  # Streamlit warns where no page runs
    from benchmarks.fuzz_readers import READERS  # after logging

    options = _parser(list(READERS)).parse_args(arguments)
    names = options.reader or list(READERS)
    if options.coverage:
        return _cover(names, options)
    warnings.simplefilter("ignore")
    seeds = {name: READERS[name].seeds() for name in names}
    _bound_memory()
    each = -(-options.inputs // len(names))
    start_s = time.process_time()
    tallies = {name: _fuzz(name, seeds[name], each, options) for name in names}
    seconds = time.process_time() - start_s
    total = sum(tally.inputs for tally in tallies.values())
    faults = sum(len(tally.faults) for tally in tallies.values())
    print(
        f"{total:,} inputs in {seconds:.0f} s, {total / seconds:,.0f} /s, {faults} kinds of fault"
    )
    return int(faults > 0)


def _parser(names: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=INPUTS, help="in all (default: %(default)s)")
    parser.add_argument("--reader", choices=names, action="append", help="these only")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--input", type=int, metavar="N", help="only input N of --reader, traced")
    parser.add_argument("--coverage", action="store_true", help="guided by atheris")
    return parser


def _fuzz(name: str, seeds: Sequence[bytes], inputs: int, options: argparse.Namespace) -> Tally:
    from benchmarks.fuzz_inputs import make_input
    from benchmarks.fuzz_readers import READERS

    reader, tally = READERS[name], Tally()
    numbers = range(inputs) if options.input is None else [options.input]
    _forget_peak()
    start_s = time.process_time()
    for number in numbers:
        random = Random(f"{options.seed} {name} {number}")
        data = make_input(reader, seeds, random)
        begin_s = time.process_time()
        try:
            with _limited():
                reader.read(data)
            tally.outcomes["read"] += 1
        except TrioSimError as error:
            tally.outcomes[type(error).__name__] += 1
        except Exception as error:
            tally.outcomes[f"FAULT {type(error).__name__}"] += 1
            _note(tally, error, number, traced=options.input is not None)
        took_s = time.process_time() - begin_s
        if took_s > tally.slowest_s:
            tally.slowest_s, tally.slowest = took_s, number
        tally.inputs += 1
    tally.seconds = time.process_time() - start_s
    print(tally.line(name), flush=True)
    for place, found in tally.faults.items():
        print(f"    FAULT {place}: inputs {', '.join(map(str, found[:SHOWN]))} ({len(found)})")
    return tally


def _note(tally: Tally, error: Exception, number: int, *, traced: bool) -> None:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if Path(f.filename).is_relative_to(ROOT) and "fuzz" not in f.filename]
    last = (ours or frames)[-1]
    said = " ".join(str(error).split())[:100].encode("ascii", "backslashreplace").decode()
    place = f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno} ({said})"
    known = next((key for key in tally.faults if key.split(" (")[0] == place.split(" (")[0]), place)
    tally.faults.setdefault(known, []).append(number)
    if traced:
        traceback.print_exception(error)


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    """Raise `TooSlow` in what takes too long."""

    def stop(*_: object) -> None:
        raise TooSlow(f"more than {LONGEST_S} s")

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, LONGEST_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _forget_peak() -> None:
    """Begin a new peak of this process, where the system can."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _bound_memory() -> None:
    """More than this is a `MemoryError`, and so a fault. The parts of Linux and macOS have it."""
    status = Path("/proc/self/status")
    if status.exists():
        now = next(line for line in status.read_text().splitlines() if line.startswith("VmSize:"))
        resource.setrlimit(resource.RLIMIT_AS, (int(now.split()[1]) * 1024 + MOST_BYTES,) * 2)


def _cover(names: Sequence[str], options: argparse.Namespace) -> int:
    """Each reader in a process of its own, because libFuzzer ends the one it runs in."""
    import subprocess

    command = [sys.executable, "-m", "benchmarks.fuzz_coverage"]
    each = str(-(-options.inputs // len(names)))
    status = 0
    for name in names:
        status |= subprocess.run([*command, name, each, str(options.seed)], check=False).returncode
    return int(status != 0)


if __name__ == "__main__":
    raise SystemExit(main())
