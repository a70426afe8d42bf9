"""A dragonfly against messages followed router by router."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.network.topology.walking import as_arrays, links_between, loads, ordered_pairs
from triosim.errors import ConfigError
from triosim.network.topology.base import LinkSpec, one_group
from triosim.network.topology.dragonfly import Dragonfly

GPU, LOCAL, GLOBAL = (
    LinkSpec(bytes_per_s=speed, latency_s=latency, protocol=name)
    for speed, latency, name in ((8.0, 1.0, "gpu"), (4.0, 10.0, "local"), (2.0, 100.0, "global"))
)


def dragonfly(groups, routers, gpus, ranks=None):
    return Dragonfly(
        groups, routers, gpus, gpu_link=GPU, local_link=LOCAL, global_link=GLOBAL, ranks=ranks
    )


def cables(groups, routers):
    """The routers (group, number) at both ends of the link between two groups."""
    per_router = -(-(groups - 1) // routers)
    found = {}
    for group in range(groups):
        others = [other for other in range(groups) if other != group]
        for i, other in enumerate(others):
            found[group, other] = (group, i // per_router)
    return {pair: (end, found[pair[::-1]]) for pair, end in found.items()}


def walk(topology, groups, routers, gpus, source, target):
    if source == target:
        return []

    def node(router):
        return topology.ranks + router[0] * routers + router[1]

    start, end = (divmod(rank // gpus, routers) for rank in (source, target))
    way = [start]
    if start[0] != end[0]:
        way += cables(groups, routers)[start[0], end[0]]
    way.append(end)
    nodes = [source, *dict.fromkeys(node(router) for router in way), target]
    between = links_between(topology)
    path = []
    for a, b in itertools.pairwise(nodes):
        (link,) = between[a, b]
        path.append((link, 1.0))
    return path


@given(st.data())
def test_traffic_exchange_and_latency_of_every_walk(data):
    sizes = data.draw(st.tuples(st.integers(1, 6), st.integers(1, 4), st.integers(1, 2)))
    places = int(np.prod(sizes))
    topology = dragonfly(*sizes, data.draw(st.integers(1, places)))
    order = data.draw(st.permutations(range(topology.ranks)))
    size = data.draw(st.integers(1, min(len(order), 9)))
    rows = data.draw(st.integers(1, min(3, len(order) // size)))
    groups = np.array(order[: rows * size]).reshape(rows, size)
    pairs = ordered_pairs(groups.tolist(), 1.0)
    path = {(a, b): walk(topology, *sizes, a, b) for a, b, _ in pairs}
    expected = loads(lambda a, b: path[a, b], pairs, len(topology.capacity_bytes_per_s))
    source, target, bytes_each = as_arrays(pairs)
    assert topology.traffic(source, target, bytes_each).tolist() == expected.tolist()
    assert topology.exchange(groups, 1.0).tolist() == expected.tolist()
    slow = [sum(topology.link_latency_s[k] for k, _ in way) for way in path.values()]
    assert topology.latency_s(source, target) == pytest.approx(slow)
    assert topology.diameter_s(groups) == pytest.approx(max(slow, default=0.0))


@pytest.mark.parametrize("sizes", [(9, 4, 2), (5, 4, 2), (4, 5, 1), (1, 3, 2)])
def test_the_diameter_of_many_ranks_is_that_of_their_pairs(sizes):
    topology = dragonfly(*sizes)
    everyone = one_group(topology.ranks)
    source, target, _ = as_arrays(ordered_pairs(everyone.tolist(), 1.0))
    assert topology.diameter_s(everyone) == topology.latency_s(source, target).max()


def test_the_balanced_dragonfly_of_the_paper():
    """Kim et al. 2008, figure 5: h = 2, a = 4, p = 2, so g = a h + 1 = 9 groups, N = 72.

    Every router has a - 1 local and h global links.
    """
    topology = dragonfly(9, 4, 2)
    assert topology.ranks == 72
    source, target = topology.ends()
    routers = (source >= 72) & (target >= 72)
    assert np.bincount(source[routers] - 72).tolist() == [3 + 2] * 36


def test_uniform_all_to_all_loads_all_global_links_alike():
    """p a ranks of one group send to as many of another over the one link between the two."""
    topology = dragonfly(9, 4, 2)
    assert (topology.exchange(one_group(72), 1.0)[-72:] == 64.0).all()


def test_units_protocols_and_names():
    topology = dragonfly(3, 2, 2)
    assert [unit.tolist() for unit in topology.units(np.array([0, 1, 2, 8]))] == [
        [0, 0, 1, 4],
        [0, 0, 0, 2],
    ]
    for groups, name in (([[0, 1]], "gpu"), ([[0, 2]], "local"), ([[0, 1], [2, 4]], "global")):
        assert topology.protocol(np.array(groups)) == name
    assert topology.node_name(12) == "router 0"


def test_what_no_dragonfly_can_be():
    with pytest.raises(ConfigError, match="dragonfly 3x0x2: groups, routers and GPUs"):
        dragonfly(3, 0, 2)
    with pytest.raises(ConfigError, match="13 GPUs: a dragonfly 3x2x2 has places for 1 to 12"):
        dragonfly(3, 2, 2, 13)
