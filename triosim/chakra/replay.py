"""Chakra traces of all ranks, run on a network.

Computations keep the time that was recorded; collectives, sends and receives take what the network
makes of their sizes, and wait for each other as the nodes say. Each rank has one in-order stream
for the CPU, one for computation and one for each stream of its transfers, in an order that the
dependencies allow. Copies from and to remote memory keep their recorded time. Not taken over:
memory in use, floating-point operations, the recorded start times.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from triosim.analysis.checks import COMMON, checked
from triosim.chakra.read import ChakraNode, Workload, read_chakra
from triosim.chakra.schema import Kind
from triosim.engine.executor import execute
from triosim.engine.program import LAUNCH_PHASE, Program, RankClass
from triosim.errors import TraceFormatError
from triosim.legal import number
from triosim.network.cluster import Cluster
from triosim.network.collectives.planned import AUTO
from triosim.network.links import Load
from triosim.network.topology.base import LinkSpec, Topology
from triosim.network.topology.describe import Source, is_generic, natural_topology, topology_of
from triosim.result import Result

GB = 1e9
# What a node without a `stream` runs on.
_STREAMS = {
    Kind.COMM_COLL: "collective",
    Kind.COMM_SEND: "send",
    Kind.COMM_RECV: "receive",
    Kind.MEM_LOAD: "fetch",
    Kind.MEM_STORE: "store",
}
_PHASES = {Kind.MEM_LOAD: "fetch", Kind.MEM_STORE: "store"}
Unit = tuple[tuple[int, ChakraNode], ...]
"""What starts at once: nodes with their ranks."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplayScenario:
    """What was replayed, on what; `gpus` follows from the traces."""

    folder: str
    gpus: int
    topology: Source | None = None
    algorithm: str = AUTO
    link_gb_per_s: float = 100.0
    latency_us: float = 0.0
    protocol: bool = True

    def __post_init__(self) -> None:
        number("link_gb_per_s", self.link_gb_per_s, 1e-6, 1e9)
        number("latency_us", self.latency_us, 0, 1e9)

    @property
    def topology_name(self) -> str | None:
        return self.topology if isinstance(self.topology, str) else None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        if self.topology is not None and not isinstance(self.topology, str):
            values["topology"] = str(self.topology)
        return values


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ReplayResult(Result):
    """One replayed step. `workload` has the nodes; memory and samples are not known."""

    scenario: ReplayScenario  # type: ignore[assignment]
    workload: Workload

    @property
    def capacity_bytes(self) -> int:
        return 0

    @property
    def samples_per_s(self) -> float | None:
        return None

    def to_dict(self) -> dict[str, Any]:
        """Plain values; memory, samples and speed-up, which no trace tells, are left out."""
        unknown = {"speedup", "samples_per_s", "peak_memory_bytes", "fetched_bytes"}
        values = super().to_dict()
        values["per_rank"] = [
            {name: v for name, v in entry.items() if name not in unknown}
            for entry in values["per_rank"]
        ]
        return {name: value for name, value in values.items() if name not in unknown}


def replay(
    folder: str | Path,
    *,
    topology: Source | None = None,
    algorithm: str = AUTO,
    link_gb_per_s: float = 100.0,
    latency_us: float = 0.0,
    protocol: bool = True,
) -> ReplayResult:
    """Replay a folder of Chakra traces; settings as in `triosim.collective`.

    Without a topology the links are those that the algorithm is made for (a full switch for
    "auto"), each of `link_gb_per_s` in each direction. Raises `TraceFormatError`, `ConfigError` or
    `Infeasible`.
    """
    workload = read_chakra(folder)
    scenario = ReplayScenario(
        folder=str(folder), gpus=len(workload.ranks), topology=topology, algorithm=algorithm,
        link_gb_per_s=link_gb_per_s, latency_us=latency_us, protocol=protocol,
    )  # fmt: skip
    cluster = Cluster(_topology(scenario), algorithm=algorithm, protocol=protocol)
    program = _program(workload, cluster)
    links, program.loads = cluster.settle(program.loads, 0)
    program.links += links
    result = ReplayResult(
        scenario=scenario,
        workload=workload,
        tasks=execute(program),
        single_gpu_s=None,
        samples=0,
        warnings=workload.notes,
        assumptions=(
            "Computations take the time that was recorded; transfers what the network makes of "
            "their sizes.",
        ),
    )
    return result.noting(checks=checked(*(rule(result) for rule in COMMON)), warnings=())


def _topology(scenario: ReplayScenario) -> Topology:
    link = LinkSpec(bytes_per_s=scenario.link_gb_per_s * GB, latency_s=scenario.latency_us * 1e-6)
    if scenario.topology is None:
        return natural_topology(scenario.algorithm, scenario.gpus, link)
    own = not isinstance(scenario.topology, str) or not is_generic(scenario.topology)
    return topology_of(scenario.topology, scenario.gpus, None if own else link)


