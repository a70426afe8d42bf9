"""Topologies by name and by file, of any size."""

import itertools
import math

import numpy as np
import pytest

from triosim.errors import ConfigError, Infeasible
from triosim.network.topology.base import LinkSpec
from triosim.network.topology.describe import (
    DEFAULT_LINK,
    describe,
    machine_names,
    natural_topology,
    squarest,
    topology_names,
    topology_of,
)
from triosim.network.topology.description import Description
from triosim.network.topology.vocabulary import MAX_GPUS

LINK = LinkSpec(bytes_per_s=10e9, latency_s=2e-6)
RANKS = (1, 2, 7, 8, 9, 12, 16, 17, 1000, 131072)
# Beyond these a topology would not fit into memory, or has no more places.
MOST = {"fully-connected": 1024, "hybrid-cube-mesh": 8}


def latency_s(topology, a, b):
    return float(topology.latency_s(np.array([a]), np.array([b]))[0])


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("name", topology_names())
def test_every_name_of_any_size(name, ranks):
    if ranks > MOST.get(name, MAX_GPUS):
        with pytest.raises(ConfigError, match=f"(at most|1 to) {MOST[name]:,}"):
            topology_of(name, ranks, LINK)
        return
    topology = topology_of(name, ranks, LINK)
    assert topology.ranks == ranks
    # What is sent arrives at the other end, and nothing of it is lost or made on the way.
    last = ranks - 1
    loads = topology.traffic(np.array([0]), np.array([last]), np.array([8.0]))
    source, target = topology.ends()
    nodes = int(max(source.max(initial=0), target.max(initial=0), last)) + 1
    gained = np.bincount(target, loads, nodes) - np.bincount(source, loads, nodes)
    expected = np.zeros(nodes)
    expected[0] -= 8.0
    expected[last] += 8.0
    np.testing.assert_allclose(gained, expected, atol=1e-9)
    assert (latency_s(topology, 0, last) > 0) == (ranks > 1)


@pytest.mark.parametrize("name", topology_names())
def test_every_name_can_be_saved_and_loaded(name):
    description = describe(name, 8, LINK)
    assert Description.from_dict(description.to_dict()) == description
    assert topology_of(description, 8) is topology_of(name, 8, LINK)


def test_lists_have_a_line_for_each():
    for about in (*topology_names().values(), *machine_names().values()):
        assert about.strip()
        assert "\n" not in about
    assert not set(topology_names()) & set(machine_names())


def test_the_link_is_the_callers_or_the_default():
    assert topology_of("ring", 4, LINK).capacity_bytes_per_s.tolist() == [10e9] * 8
    assert topology_of("ring", 4).capacity_bytes_per_s.tolist() == [100e9] * 8
    assert DEFAULT_LINK.bytes_per_s == 100e9


def test_machines_keep_their_own_links():
    assert topology_of("dgx-a100", 8, LINK) is topology_of("DGX-A100", 8)
    assert topology_of("dgx-a100", 8).capacity_bytes_per_s.max() == 300e9


def test_a_step_over_a_switch_costs_the_latency_once():
    assert latency_s(topology_of("switch", 8, LINK), 2, 5) == 2e-6


@pytest.mark.parametrize(
    ("ranks", "two", "three"),
    [
        (1, (1, 1), (1, 1, 1)),
        (7, (1, 7), (1, 1, 7)),
        (12, (3, 4), (2, 2, 3)),
        (16, (4, 4), (2, 2, 4)),
        (1000, (25, 40), (10, 10, 10)),
        (131072, (256, 512), (32, 64, 64)),
    ],
)
def test_sides_are_as_even_as_the_ranks_allow(ranks, two, three):
    assert squarest(ranks, 2) == two
    assert squarest(ranks, 3) == three


@pytest.mark.parametrize(
    ("name", "ranks", "shape"),
    [
        ("ring", 5, (5,)),
        ("torus", 12, (3, 4)),
        ("torus:4x8", 32, (4, 8)),
        ("Torus:4X4x4", 64, (4, 4, 4)),
        ("mesh:2x8", 16, (2, 8)),
        ("mesh-3d", 64, (4, 4, 4)),
        ("torus-3d", 27, (3, 3, 3)),
        ("torus:4x8", 20, None),  # not all places are taken
        ("switch", 8, None),
    ],
)
def test_grids_have_the_sides_of_their_name(name, ranks, shape):
    assert topology_of(name, ranks, LINK).shape() == shape


