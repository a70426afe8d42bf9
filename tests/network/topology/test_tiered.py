"""Tiers of switches against messages followed link by link, by the names of the nodes."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.network.topology.kinds import rails
from tests.network.topology.walking import (
    as_arrays,
    links_between,
    loads,
    ordered_pairs,
)
from triosim.errors import ConfigError
from triosim.network.topology.base import LinkSpec, one_group
from triosim.network.topology.tiered import Tier, Tiered

LINK = LinkSpec(bytes_per_s=50.0, latency_s=1.0)


def way_up(tiers, gpu):
    """For each tier: the name of its switch above a GPU, and the number of the link to it."""
    way, inside = [], 1
    for tier in tiers:
        position = gpu % inside
        lane = position * tier.links // inside
        inside *= tier.children
        number = gpu // inside
        if tier.rails:
            number = number * tier.links + lane
        way.append((f"{tier.name} {number}", lane if tier.per_gpu else 0))
    return way


def walk(topology, tiers, source, target):
    """Links from source up to the first common switch and down to target."""
    if source == target:
        return []
    nodes = [topology.node_name(n) for n in range(1 + max(int(e.max()) for e in topology.ends()))]
    between = {(nodes[a], nodes[b]): found for (a, b), found in links_between(topology).items()}
    ups, downs = way_up(tiers, source), way_up(tiers, target)
    meet = next(t for t in range(len(tiers)) if ups[t][0] == downs[t][0])
    path = []
    for way, end, up in ((ups, source, True), (downs, target, False)):
        below = f"GPU {end}"
        for name, lane in way[: meet + 1]:
            parallel = between[(below, name) if up else (name, below)]
            path.append((parallel[lane if len(parallel) > 1 else 0], 1.0))
            below = name
    return path


@st.composite
def layouts(draw):
    inner = Tier(name="host", children=draw(st.integers(1, 4)), link=LINK)
    kind = draw(st.sampled_from(["bundle", "per GPU", "rails"]))
    links = draw(st.integers(1, 3))
    if kind != "bundle":
        links = draw(st.sampled_from([n for n in range(1, 5) if n <= inner.children]))
    middle = Tier(
        name="leaf",
        children=draw(st.integers(1, 3)),
        link=LinkSpec(bytes_per_s=5.0, latency_s=10.0),
        links=links,
        per_gpu=kind == "per GPU",
        rails=kind == "rails",
    )
    outer = Tier(
        name="spine",
        children=draw(st.integers(1, 3)),
        link=LinkSpec(bytes_per_s=3.0, latency_s=100.0),
        links=draw(st.integers(1, 3)),
    )
    tiers = [inner, middle, outer]
    most = math.prod(tier.children for tier in tiers)
    return tiers, draw(st.integers(1, most))


@given(st.data())
def test_traffic_exchange_and_latency_of_every_walk(data):
    tiers, ranks = data.draw(layouts())
    topology = Tiered(tiers, ranks)
    rank = st.integers(0, ranks - 1)
    pairs = data.draw(st.lists(st.tuples(rank, rank, st.integers(1, 9)), max_size=20))
    count = len(topology.capacity_bytes_per_s)
    path = {(a, b): walk(topology, tiers, a, b) for a, b, _ in pairs}
    source, target, size = as_arrays(pairs)
    expected = loads(lambda a, b: path[a, b], pairs, count)
    assert topology.traffic(source, target, size).tolist() == expected.tolist()
    slow = [sum(topology.link_latency_s[k] for k, _ in path[a, b]) for a, b, _ in pairs]
    assert topology.latency_s(source, target) == pytest.approx(slow)


@given(st.data())
def test_an_exchange_is_every_walk_of_its_groups(data):
    tiers, ranks = data.draw(layouts())
    topology = Tiered(tiers, ranks)
    order = data.draw(st.permutations(range(ranks)))
    size = data.draw(st.integers(1, min(ranks, 8)))
    rows = data.draw(st.integers(1, min(3, ranks // size)))
    groups = np.array(order[: rows * size]).reshape(rows, size)
    expected = loads(
        lambda a, b: walk(topology, tiers, a, b),
        ordered_pairs(groups.tolist(), 1.0),
        len(topology.capacity_bytes_per_s),
    )
    assert topology.exchange(groups, 1.0).tolist() == expected.tolist()


def test_a_bundle_is_as_wide_as_its_links_and_a_nic_as_wide_as_one():
    host = Tier(name="host", children=4, link=LINK)
    for per_gpu, width, strands in ((True, 50.0, 1), (False, 200.0, 4)):
        out = Tier(name="leaf", children=0, link=LINK, links=4, per_gpu=per_gpu)
        topology = Tiered([host, out], 8)
        assert topology.capacity_bytes_per_s[16:].tolist() == [width] * (16 if per_gpu else 4)
        assert topology.strands()[16:].tolist() == [strands] * (16 if per_gpu else 4)


def test_links_that_no_gpu_uses_are_not_there():
    """The upper links of a rail switch, one for each of its GPUs, when only one host is there."""
    tiers = [
        Tier(name="host", children=4, link=LINK),
        Tier(name="rail", children=3, link=LINK, links=2, rails=True),
        Tier(name="spine", children=0, link=LINK, links=2, per_gpu=True),
    ]
    source, target = Tiered(tiers, 4).ends()
    assert (source != target).all()


def test_the_diameter_of_groups_on_rails_is_found_group_by_group():
    """0 and 3 share a host, 1 and 4 a rail: none of them needs the spine."""
    groups = np.array([[0, 3], [1, 4]])
    source, target, _ = as_arrays(ordered_pairs(groups.tolist(), 1.0))
    topology = rails(8)
    assert topology.diameter_s(groups) == topology.latency_s(source, target).max() == 1.1


def test_all_gather_between_hosts_with_a_nic_for_each_gpu():
    """C11: from each of 16 hosts of 8, 15/16 of what its GPUs receive comes through their NICs."""
    host = Tier(name="NVSwitch", children=8, link=LinkSpec(bytes_per_s=450e9))
    nics = Tier(name="fabric", children=0, link=LinkSpec(bytes_per_s=50e9), links=8, per_gpu=True)
    topology = Tiered([host, nics], 128)
    same_place = np.arange(128).reshape(16, 8).T
    size_bytes = 436e6
    time_s = topology.exchange(same_place, size_bytes / 128) / topology.capacity_bytes_per_s
    assert time_s[256:].max() == pytest.approx(15 / 16 * size_bytes / (8 * 50e9))
    assert round(1e3 * time_s[256:].max(), 2) == 1.02


def test_more_gpus_than_the_tiers_join():
    with pytest.raises(ConfigError, match=r"13 GPUs: the outermost tier, leaf, joins at most 12"):
        Tiered([Tier(name="leaf", children=12, link=LINK)], 13)
    with pytest.raises(ConfigError, match="needs at least one tier"):
        Tiered([], 1)


def test_in_network_reduction_sends_every_link_the_array_once():
    switch = Tier(name="switch", children=4, link=LINK, reduces=True)
    top = Tier(name="core", children=0, link=LINK, reduces=True)
    found = Tiered([switch, top], 8).reduction(one_group(8))
    assert found.up.tolist() == [1.0] * 8 + [0.0] * 8 + [1.0] * 2 + [0.0] * 2
    assert found.down.tolist() == [0.0] * 8 + [1.0] * 8 + [0.0] * 2 + [1.0] * 2
    assert (
        Tiered([switch, Tier(name="core", children=0, link=LINK)], 8).reduction(one_group(8))
        is None
    )


def test_a_reduction_goes_no_higher_than_where_its_group_meets():
    tiers = [
        Tier(name="host", children=4, link=LinkSpec(bytes_per_s=1.0), reduces=True),
        Tier(name="spine", children=0, link=LinkSpec(bytes_per_s=1.0), reduces=True),
    ]
    network = Tiered(tiers, 12)
    inside, across = [0, 1, 2, 3], [4, 5, 8, 9]
    both = network.reduction(np.array([inside, across]))
    alone = [network.reduction(np.array([group])) for group in (inside, across)]
    assert both.up == pytest.approx(alone[0].up + alone[1].up)
    assert both.down == pytest.approx(alone[0].down + alone[1].down)
