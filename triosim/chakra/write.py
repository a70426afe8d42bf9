"""A result as Chakra traces: one file a rank, and the members of its process groups.

A task of the timeline is a node with the time it took. What a task waits for is a data dependency,
what its stream ran before it a control dependency. Besides Chakra's own attributes a node has
`duration_s` (Chakra's own durations are whole microseconds) and `stream`. `comm_size` is the whole
array of a collective in bytes.

What is left out: links and memory; floating-point operations (`num_ops`), which the timeline does
not know; that sibling groups of a mesh start a transfer together (in a replay each starts when its
own ranks are ready); and what is inside a composite task of a training step, which is one COMP_NODE
with the communication inside it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from triosim.chakra.schema import COLLECTIVES, VERSION, Kind, attributes, messages, packed
from triosim.engine.program import LAUNCH_PHASE
from triosim.errors import ConfigError
from triosim.export.files import write_folder
from triosim.network.cluster import Carried
from triosim.result import Result

GROUPS_FILE = "comm_groups.json"
NAME = "triosim"
MAX_NODES = 2_000_000  # over all files
_MEMORY = {"fetch": Kind.MEM_LOAD, "store": Kind.MEM_STORE}
_PAIRS = {"send": Kind.COMM_SEND, "recv": Kind.COMM_RECV}


def write_chakra(result: Result, folder: str | Path) -> list[Path]:
    """Write every rank's file into a new or empty folder; returns the paths.

    Raises `ConfigError` on field "chakra" where all ranks together have more than `MAX_NODES`.
    """
    return write_folder("chakra", folder, chakra_files(result))


def chakra_files(result: Result) -> Iterator[tuple[str, bytes | str]]:
    """Names and contents: NAME.RANK.et for each rank, and the groups' file."""
    writer = _Writer(result)
    for c, group in enumerate(result.classes):
        for rank in group.members:
            yield f"{NAME}.{rank}.et", writer.file(rank, c)
    named = {name: list(members) for members, name in writer.names.items()}
    yield GROUPS_FILE, json.dumps(named, indent=2) + "\n"


class _Writer:
    """Writes ranks; `names` are those of the process groups, by members."""

    def __init__(self, result: Result) -> None:
        tasks = result.tasks
        count = sum(len(k.members) * len(tasks.tasks(c)) for c, k in enumerate(result.classes))
        if count > MAX_NODES:
            raise ConfigError(
                "chakra", count, f"so many nodes; at most {MAX_NODES:,} over all ranks are written"
            )
        self._result = result
        self._timeline = tasks
        self._program = tasks.program
        self._everyone = tuple(range(result.scenario.gpus))
        starts = [task for task in tasks.log.tolist() if task >= 0]
        self._order: list[list[int]] = [[] for _ in result.classes]
        for task in starts:
            self._order[tasks.class_list[task]].append(task)
        self.names: dict[tuple[int, ...], str] = {}

    def file(self, rank: int, c: int) -> bytes:
        """The trace of a rank of a class."""
        metadata = messages().metadata(
            version=VERSION,
            attr=attributes(
                producer=("string", "triosim"),
                rank=("int64", rank),
                world_size=("int64", self._result.scenario.gpus),
            ),
        )
        return packed(metadata, self._nodes(rank, self._order[c]))

    def _nodes(self, rank: int, tasks: Sequence[int]) -> Iterator[Any]:
        number = {task: i for i, task in enumerate(tasks, 1)}
        start_s, end_s = self._timeline.start_s, self._timeline.end_s
        previous = self._timeline.columns.previous
        for task, i in number.items():
            before = int(previous[task])
            seconds = float(end_s[task] - start_s[task])
            kind, more = self._kind(rank, task)
            stream = self._program.streams[self._program.stream[task]].name
            yield messages().node(
                id=i,
                name=self._program.name[task],
                type=kind,
                ctrl_deps=[number[before]] if before >= 0 else [],
                data_deps=sorted({number[t] for t in self._program.waits[task]}),
                start_time_micros=round(float(start_s[task]) * 1e6),
                duration_micros=round(seconds * 1e6),
                attr=attributes(
                    is_cpu_op=("bool", self._program.phase[task] == LAUNCH_PHASE),
                    duration_s=("double", seconds),
                    stream=("string", stream),
                    **more,
                ),
            )

    def _kind(self, rank: int, task: int) -> tuple[Kind, dict[str, tuple[str, object]]]:
        """The type of a node, and the attributes that go with it."""
        phase, transfer = self._program.phase[task], self._program.transfer[task]
        if transfer < 0:
            return Kind.COMP, {}
        size = round(self._program.bytes[task])
        if phase in _MEMORY:
            return _MEMORY[phase], {"tensor_size": ("uint64", size)}
        members = self._members(rank, transfer)
        if phase in _PAIRS:
            source, target = members
            return _PAIRS[phase], {
                "comm_size": ("int64", size),
                "comm_src": ("int32", source),
                "comm_dst": ("int32", target),
                "comm_tag": ("int32", transfer),
            }
        name = self.names.setdefault(members, str(len(self.names)))
        return Kind.COMM_COLL, {
            "comm_type": ("int64", COLLECTIVES[phase]),
            "comm_size": ("int64", size),
            "pg_name": ("string", name),
        }

    def _members(self, rank: int, transfer: int) -> tuple[int, ...]:
        """Who takes part in a transfer with a rank; of a send source and target."""
        load = self._program.loads[transfer]
        if isinstance(load, Carried):
            [row] = (r for r in load.groups.tolist() if rank in r)
            return tuple(row)
        ends = self._program.ends[transfer]
        if self._program.phase[ends[0]] == "send":
            return tuple(self._result.classes[self._timeline.class_list[t]].rank for t in ends)
        return self._everyone
