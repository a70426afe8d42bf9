"""What every link of a result's topology carried.

The simulation keeps links that are loaded alike as one; here each has its own figure again.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from triosim.engine.program import Program
from triosim.network.closed_forms import bus_factor
from triosim.network.cluster import Carried
from triosim.network.collectives.planned import AUTO, Planner
from triosim.network.topology.base import Floats, Ints, LinkSpec, Topology, one_group
from triosim.network.topology.describe import natural_topology, topology_of
from triosim.network.topology.faults import degrade
from triosim.result import Result
from triosim.scenario import Scenario

GB = 1e9
RING = "ring"


@dataclass(frozen=True, kw_only=True, eq=False)
class LinkLoads:
    """`carried_bytes[i]` passed link i of the topology in the step.

    `why` says what decided on the algorithm of the largest all-reduce; empty where it was chosen.
    """

    topology: Topology
    carried_bytes: Floats
    why: str


def whole_network(scenario: Scenario) -> Topology:
    """The topology of a scenario that is on one, before its faults."""
    bytes_per_s = scenario.ptp_bandwidth_gb_per_s * GB
    algorithm = scenario.algorithm or RING
    rings = scenario.topology is None and algorithm == RING and scenario.case != 4
    if rings and scenario.ptp_convention == "algbw" and scenario.gpus > 1:
        bytes_per_s *= bus_factor(scenario.gpus)
    link = LinkSpec(bytes_per_s=bytes_per_s, latency_s=scenario.latency_us * 1e-6)
    if scenario.topology is not None:
        return topology_of(scenario.topology, scenario.gpus, link)
    if scenario.case == 4:
        return topology_of(f"mesh:{scenario.gpus}", scenario.gpus, link)
    return natural_topology(algorithm, scenario.gpus, link)


def network_of(scenario: Scenario) -> Topology:
    """The topology of a scenario that is on one."""
    return degrade(whole_network(scenario), scenario.faults)


@lru_cache(maxsize=8)
def link_loads(result: Result) -> LinkLoads:
    """The loads of a result on a topology."""
    scenario, program = result.scenario, result.tasks.program
    topology = network_of(scenario)
    planner = Planner(topology)
    carried = np.zeros(len(topology.capacity_bytes_per_s))
    largest = 0.0
    for (load, group, size), count in _messages(program).items():
        operation, algorithm = load
        groups = one_group(topology.ranks) if group is None else _pair(*group)
        planned = planner.plan(operation, groups, size, algorithm, protocol=scenario.protocol)
        for phase, factor in zip(planned.pattern.phases, planned.cost.factors, strict=True):
            carried[phase.links] += phase.share * (factor * size * count)
        largest = max(largest, size) if group is None else largest
    why = ""
    unchosen = None if scenario.topology is not None else AUTO
    if largest and scenario.algorithm in (unchosen, AUTO):
        chosen = planner.plan(
            "all-reduce", one_group(topology.ranks), largest, protocol=scenario.protocol
        )
        why = chosen.why
    return LinkLoads(topology=topology, carried_bytes=carried, why=why)


Message = tuple[tuple[str, str], tuple[int, int] | None, float]


def _messages(program: Program) -> Counter[Message]:
    """How often each operation went over a size; a send also has its two ranks."""
    found: Counter[Message] = Counter()
    for load, ends in zip(program.loads, program.ends, strict=True):
        if isinstance(load, Carried):
            pair = None
            if load.operation == "send":
                ranks = {program.phase[t]: _rank(program, t) for t in ends}
                pair = ranks["send"], ranks["recv"]
            found[(load.operation, load.algorithm), pair, program.bytes[ends[0]]] += 1
    return found


def _rank(program: Program, task: int) -> int:
    return program.classes[program.streams[program.stream[task]].rank_class].rank


def _pair(source: int, target: int) -> Ints:
    return np.array([[source, target]], dtype=np.int64)
