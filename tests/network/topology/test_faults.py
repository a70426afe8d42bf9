"""Degraded and dead links: what is narrower, what goes another way, what is cut off."""

import collections

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.network.topology.kinds import KINDS, leaf_spine, switched
from tests.network.topology.walking import as_arrays, net_bytes, ordered_pairs
from triosim.errors import ConfigError, Infeasible
from triosim.network.topology.base import LinkSpec, one_group
from triosim.network.topology.faults import degrade
from triosim.network.topology.full import FullyConnected
from triosim.network.topology.grid import Grid
from triosim.network.topology.tiered import Tier, Tiered

LINK = LinkSpec(bytes_per_s=10.0, latency_s=1.0)
every_kind = pytest.mark.parametrize("kind", KINDS)


def one(topology, source, target, size=1.0):
    return topology.traffic(np.array([source]), np.array([target]), np.array([size]))


def used(topology, source, target):
    """The links on the way, by the names of their ends."""
    ends = topology.ends()
    return {
        tuple(topology.node_name(int(end[link])) for end in ends): load
        for link, load in enumerate(one(topology, source, target))
        if load
    }


def test_a_degraded_link_is_narrower_in_both_directions_and_carries_the_same():
    ring = Grid((5,), True, LINK)
    worse = degrade(ring, {"GPU 3-GPU 4": 0.25})
    source, target = ring.ends()
    hit = np.sort(np.stack((source, target)), axis=0).T.tolist()
    expected = [2.5 if pair == [3, 4] else 10.0 for pair in hit]
    assert worse.capacity_bytes_per_s.tolist() == expected
    assert worse.exchange(one_group(5), 1.0).tolist() == ring.exchange(one_group(5), 1.0).tolist()
    assert ring.capacity_bytes_per_s.tolist() == [10.0] * 10


@pytest.mark.parametrize("name", ["0-1", "1-0", "gpu 0-GPU 1", " GPU 1 - gpu 0 ", "0-1:0"])
def test_names_of_one_link(name):
    ring = degrade(Grid((4,), True, LINK), {name: 0})
    source, target = ring.ends()
    dead = ring.capacity_bytes_per_s == 0
    assert sorted(zip(source[dead], target[dead], strict=True)) == [(0, 1), (1, 0)]


def test_traffic_over_a_dead_link_of_a_ring_goes_the_other_way_round():
    ring = degrade(Grid((5,), True, LINK), {"0-1": 0.0})
    assert set(used(ring, 0, 1)) == {
        ("GPU 0", "GPU 4"), ("GPU 4", "GPU 3"), ("GPU 3", "GPU 2"), ("GPU 2", "GPU 1"),
    }  # fmt: skip
    assert ring.latency_s(np.array([0, 1]), np.array([1, 2])).tolist() == [4.0, 1.0]
    assert ring.diameter_s(one_group(5)) == 4.0


def test_what_goes_half_each_way_goes_one_way_when_the_other_is_dead():
    ring = degrade(Grid((4,), True, LINK), {"0-1": 0.0})
    assert used(ring, 0, 2) == {("GPU 0", "GPU 3"): 1.0, ("GPU 3", "GPU 2"): 1.0}


def test_a_line_is_cut_in_two():
    line = degrade(Grid((4,), False, LINK), {"1-2": 0.0})
    sentence = (
        "GPU 0 and GPU 3 are cut off from each other: "
        "no way is left without the dead link GPU 1-GPU 2."
    )
    for ask in (line.traffic, lambda a, b, _: line.latency_s(a, b)):
        with pytest.raises(Infeasible) as error:
            ask(np.array([0]), np.array([3]), np.ones(1))
        assert str(error.value) == sentence
    with pytest.raises(Infeasible, match="are cut off"):
        line.exchange(one_group(4), 1.0)
    assert line.exchange(np.array([[0, 1], [2, 3]]), 1.0).sum() == 4.0