@pytest.mark.parametrize("ranks", [4, 16, 33, 64])
def test_a_fat_tree_has_as_many_tiers_as_it_takes(ranks):
    # With 4 ports, one switch holds 4, two tiers 8, three 16 (k^3 / 4), four 32, five 64.
    tiers = describe("fat-tree:4", ranks, LINK).tiers
    assert len(tiers) == next(t for t in range(1, 9) if 4 * 2 ** (t - 1) >= ranks)
    for below, above in itertools.pairwise(tiers):
        assert above.link.bytes_per_s * above.links == pytest.approx(
            below.children * below.links * below.link.bytes_per_s
        )


def test_a_leaf_spine_is_oversubscribed_as_said():
    for ratio in (1, 2, 3, 32):
        leaf, spine = describe(f"leaf-spine:16x{ratio}", 64, LINK).tiers
        assert leaf.children == 16
        assert spine.link.bytes_per_s * spine.links == pytest.approx(160e9 / ratio)


def test_rails_join_the_same_gpu_of_every_host():
    topology = topology_of("rail-optimised:4x2", 16, LINK)
    assert latency_s(topology, 0, 1) == pytest.approx(2e-6)  # same host
    assert latency_s(topology, 0, 4) == pytest.approx(4e-6)  # same rail
    assert latency_s(topology, 0, 5) == pytest.approx(6e-6)  # another rail: over the spine
    assert latency_s(topology, 0, 8) == pytest.approx(6e-6)  # another unit
    assert describe("rail-optimized", 16, LINK) == describe("rail-optimised", 16, LINK)


@pytest.mark.parametrize("ranks", [1, 6, 7, 72, 73, 1000])
def test_a_dragonfly_is_balanced(ranks):
    d = describe("dragonfly", ranks, LINK)
    p = d.gpus_per_router
    # Kim, Dally, Scott and Abts, ISCA 2008: a = 2p = 2h routers of a group, a h + 1 groups.
    assert (d.routers, d.groups) == (2 * p, 2 * p * p + 1)
    assert d.groups * d.routers * p >= ranks
    smaller = p - 1
    assert smaller * 2 * smaller * (2 * smaller**2 + 1) < ranks


def test_equal_topologies_are_built_once():
    values = {"kind": "torus", "shape": [4, 4], "link": {"gb_per_s": 10, "latency_us": 2}}
    assert topology_of(values, 16) is topology_of("torus:4x4", 16, LINK)


def test_a_file_is_read_again_when_it_changes(tmp_path):
    path = tmp_path / "net.toml"
    for gb_per_s in (5, 7):
        path.write_text(f'kind = "ring"\nlink = {{ gb_per_s = {gb_per_s} }}\n', encoding="utf-8")
        for source in (path, str(path)):
            assert topology_of(source, 4).capacity_bytes_per_s.max() == gb_per_s * 1e9


@pytest.mark.parametrize(
    ("source", "ranks", "sentence"),
    [
        ("blob", 8, "topology blob: no such topology; known are ring, switch, "),
        ("dgx-h100:2", 8, "no such topology"),
        ("", 8, "no such topology"),
        (None, 8, "must be a name, a file, a table or a description"),
        (7, 8, "must be a name, a file, a table or a description"),
        ("torus:4xx", 8, "behind the colon stand whole numbers with x between"),
        ("torus:-4x2", 8, "behind the colon stand whole numbers with x between"),
        ("torus:0x2", 8, "must be a whole number from 1 to 1,048,576"),
        ("torus:9999999x2", 8, "must be a whole number from 1 to 1,048,576"),
        ("torus:1x1x1x1x1x1x8", 8, "behind the colon stands one side for each dimension"),
        ("ring:8", 8, "behind the colon stands nothing: this name is complete"),
        ("dragonfly:9x4", 8, "behind the colon stands groups, routers and GPUs of a router"),
        ("fat-tree:5", 8, "5 ports: a switch of a fat tree needs an even number of 4 or more"),
        ("torus:4x8", 33, "topology 33 GPUs: a grid of 4x8 has places for 1 to 32"),
        ("hybrid-cube-mesh", 9, "at most 8"),
        ("fully-connected", 100_000, "1 to 1,024 GPUs"),
        ("dragonfly:3x2x1", 7, "topology 7 GPUs"),
        ("ring", 0, "topology GPUs = 0: must be a whole number from 1 to 1,048,576"),
        ("ring", 2**20 + 1, "GPUs = 1048577: must be a whole number from 1 to 1,048,576"),
        ("ring", 8.5, "GPUs = 8.5: must be a whole number"),
        ("none.toml", 8, "none.toml: No such file or directory"),
    ],
)
def test_each_mistake_is_one_sentence(source, ranks, sentence):
    with pytest.raises(ConfigError) as caught:
        topology_of(source, ranks, LINK)
    assert sentence in str(caught.value)
    assert caught.value.field == "topology"
    assert "\n" not in str(caught.value)


