"""Random programs in which all ranks do the same, some of them more slowly."""

import numpy as np
from hypothesis import strategies as st

from triosim.engine.executor import execute
from triosim.engine.program import Program, RankClass
from triosim.errors import ConfigError
from triosim.network.cluster import Cluster
from triosim.network.collectives.choose import candidates
from triosim.network.topology.base import LinkSpec, one_group
from triosim.network.topology.describe import machine_names, topology_names, topology_of

LINK = LinkSpec(bytes_per_s=10e9, latency_s=2e-6)
NAMES = (*topology_names(), *machine_names())
OPERATIONS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")

computations = st.fixed_dictionaries(
    {"kind": st.just("compute"), "us": st.sampled_from([1.0, 7.3, 400.0])}
)
collectives = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(OPERATIONS),
        "choice": st.integers(0, 20),
        "bytes": st.sampled_from([1.0, 3e4, 2.5e6]),
        "stream": st.sampled_from(["a", "b", "c"]),
        "waits": st.booleans(),
        "siblings": st.booleans(),
    }
)
programs = st.lists(st.one_of(computations, collectives, collectives), min_size=1, max_size=8)
speeds = st.dictionaries(st.integers(0, 63), st.sampled_from([0.25, 0.8, 1.5]), max_size=4)


def build(name, ranks):
    """The named topology; None where it does not join so many."""
    try:
        return topology_of(name, ranks, LINK)
    except ConfigError:
        return None


def rank_classes(ranks, slow, fold):
    speed = {rank: slow.get(rank, 1.0) for rank in range(ranks)}
    if not fold:
        return [RankClass(members=(rank,), speed=speed[rank]) for rank in range(ranks)]
    return [
        RankClass(members=[rank for rank in range(ranks) if speed[rank] == s], speed=s)
        for s in dict.fromkeys(speed.values())
    ]


def groups_of(step, ranks):
    """All ranks as one group, or neighbours in groups of half or a quarter of them."""
    for parts in (4, 2):
        if step["siblings"] and ranks % parts == 0 and ranks > parts:
            return np.arange(ranks, dtype=np.int64).reshape(parts, -1)
    return one_group(ranks)


def written(steps, topology, slow, *, fold, overlap_slowdown=0.0, protocol=False):
    """The program of those steps, with the cluster that settled it."""
    classes = rank_classes(topology.ranks, slow, fold)
    program = Program(overlap_slowdown=overlap_slowdown)
    for rank_class in classes:
        program.add_class(rank_class)
    cluster = Cluster(topology, protocol=protocol, fold=fold)
    last, pending = [()] * len(classes), []
    for step in steps:
        if step["kind"] == "compute":
            last = [
                (program.compute(c, "work", "forward", step["us"] * 1e-6 / k.speed, pending),)
                for c, k in enumerate(classes)
            ]
            pending = []
            continue
        groups = groups_of(step, topology.ranks)
        names = list(candidates(step["kind"], groups, topology))
        # Each algorithm is a cluster's: they share the topology, and one settles for all.
        one = Cluster(
            topology, algorithm=names[step["choice"] % len(names)], protocol=False, fold=fold
        )
        tasks = program.communicate(
            [(c, step["stream"], "all-reduce") for c in range(len(classes))],
            step["kind"],
            "test",
            step["bytes"],
            one.collective(step["kind"], groups, step["bytes"]),
            last if step["waits"] else [()] * len(classes),
        )
        pending = tasks[:1]
    program.links, program.loads = cluster.settle(program.loads, 0)
    return program


def run(steps, topology, slow, **settings):
    return execute(written(steps, topology, slow, **settings))