def test_a_dead_network_card_leaves_its_traffic_to_the_others_of_the_host():
    topology = degrade(switched(8), {"NVSwitch 0-fabric 0:1": 0.0})
    source, target = topology.ends()
    cards = np.flatnonzero((source == 8) & (target == 10))
    load = one(topology, 1, 4)[cards]
    assert load == pytest.approx([1 / 3, 0.0, 1 / 3, 1 / 3])
    assert used(topology, 0, 4) == used(switched(8), 0, 4)


def test_a_dead_part_narrows_a_bundle():
    topology = degrade(leaf_spine(12), {"leaf 0-spine 0:2": 0.0, "leaf 1-spine 0:0": 0.5})
    whole = leaf_spine(12)
    source, target = topology.ends()
    share = topology.capacity_bytes_per_s / whole.capacity_bytes_per_s
    spine = max(source)
    for leaf, expected in ((spine - 2, 2 / 3), (spine - 1, 2.5 / 3)):
        both = ((source == leaf) & (target == spine)) | ((source == spine) & (target == leaf))
        assert share[both] == pytest.approx([expected, expected])
    assert np.count_nonzero(share < 1) == 4
    assert used(topology, 0, 11) == used(whole, 0, 11)


def test_all_parts_of_a_bundle_are_the_bundle():
    faults = {f"leaf 0-spine 0:{i}": 0.0 for i in range(3)}
    with pytest.raises(Infeasible, match=r"cut off .* dead link leaf 0-spine 0"):
        one(degrade(leaf_spine(12), faults), 0, 11)


@pytest.mark.parametrize(
    ("name", "share", "sentence"),
    [
        ("0-9", 0.0, "dead_links 0-9: no such link; there are, for example, GPU 0-GPU 1, "
         "GPU 1-GPU 2, GPU 2-GPU 3."),
        ("0-2", 0.0, "dead_links 0-2: no such link; there are, for example, GPU 0-GPU 1, "
         "GPU 1-GPU 2, GPU 2-GPU 3."),
        ("leaf", 0.0, "dead_links leaf: no such link; there are, for example, GPU 0-GPU 1, "
         "GPU 1-GPU 2, GPU 2-GPU 3."),
        ("0-1:1", 0.0, "dead_links 0-1:1: the parallel links there are numbered from 0 to 0."),
        ("0-1", 1.5, "dead_links 0-1 = 1.5: the share that is left must be from 0 to 1."),
        ("0-1", float("nan"), "dead_links 0-1 = nan: the share that is left must be from 0 to 1."),
    ],
)  # fmt: skip
def test_what_no_fault_can_be(name, share, sentence):
    with pytest.raises(ConfigError) as error:
        degrade(Grid((4,), True, LINK), {name: share})
    assert str(error.value) == sentence
    assert error.value.field == "dead_links"


def test_an_exchange_over_a_dead_link_is_followed_up_to_1024_ranks():
    grid = degrade(Grid((2, 600), False, LINK), {"0-1": 0.0})
    with pytest.raises(
        Infeasible, match=r"All-to-all among 1,200 GPUs crosses a dead link, .* most 1,024"
    ):
        grid.exchange(one_group(1200), 1.0)
    in_pairs = np.arange(1200).reshape(-1, 2)
    assert grid.exchange(in_pairs, 1.0).sum() == 2 * (599 + 3)
    assert grid.diameter_s(in_pairs) == 3.0


def test_a_dead_link_takes_the_in_network_reduction_along():
    leaf = Tier(name="leaf", children=2, link=LINK, reduces=True)
    core = Tier(name="core", children=0, link=LINK, reduces=True)
    broken = degrade(Tiered([leaf, core], 4), {"0-leaf 0": 0.0})
    assert broken.reduction(np.array([[0, 1]])) is None
    assert broken.reduction(np.array([[2, 3]])) is not None


def test_no_fault_leaves_the_topology_as_it_is():
    topology = FullyConnected(4, LINK)
    assert degrade(topology, {}) is topology