GREEDY = [
    {"kind": "dragonfly", "groups": 100_000, "routers": 1, "gpus_per_router": 1},
    {"kind": "dragonfly", "groups": 1, "routers": 100_000, "gpus_per_router": 1},
    {"kind": "tiers", "tiers": [
        {"name": "host", "children": 8, "link": {"gb_per_s": 1}},
        {"name": "net", "children": 0, "link": {"gb_per_s": 1}, "links": 1000, "per_gpu": True},
    ]},
    {
        "kind": "hosts", "gpus_per_host": 1000,
        "inside": {"kind": "fully-connected", "link": {"gb_per_s": 1}},
        "tiers": [{"name": "net", "children": 0, "link": {"gb_per_s": 1}}],
    },
]  # fmt: skip


@pytest.mark.parametrize("values", GREEDY, ids=["groups", "routers", "tiers", "hosts"])
def test_what_does_not_fit_into_memory_is_refused(values):
    link = {"link": {"gb_per_s": 1}} if values["kind"] == "dragonfly" else {}
    with pytest.raises(ConfigError, match=r"[\d,]+ links: must be at most 16,777,216"):
        topology_of(values | link, 2**20 if link == {} else 1000)


def test_a_graph_of_named_nodes():
    link = {"gb_per_s": 10, "latency_us": 1}
    values = {
        "kind": "graph",
        "gpus": ["left", "right", "spare"],
        "connections": [
            {"between": ["left", "hub"], "link": link, "count": 3},
            {"between": ["hub", "right"], "link": link},
            {"between": ["spare", "hub"], "link": link},
        ],
    }
    topology = topology_of(values, 2)
    loads = topology.traffic(np.array([0]), np.array([1]), np.array([5.0]))
    source, target = topology.ends()
    way = {
        (topology.node_name(source[i]), topology.node_name(target[i])): width
        for i, width in enumerate(topology.capacity_bytes_per_s)
        if loads[i]
    }
    assert way == {("left", "hub"): 30e9, ("hub", "right"): 10e9}
    assert latency_s(topology, 0, 1) == pytest.approx(2e-6)
    with pytest.raises(ConfigError, match="4 GPUs: this topology joins at most 3"):
        topology_of(values, 4)
    del values["connections"][1]
    with pytest.raises(Infeasible, match="No path leads from left to right"):
        topology_of(values, 2).traffic(np.array([0]), np.array([1]), np.array([5.0]))


def test_a_dragonfly_of_three_kinds_of_links():
    links = [{"gb_per_s": gb_per_s} for gb_per_s in (50, 20, 10)]
    values = {"kind": "dragonfly", "groups": 3, "routers": 2, "gpus_per_router": 2, "links": links}
    topology = topology_of(values, 12)
    # 12 GPUs up and down, 2 links in each of 3 groups, and one each way between any two groups.
    widths, counts = np.unique(topology.capacity_bytes_per_s, return_counts=True)
    assert dict(zip(widths.tolist(), counts.tolist(), strict=True)) == {
        50e9: 24,
        20e9: 6,
        10e9: 6,
    }


def test_too_few_places_are_named():
    tiers = [{"name": "host", "children": 8, "link": {"gb_per_s": 1}}]
    with pytest.raises(ConfigError, match="9 GPUs: the outermost tier, host, joins at most 8"):
        topology_of({"kind": "tiers", "tiers": tiers}, 9)


@pytest.mark.parametrize(
    "algorithm", ["ring", "bidirectional-ring", "torus", "hierarchical", "in-network", "auto"]
)
def test_links_made_for_an_algorithm_cost_a_step_the_latency_once(algorithm):
    topology = natural_topology(algorithm, 16, LINK)
    assert set(topology.capacity_bytes_per_s.tolist()) == {10e9}
    assert latency_s(topology, 0, 1) == pytest.approx(2e-6)
    if algorithm == "hierarchical":
        assert [units.tolist() for units in topology.units(np.arange(16))] == [[0] * 8 + [1] * 8]
        assert latency_s(topology, 0, 8) == pytest.approx(2e-6)
    assert (topology.reduction(np.arange(16)[None, :]) is None) == (algorithm != "in-network")
    assert (topology.shape() is None) == (algorithm in ("hierarchical", "in-network", "auto"))
    assert math.prod(topology.shape() or (16,)) == 16
