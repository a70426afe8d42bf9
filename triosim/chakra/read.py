"""A folder of Chakra traces: the nodes of every rank, checked, and who is in which group."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from triosim.chakra.schema import COLLECTIVES, Kind, unpacked, values_of
from triosim.chakra.write import GROUPS_FILE
from triosim.errors import TraceFormatError

MAX_RANKS = 4096
MAX_BYTES = 2**30  # of one file, unpacked
_FILE = re.compile(r"(?P<name>.+)\.(?P<rank>\d{1,7})\.et(?:\.gz)?$")
_OPERATIONS = {number: name for name, number in COLLECTIVES.items()}
_KINDS = {kind.value: kind for kind in Kind}
BARRIER = 9


@dataclass(frozen=True, kw_only=True, slots=True)
class ChakraNode:
    """One node of a rank. `before` are the nodes that it waits for.

    `operation`, `group` and `size_bytes` are a collective's; `source`, `target` and `tag` those of
    a send or a receive.
    """

    id: int
    name: str
    kind: Kind
    seconds: float
    before: tuple[int, ...]
    on_cpu: bool
    stream: str
    size_bytes: float = 0.0
    operation: str = ""
    group: str = ""
    source: int = -1
    target: int = -1
    tag: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Workload:
    """The nodes of rank r are `ranks[r]`; `notes` say what could not be taken over."""

    name: str
    ranks: tuple[tuple[ChakraNode, ...], ...]
    groups: Mapping[str, tuple[int, ...]]
    notes: tuple[str, ...]


def read_chakra(folder: str | Path) -> Workload:
    """Read NAME.0.et, NAME.1.et, ... and comm_groups.json, where there is one.

    Without that file a process group has all ranks that name it. Raises `TraceFormatError`.
    """
    name, files = _files(Path(folder))
    notes: dict[str, int] = {}
    ranks = tuple(_rank(path, rank, notes) for rank, path in enumerate(files))
    return Workload(
        name=name,
        ranks=ranks,
        groups=_groups(Path(folder), ranks),
        notes=tuple(f"{text}: {count:,}." for text, count in notes.items()),
    )


def _files(folder: Path) -> tuple[str, Sequence[Path]]:
    if not folder.is_dir():
        raise TraceFormatError(f"{folder}: no such folder.")
    found: dict[int, Path] = {}
    names: set[str] = set()
    for path in sorted(folder.iterdir()):
        match = _FILE.match(path.name)
        if match:
            names.add(match["name"])
            found.setdefault(int(match["rank"]), path)
    if not found:
        raise TraceFormatError(f"{folder}: no Chakra traces in it, which are called NAME.RANK.et.")
    if len(names) > 1:
        raise TraceFormatError(f"{folder}: traces of several runs, {' and '.join(sorted(names))}.")
    if len(found) > MAX_RANKS:
        raise TraceFormatError(f"{folder}: {len(found):,} ranks; at most {MAX_RANKS:,} are read.")
    missing = next((r for r in range(len(found)) if r not in found), None)
    if missing is not None:
        raise TraceFormatError(f"{folder}: the trace of rank {missing} is missing.")
    return names.pop(), [found[rank] for rank in range(len(found))]


def _data(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        with gzip.open(path) if packed else path.open("rb") as file:
            data = bytearray()  # in parts: one read of so many bytes would take memory for all
            while len(data) <= MAX_BYTES and (part := file.read(2**20)):
                data += part
    except (OSError, EOFError, zlib.error) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise TraceFormatError(f"{path.name}: {said}.") from None
    if len(data) > MAX_BYTES:
        raise TraceFormatError(f"{path.name}: more than {MAX_BYTES:,} bytes.")
    return bytes(data)


def _rank(path: Path, rank: int, notes: dict[str, int]) -> tuple[ChakraNode, ...]:
    _, nodes = unpacked(path.name, _data(path))
    known = {node.id for node in nodes}
    if len(known) < len(nodes):
        raise TraceFormatError(f"{path.name}: {len(nodes) - len(known)} nodes have ids of others.")
    return tuple(_node(path.name, rank, node, known, notes) for node in nodes)


def _node(file: str, rank: int, node: Any, known: set[int], notes: dict[str, int]) -> ChakraNode:
    def note(text: str, count: int = 1) -> None:
        notes[text] = notes.get(text, 0) + count

    def fail(problem: str) -> TraceFormatError:
        return TraceFormatError(f"{file}: node {node.id} ({node.name[:80]}): {problem}.")

    values = values_of(node.attr)
    wanted = {*node.ctrl_deps, *node.data_deps}
    before = tuple(sorted(wanted & known - {node.id}))
    if len(before) < len(wanted):
        note("dependencies on nodes that are not there were left out", len(wanted) - len(before))
    seconds = values.get("duration_s", node.duration_micros * 1e-6)
    if not isinstance(seconds, float) or not 0 <= seconds < 1e9:
        raise fail(f"its duration is {seconds}")
    kind = _KINDS.get(node.type, Kind.INVALID)
    more: dict[str, Any] = {}
    if kind is Kind.COMM_COLL:
        number = values.get("comm_type")
        if number not in _OPERATIONS and number != BARRIER:
            raise fail(
                f"its collective, comm_type {number}, is none of {', '.join(_OPERATIONS.values())}"
            )
        more = {
            "operation": "all-reduce" if number == BARRIER else _OPERATIONS[number],
            "group": str(values.get("pg_name", "")),
        }
        if number == BARRIER:
            note("barriers are all-reduces of nothing")
    elif kind in (Kind.COMM_SEND, Kind.COMM_RECV):
        source = values.get("comm_src", rank if kind is Kind.COMM_SEND else None)
        target = values.get("comm_dst", rank if kind is Kind.COMM_RECV else None)
        if not isinstance(source, int) or not isinstance(target, int):
            raise fail("it does not say with whom: comm_src and comm_dst")
        more = {"source": source, "target": target, "tag": values.get("comm_tag", 0)}
    size = values.get("comm_size", 0) if more else values.get("tensor_size", 0)
    if not isinstance(size, int | float) or not 0 <= size < 1e18:
        raise fail(f"its size is {size}")
    return ChakraNode(
        id=node.id, name=node.name, kind=kind, seconds=seconds, before=before,
        on_cpu=values.get("is_cpu_op") is True, stream=str(values.get("stream", "")),
        size_bytes=float(size), **more,
    )  # fmt: skip


def _groups(folder: Path, ranks: Sequence[Sequence[ChakraNode]]) -> Mapping[str, tuple[int, ...]]:
    users: dict[str, list[int]] = {}
    for rank, nodes in enumerate(ranks):
        for name in {node.group for node in nodes if node.kind is Kind.COMM_COLL}:
            users.setdefault(name, []).append(rank)
    path = folder / GROUPS_FILE
    told = _told(path, len(ranks)) if path.exists() else {}
    groups = {name: told.get(name, tuple(own)) for name, own in users.items()}
    for name, own in users.items():
        strangers = set(own) - set(groups[name])
        if strangers:
            raise TraceFormatError(
                f"{path.name}: rank {min(strangers)} uses process group {name!r} and is not in it."
            )
    return groups


def _told(path: Path, ranks: int) -> dict[str, tuple[int, ...]]:
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
        told = {str(name): tuple(map(int, members)) for name, members in table.items()}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError, OverflowError):
        raise TraceFormatError(
            f'{path.name}: must be names of process groups with their ranks, as {{"0": [0, 1]}}.'
        ) from None
    for name, members in told.items():
        if len(set(members)) < len(members) or not all(0 <= r < ranks for r in members):
            raise TraceFormatError(
                f"{path.name}: group {name!r} must have different ranks from 0 to {ranks - 1}."
            )
    return told