def shortest(topology, dead):
    """Hops between all nodes without the dead links, by breadth-first search."""
    out = collections.defaultdict(set)
    for link, (a, b) in enumerate(zip(*(end.tolist() for end in topology.ends()), strict=True)):
        if not dead[link]:
            out[a].add(b)

    def hops(source):
        found, front = {source: 0}, [source]
        for node in front:
            for new in out[node] - found.keys():
                found[new] = found[node] + 1
                front.append(new)
        return found

    return {rank: hops(rank) for rank in range(topology.ranks)}


@every_kind
@settings(max_examples=30)
@given(data=st.data())
def test_only_what_crossed_a_dead_link_goes_another_way_and_that_is_the_shortest(kind, data):
    whole = KINDS[kind](data.draw(st.integers(2, 13)))
    source, target = whole.ends()
    links = data.draw(st.sets(st.integers(0, len(source) - 1), min_size=1, max_size=3))
    names = [f"{whole.node_name(source[i])}-{whole.node_name(target[i])}" for i in links]
    broken = degrade(whole, dict.fromkeys(names, 0.0))
    dead = broken.capacity_bytes_per_s == 0
    hops = shortest(whole, dead)
    a, b = data.draw(st.tuples(*2 * [st.integers(0, whole.ranks - 1)]))
    before = one(whole, a, b)
    if not before[dead].any():
        assert one(broken, a, b).tolist() == before.tolist()
    elif b not in hops[a]:
        with pytest.raises(Infeasible, match=f"GPU {a} and GPU {b} are cut off"):
            one(broken, a, b)
    else:
        after = one(broken, a, b)
        assert not after[dead].any()
        assert after.sum() == pytest.approx(hops[a][b])
        balance = np.zeros(int(max(source.max(), target.max())) + 1)
        balance[[a, b]] = -1.0, 1.0
        assert net_bytes(broken, after) == pytest.approx(balance, abs=1e-12)
        shares = [broken.passing(i, np.array([a]), np.array([b]))[0] for i in range(len(source))]
        assert shares == pytest.approx(after)


@every_kind
@settings(max_examples=30)
@given(data=st.data())
def test_an_exchange_is_the_traffic_of_all_its_pairs(kind, data):
    whole = KINDS[kind](data.draw(st.integers(2, 13)))
    source, target = whole.ends()
    link = data.draw(st.integers(0, len(source) - 1))
    name = f"{whole.node_name(source[link])}-{whole.node_name(target[link])}"
    broken = degrade(whole, {name: 0.0})
    ranks = data.draw(st.permutations(range(whole.ranks)))
    groups = np.array(ranks[: 2 * (len(ranks) // 2)]).reshape(2, -1)
    pairs = as_arrays(ordered_pairs(groups.tolist(), 0.7))
    try:
        expected = broken.traffic(*pairs)
    except Infeasible:
        with pytest.raises(Infeasible):
            broken.exchange(groups, 0.7)
    else:
        assert broken.exchange(groups, 0.7) == pytest.approx(expected)
        latency_s = broken.latency_s(*pairs[:2]).max(initial=0.0)
        assert broken.diameter_s(groups) == pytest.approx(latency_s)


@pytest.mark.parametrize(
    ("topology", "examples"),
    [
        (leaf_spine(12), "GPU 0-NVSwitch 0, NVSwitch 0-leaf 0, leaf 0-spine 0:2"),
        (switched(8), "GPU 0-NVSwitch 0, NVSwitch 0-fabric 0:3"),
        (KINDS["hosts of rings"](6), "GPU 0-GPU 1, GPU 0-host 0, host 0-leaf 0"),
        (KINDS["graph"](5), "GPU 0-node 5, node 5-node 7:1"),
    ],
)
def test_an_unknown_link_is_met_with_one_of_each_kind(topology, examples):
    with pytest.raises(ConfigError) as error:
        degrade(topology, {"0-99": 0})
    assert error.value.problem.startswith(f"no such link; there are, for example, {examples}")
    for name in error.value.problem.partition("for example, ")[2].split(", "):
        degrade(topology, {name: 0.5})
