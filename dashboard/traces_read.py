"""What the files of an upload are, and the trace that they make.

Runs in a worker process, so it must not know Streamlit. Kinds are found by content: a name decides
nothing, and no path has one in it.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dashboard.plain import short
from tracer.convert import Report, convert, read_file, trace_name
from tracer.convert.source import GZIP, Source
from triosim import read_trace, write_trace
from triosim.errors import TraceFormatError
from triosim.trace.digest import FILES as TRACE_FILES

MAX_FILES = 6
MAX_UNPACKED = 128 * 2**20  # bytes of one file
MAX_META = 2**20  # characters
KINDS: Mapping[str, str] = {
    "profiler": "a profiler file of PyTorch",
    "graph": "an execution trace of PyTorch",
    "trace.csv": "the operators of a converted trace",
    "tensor.csv": "the tensors of a converted trace",
    "meta.json": "what a recorder noted (batch size, GPU)",
}
# What only a meta.json of this project would say.
META_KEYS = frozenset({"batch_size", "source", "gpu", "dtype", "step_time_s", "model", "command"})
KEYS = {'"traceEvents"': "profiler", '"nodes"': "graph"}
OVERLAP = 16  # characters; a key may lie across two chunks

Files = Sequence[tuple[str, bytes]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """The files of a trace, what was uploaded, what is missing, and how it was converted."""

    label: str
    files: Mapping[str, bytes]
    kinds: Sequence[tuple[str, str]]
    missing: str
    report: Report | None


def read_upload(
    uploaded: Files, name: str, step: int | None = None, max_bytes: int = MAX_UNPACKED
) -> Reading:
    """The trace of some uploaded files, called `name` in its meta.json.

    Raises `TraceFormatError` for files that are none, or do not belong together.
    """
    if len(uploaded) > MAX_FILES:
        raise TraceFormatError(f"{len(uploaded)} files: a trace has at most three.")
    found: dict[str, tuple[str, bytes]] = {}
    for given, data in uploaded:
        label = short(given)
        kind = kind_of_file(label, data, max_bytes)
        if kind in found:
            raise TraceFormatError(
                f"{found[kind][0]} and {label}: both are {KINDS[kind]}; give one of each kind."
            )
        found[kind] = label, data
    _check_company(found)
    kinds = [(label, KINDS[kind]) for kind, (label, _) in found.items()]
    if "trace.csv" in found:
        files = _read_tables(found, max_bytes)
        report, label = None, _label_of(files)
    else:
        files, report = _convert(found, name, step, max_bytes)
        label = trace_name(found["profiler"][0])
    return Reading(
        label=short(label, 32), files=files, kinds=kinds, missing=_missing(found), report=report
    )


def _label_of(files: Mapping[str, bytes]) -> str:
    """What a trace calls itself."""
    meta = json.loads(files.get("meta.json", b"{}"))
    return str(meta.get("name") or "uploaded trace")


def kind_of_file(name: str, data: bytes, max_bytes: int = MAX_UNPACKED) -> str:
    """A key of `KINDS`, by what the file holds."""
    head, before = "", ""
    size = 0
    for chunk in Source(name=name, data=data, max_bytes=max_bytes).text():
        if len(head) < MAX_META:
            head += chunk
        size += len(chunk)
        start = head.lstrip("\ufeff \t\r\n")[:1]
        if start == "[":
            return "profiler"
        if start and start != "{":
            return _kind_of_table(name, head)
        first = _first_key(before + chunk)
        if first:
            return first
        before = chunk[-OVERLAP:]
    if size <= MAX_META and _is_meta(head):
        return "meta.json"
    read_file(data, name=name, max_bytes=max_bytes)  # says what is wrong with it
    raise TraceFormatError(f"{name}: neither a profiler file nor an execution trace.")


def _first_key(text: str) -> str | None:
    """The kind whose key stands first."""
    places = {text.find(key): kind for key, kind in KEYS.items() if key in text}
    return places[min(places)] if places else None


def _kind_of_table(name: str, text: str) -> str:
    lines = text.lstrip("\ufeff").splitlines()
    try:
        columns = {c.strip() for c in next(csv.reader(lines[:1]), [])}
    except csv.Error:
        columns = set()
    if {"OperatorName", "stage"} & columns or "OperatorID" in columns:
        return "trace.csv"
    if {"TensorStorgeid", "TensorEachByte", "TensorID"} & columns:
        return "tensor.csv"
    raise TraceFormatError(
        f"{name}: neither JSON of PyTorch's profiler nor a trace.csv or tensor.csv; its first line "
        f"is {short(lines[0] if lines else '')!r}."
    )


def _is_meta(text: str) -> bool:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(values, dict) and not META_KEYS.isdisjoint(values)


def _check_company(found: Mapping[str, tuple[str, bytes]]) -> None:
    """Files that do not make a trace together."""
    labels = {kind: label for kind, (label, _) in found.items()}
    tables = [kind for kind in ("trace.csv", "tensor.csv") if kind in labels]
    recordings = [kind for kind in ("profiler", "graph") if kind in labels]
    if tables and recordings:
        one, other = labels[tables[0]], labels[recordings[0]]
        raise TraceFormatError(
            f"{one} is {KINDS[tables[0]]} and {other} {KINDS[recordings[0]]}: give either a "
            "converted trace or a recording."
        )
    if len(tables) == 1:
        absent = "tensor.csv" if tables[0] == "trace.csv" else "trace.csv"
        raise TraceFormatError(
            f"{labels[tables[0]]}: {KINDS[tables[0]]}; {absent}, {KINDS[absent]}, is missing: add "
            "it."
        )
    if recordings == ["graph"]:
        raise TraceFormatError(
            f"{labels['graph']}: {KINDS['graph']}; it has no times, and the profiler file of the "
            "same recording is missing: add it."
        )
    if list(labels) == ["meta.json"]:
        raise TraceFormatError(
            f"{labels['meta.json']}: {KINDS['meta.json']}; the recording or the trace is missing: "
            "add it."
        )


def _missing(found: Mapping[str, object]) -> str:
    """What would say more; "" where nothing is missing."""
    if "profiler" in found and "graph" not in found:
        return (
            "Without its execution trace there are no tensors: sizes come from Input Dims, where "
            "they were recorded. Add graph_*.json for tensors, parameters and memory."
        )
    if "meta.json" not in found:
        return "Without meta.json, batch size and GPU are what the files show."
    return ""


def _read_tables(found: Mapping[str, tuple[str, bytes]], max_bytes: int) -> dict[str, bytes]:
    """The files as they came, unpacked, once they have been read as a trace."""
    files = {
        kind: _unpacked(label, data, max_bytes)
        for kind, (label, data) in found.items()
        if kind in TRACE_FILES
    }
    with TemporaryDirectory(prefix="triosim-read-") as folder:
        for kind, data in files.items():
            Path(folder, kind).write_bytes(data)
        read_trace(folder)
    return files


def _unpacked(name: str, data: bytes, max_bytes: int) -> bytes:
    return _text(name, data, max_bytes).encode() if data.startswith(GZIP) else data


def _text(name: str, data: bytes, max_bytes: int) -> str:
    return "".join(Source(name=name, data=data, max_bytes=max_bytes).text())


def _convert(
    found: Mapping[str, tuple[str, bytes]], name: str, step: int | None, max_bytes: int
) -> tuple[dict[str, bytes], Report]:
    recordings = [found[kind][1] for kind in ("profiler", "graph") if kind in found]
    meta: dict[str, Any] = {}
    if "meta.json" in found:
        label, data = found["meta.json"]
        meta = json.loads(_text(label, data, max_bytes))
    trace, report = convert(*recordings, step=step, name=name, meta=meta, max_bytes=max_bytes)
    with TemporaryDirectory(prefix="triosim-read-") as folder:
        write_trace(trace, folder)
        read_trace(folder)
        return dict(_contents(folder)), report


def _contents(folder: str) -> Iterator[tuple[str, bytes]]:
    for name in TRACE_FILES:
        yield name, Path(folder, name).read_bytes()