def _program(workload: Workload, cluster: Cluster) -> Program:
    """Units in an order that their dependencies allow; of those that could start the least ids."""
    program = Program()
    for rank in range(len(workload.ranks)):
        program.add_class(RankClass(members=(rank,)))
    units = _units(workload)
    unit_of = {(rank, node.id): u for u, unit in enumerate(units) for rank, node in unit}
    missing = [0] * len(units)
    followers: dict[int, list[int]] = defaultdict(list)
    for u, unit in enumerate(units):
        needed = {unit_of[rank, i] for rank, node in unit for i in node.before}
        missing[u] = len(needed)
        for other in needed:
            followers[other].append(u)
    task_of: dict[tuple[int, int], int] = {}
    ready = [(unit[0][1].id, u) for u, unit in enumerate(units) if not missing[u]]
    heapq.heapify(ready)
    written = 0
    while ready:
        _, u = heapq.heappop(ready)
        written += 1
        _write(program, cluster, workload, units[u], task_of)
        for other in followers[u]:
            missing[other] -= 1
            if not missing[other]:
                heapq.heappush(ready, (units[other][0][1].id, other))
    if written < len(units):
        rank, node = next(units[u][0] for u in range(len(units)) if missing[u])
        raise TraceFormatError(
            f"{workload.name}: nodes wait for each other in a circle, as node {node.id} "
            f"({node.name[:80]}) of rank {rank} does."
        )
    return program


def _units(workload: Workload) -> list[Unit]:
    """Transfers joined: a group's first collective on one rank with its first on the others."""
    units: list[Unit] = []
    joined: dict[tuple[object, ...], list[tuple[int, ChakraNode]]] = defaultdict(list)
    for rank, nodes in enumerate(workload.ranks):
        times: dict[tuple[object, ...], int] = defaultdict(int)
        for node in nodes:
            if node.kind is Kind.COMM_COLL:
                key: tuple[object, ...] = (node.group,)
            elif node.kind in (Kind.COMM_SEND, Kind.COMM_RECV):
                key = (node.source, node.target, node.tag, node.kind)
            else:
                units.append(((rank, node),))
                continue
            joined[(*key[:3], times[key])].append((rank, node))
            times[key] += 1
    for members in joined.values():
        _check(workload, members)
        units.append(tuple(members))
    return units


def _check(workload: Workload, members: Sequence[tuple[int, ChakraNode]]) -> None:
    """Both ends of a send, or every rank of a group, with the same operation and size."""
    rank, first = members[0]
    here = f"{workload.name}: node {first.id} ({first.name[:80]}) of rank {rank}"
    ranks = {r for r, _ in members}
    if first.kind is Kind.COMM_COLL:
        absent = set(workload.groups[first.group]) - ranks
        if absent:
            raise TraceFormatError(
                f"{here}: rank {min(absent)} of its group never joins this {first.operation}."
            )
    elif ranks != {first.source, first.target} or len(members) != 2:
        missing = "receive" if first.kind is Kind.COMM_SEND else "send"
        raise TraceFormatError(
            f"{here}: no {missing} from rank {first.source} to rank {first.target} with tag "
            f"{first.tag} belongs to it."
        )
    for other, node in members[1:]:
        if (node.operation, node.size_bytes) != (first.operation, first.size_bytes):
            raise TraceFormatError(
                f"{here}: {first.operation or 'send'} of {first.size_bytes:,.0f} bytes meets "
                f"{node.operation or 'receive'} of {node.size_bytes:,.0f} on rank {other}."
            )


def _write(
    program: Program,
    cluster: Cluster,
    workload: Workload,
    unit: Unit,
    task_of: dict[tuple[int, int], int],
) -> None:
    def waits(rank: int, node: ChakraNode) -> list[int]:
        return [task_of[rank, i] for i in node.before]

    rank, node = unit[0]
    if node.kind in _PHASES:
        load = Load(bytes_by_link=(), latency_s=node.seconds, sent_bytes=0.0)
        ends = [(rank, _stream(node), _PHASES[node.kind])]
        tasks = program.communicate(
            ends, node.name, "remote memory", node.size_bytes, load, [waits(rank, node)]
        )
    elif node.kind is Kind.COMM_COLL:
        members = np.array([workload.groups[node.group]], dtype=np.int64)
        load = cluster.collective(node.operation, members, node.size_bytes)
        tasks = program.communicate(
            [(r, _stream(n), node.operation) for r, n in unit],
            node.name,
            f"group {node.group}" if node.group else "all ranks",
            node.size_bytes,
            load,
            [waits(r, n) for r, n in unit],
        )
    elif node.kind in (Kind.COMM_SEND, Kind.COMM_RECV):
        unit = tuple(sorted(unit, key=lambda member: member[1].kind is not Kind.COMM_SEND))
        tasks = program.communicate(
            [(r, _stream(n), "send" if n.kind is Kind.COMM_SEND else "recv") for r, n in unit],
            node.name,
            "sends",
            node.size_bytes,
            cluster.send(node.source, node.target, node.size_bytes),
            [waits(r, n) for r, n in unit],
        )
    elif node.on_cpu or node.kind is not Kind.COMP:
        seconds = node.seconds if node.kind is Kind.COMP else 0.0
        tasks = [program.launch(rank, node.name, seconds, waits(rank, node))]
    else:
        tasks = [program.compute(rank, node.name, "forward", node.seconds, waits(rank, node))]
        program.add_computing(rank, "measured", node.seconds)
    for (r, n), task in zip(unit, tasks, strict=True):
        task_of[r, n.id] = task


def _stream(node: ChakraNode) -> str:
    """Never that of computations or of the CPU, where a transfer would stop them."""
    named = node.stream not in ("", "compute", LAUNCH_PHASE)
    return node.stream if named else _STREAMS[node.kind]
