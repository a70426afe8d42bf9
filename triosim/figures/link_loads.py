"""What every link of a result's topology carried.

The simulation keeps links that are loaded alike as one; here each has its own figure again.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from triosim.engine.program import Program
from triosim.joined import topology_with_faults
from triosim.network.cluster import Carried
from triosim.network.collectives.planned import AUTO, Planner
from triosim.network.topology.base import Floats, Ints, Topology, one_group
from triosim.result import Result


@dataclass(frozen=True, kw_only=True, eq=False)
class LinkLoads:
    """`carried_bytes[i]` passed link i of the topology in the step.

    `why` says what decided on the algorithm of the largest all-reduce; empty where it was chosen.
    """

    topology: Topology
    carried_bytes: Floats
    why: str


@lru_cache(maxsize=8)
def link_loads(result: Result) -> LinkLoads:
    """The loads of a result on a topology."""
    scenario, program = result.scenario, result.tasks.program
    topology = topology_with_faults(scenario)
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
