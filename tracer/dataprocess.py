"""Convert recordings of PyTorch into traces to simulate.

    python tracer/dataprocess.py                      every recording in data, or in tracer/data
    python tracer/dataprocess.py DIR                  every recording in a folder
    python tracer/dataprocess.py PROFILER [GRAPH]     one; without GRAPH only sizes are known

Each trace goes to OUTPUT/NAME (default: middledata/trace/NAME in the folder of the recordings),
with a report on the screen. Exit status 1 where a file cannot be read or most of its time belongs
to no operator, 2 where an argument is wrong.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a script: the packages lie beside this file's folder
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from tracer.convert import TP_OPS, convert, save, trace_name
from tracer.convert.pairs import Recording, find_meta, find_recordings
from triosim.errors import TrioSimError

# Where the collector writes: below the folder it was started in.
FOLDERS = (Path("data"), Path(__file__).resolve().parent / "data")
OUTPUT = Path("middledata") / "trace"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    if len(options.files) > 2:
        parser.error("give a folder, or a profiler file and its execution trace")
    try:
        folder, recordings = _recordings(options.files)
    except TrioSimError as error:
        return _fail(error)
    status = 0
    for recording in recordings:
        output = (options.output or folder / OUTPUT) / recording.name
        try:
            _convert(recording, output, options.step, options.tp_ops)
        except TrioSimError as error:
            status = _fail(error)
        except OSError as error:
            print(f"dataprocess: {output}: {error.strerror or error}.", file=sys.stderr)
            status = 1
    return status


def _fail(error: TrioSimError) -> int:
    print(f"dataprocess: {error}", file=sys.stderr)
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dataprocess.py",
        description="Convert recordings of PyTorch into traces to simulate.",
    )
    parser.add_argument(
        "files",
        nargs="*",
        type=Path,
        metavar="PROFILER GRAPH | DIR",
        help="a profiler file and its execution trace, or a folder of them "
        "(default: data, else tracer/data)",
    )
    parser.add_argument(
        "--output", type=Path, metavar="DIR",
        help="the folder for the traces (default: middledata/trace beside the files)",
    )  # fmt: skip
    parser.add_argument(
        "--step", type=int, metavar="N",
        help="the step to take from a file that holds several (default: the last complete one)",
    )  # fmt: skip
    parser.add_argument(
        "--tp-ops", type=_names, default=TP_OPS, metavar="NAME,NAME",
        help="beginnings of the names of the operators that tensor parallelism splits "
        f"(default: {','.join(TP_OPS)})",
    )  # fmt: skip
    return parser


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _recordings(files: Sequence[Path]) -> tuple[Path, list[Recording]]:
    """The recordings, and the folder that they are in."""
    if not files or (len(files) == 1 and files[0].is_dir()):
        folder = files[0] if files else next((f for f in FOLDERS if f.is_dir()), FOLDERS[0])
        return folder, find_recordings(folder)
    profiler = files[0]
    name = trace_name(profiler.name)
    graph = files[1] if len(files) == 2 else None
    one = Recording(name=name, profiler=profiler, graph=graph, meta=find_meta(profiler, name))
    return profiler.parent, [one]


def _convert(recording: Recording, folder: Path, step: int | None, tp_ops: Sequence[str]) -> None:
    trace, report = convert(
        recording.profiler,
        recording.graph,
        step=step,
        tp_ops=tp_ops,
        name=recording.name,
        meta=recording.meta,
    )
    save(trace, report, folder)
    for line in report.lines():
        print(line)
    print(f"written: {folder}\n")


if __name__ == "__main__":
    raise SystemExit(main())
