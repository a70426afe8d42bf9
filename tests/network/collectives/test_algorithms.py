"""Golden times of ORACLES C1 to C11 and of the seminar; 1 GB and 100 GB/s where nothing is said."""

import numpy as np
import pytest

from tests.network.collectives.networks import (
    GB,
    cluster,
    link,
    one_group,
    ring_of,
    rows,
    switch,
    torus_of,
)
from triosim.errors import ConfigError
from triosim.network.collectives.choose import ALGORITHMS, lay_out, phases
from triosim.network.topology.tiered import Tier, Tiered

US = 1e-6


def ms(op, algorithm, topology, size_bytes=GB, groups=None):
    groups = one_group(topology.ranks) if groups is None else groups
    return lay_out(op, algorithm, groups, topology).time_s(size_bytes) * 1e3


def exactly(value):
    return pytest.approx(value, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("place", [switch, ring_of])
@pytest.mark.parametrize(
    ("ranks", "expected"), [(1, 0), (2, 10), (3, 40 / 3), (4, 15), (8, 17.5), (16, 18.75)]
)
def test_c1_ring(ranks, expected, place):
    assert ms("all-reduce", "ring", place(ranks)) == exactly(expected)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_one_rank_sends_nothing(algorithm):
    for op in ALGORITHMS[algorithm].operations:
        if op != "send":
            pattern = lay_out(op, algorithm, rows(4, 1), switch(4))
            assert (pattern.time_s(GB), pattern.steps, pattern.sent_share) == (0, 0, 0)


@pytest.mark.parametrize("algorithm", ["ring", "halving-doubling", "direct"])
@pytest.mark.parametrize("op", ["reduce-scatter", "all-gather"])
def test_c2_halves_of_an_all_reduce(op, algorithm):
    assert ms(op, algorithm, switch(8)) == exactly(8.75)


def test_c2_all_to_all_on_a_switch_and_on_rings():
    assert ms("all-to-all", "direct", switch(8)) == exactly(8.75)
    for algorithm in ("ring", "direct"):
        assert ms("all-to-all", algorithm, ring_of(8)) == exactly(10.0)
        assert ms("all-to-all", algorithm, ring_of(16)) == exactly(20.0)


@pytest.mark.parametrize("ranks", range(2, 10))
def test_c2_an_all_to_all_loads_every_link_of_a_ring_alike(ranks):
    pattern = lay_out("all-to-all", "ring", one_group(ranks), ring_of(ranks))
    # Of n^2 messages of 1/n, each passes its distance in links; there are n links each way.
    distances = [min((b - a) % ranks, (a - b) % ranks) for a in range(ranks) for b in range(ranks)]
    shares = pattern.shares()
    links = 2 * ranks if ranks > 2 else 2
    assert shares == exactly(np.full(len(shares), sum(distances) / ranks / links))


def test_c4_hosts_with_a_nic_for_each_gpu_or_one():
    # Seminar C3.
    assert ms("all-reduce", "hierarchical", cluster(16, 8)) == pytest.approx(6.39, abs=0.005)
    shared = cluster(16, 8, shared_nic=True)
    assert ms("all-reduce", "hierarchical", shared) == pytest.approx(23.9, abs=0.05)
    assert ms("all-reduce", "ring", cluster(16, 8)) == exactly(37.5)


def test_c4_equal_links_are_a_flat_ring():
    assert ms("all-reduce", "hierarchical", cluster(16, 8, 100, 100)) == exactly(18.75)


def test_t2_tensor_parallel_over_two_hosts():
    size_bytes, network = 2 * 8192 * 4096 * 2, cluster(16, 8)
    inside = ms("all-reduce", "ring", network, size_bytes, rows(16, 8))
    assert inside == pytest.approx(0.522, abs=5e-4)
    both = ms("all-reduce", "hierarchical", network, size_bytes)
    assert both == pytest.approx(0.857, abs=1e-3)
    assert both / inside == pytest.approx(1.64, abs=0.005)
    flat = ms("all-reduce", "ring", network, size_bytes)
    assert flat == pytest.approx(5.03, abs=0.005)
    assert flat / inside == pytest.approx(9.6, abs=0.05)


def test_m2_partial_to_shard_and_to_replicate():
    assert ms("reduce-scatter", "ring", switch(8)) == exactly(8.75)
    assert ms("all-reduce", "ring", switch(8)) == exactly(17.5)


@pytest.mark.parametrize(
    ("ranks", "expected", "steps"),
    [(2, 10, 2), (4, 15, 4), (8, 17.5, 6), (6, 35, 6), (3, 30, 4), (5, 35, 6)],
)
def test_c5_halving_doubling(ranks, expected, steps):
    assert ms("all-reduce", "halving-doubling", switch(ranks)) == exactly(expected)
    slow = switch(ranks, latency_s=US)
    assert ms("all-reduce", "halving-doubling", slow, 0.0) == exactly(steps * 1e-3)


def test_c6_trees():
    assert ms("all-reduce", "tree", switch(8)) == exactly(60)
    assert ms("all-reduce", "tree", switch(8, latency_s=US), 0.0) == exactly(6e-3)
    assert ms("all-reduce", "double-binary-tree", switch(8)) == exactly(20)


@pytest.mark.parametrize("ranks", [2, 3, 4, 5, 8, 13, 64, 100])
def test_c6_a_double_tree_loads_no_link_with_more_than_twice_the_array(ranks):
    assert ms("broadcast", "double-binary-tree", switch(ranks)) == exactly(10)
    assert ms("reduce", "double-binary-tree", switch(ranks)) == exactly(10)
    # Two ranks: one link each way carries it all once.
    assert ms("all-reduce", "double-binary-tree", switch(ranks)) == exactly(
        10 if ranks == 2 else 15 if ranks == 3 else 20
    )


def test_c7_both_directions_of_a_ring():
    assert ms("all-reduce", "bidirectional-ring", ring_of(8)) == exactly(8.75)
    assert ms("all-reduce", "bidirectional-ring", switch(8)) == exactly(17.5)


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("all-reduce", 10),
        ("reduce-scatter", 8.75),
        ("all-gather", 8.75),
        ("broadcast", 10),
        ("reduce", 10),
    ],
)
def test_c7_switches_that_add_up(op, expected):
    assert ms(op, "in-network", switch(8, reduces=True)) == exactly(expected)
    # Once to the switch and back.
    assert ms(op, "in-network", switch(8, US, True), 0.0) == exactly(1e-3)


@pytest.mark.parametrize("shape", [(2, 8), (8, 2)])
def test_c10_torus_by_dimension(shape):
    network = torus_of(*shape, latency_s=US)
    assert ms("all-reduce", "torus", network, 0.0) == exactly(16e-3)
    # 8 x 2: 2(7/8) S/2 + 2(1/2) S; 2 x 8: 2(7/8) S + 2(1/2) S/8.
    assert ms("all-reduce", "torus", network) == exactly(18.75 + 16e-3)


def test_c11_gather_over_hosts_pipelined():
    # Seminar F3: one block of 218 M parameters in 2 bytes over 16 hosts.
    network = cluster(128, 8)
    pipelined = ms("all-gather", "hierarchical-pipelined", network, 436e6)
    assert pipelined == pytest.approx(1.02, abs=0.005)
    assert ms("all-gather", "ring", network, 436e6) == pytest.approx(8.66, abs=0.01)
    one_after_the_other = ms("all-gather", "hierarchical", network, 436e6)
    assert one_after_the_other == exactly((15 / 16 / 8 / 50 + 7 / 8 / 450) * 436)


def test_chains_trees_and_single_messages_from_one_root():
    network = switch(8, latency_s=US)
    for op in ("broadcast", "reduce"):
        assert ms(op, "ring", network) == exactly(10 + 7e-3)
        assert ms(op, "tree", network) == exactly(30 + 3e-3)
        assert ms(op, "double-binary-tree", network) == exactly(10 + 3e-3)
        assert ms(op, "direct", network) == exactly(70 + 7e-3)
    assert ms("send", "direct", network, groups=rows(2, 2)) == exactly(10 + 1e-3)


def test_tiers_nest():
    """Hosts of 2, racks of 2 hosts, 2 racks: 1/2, then 1/2 of a half, then 1/2 of a quarter."""
    speeds = {"host": 400.0, "rack": 100.0, "spine": 25.0}
    tiers = [
        Tier(name=name, children=2, link=link(speed), links=2**k, per_gpu=True)
        for k, (name, speed) in enumerate(speeds.items())
    ]
    expected = 2 * (1 / 2 / 400 + 1 / 4 / 100 + 1 / 8 / 25) * 1e3
    assert ms("all-reduce", "hierarchical", Tiered(tiers, 8)) == exactly(expected)
    # In another order of ranks the same hosts are found.
    shuffled = np.array([[5, 0, 3, 6, 1, 7, 4, 2]])
    assert ms("all-reduce", "hierarchical", Tiered(tiers, 8), groups=shuffled) == exactly(expected)


def test_hosts_of_different_sizes():
    # 2 and 1 GPUs: halves inside the larger host; then both halves of the array between the hosts,
    # through the NIC of its owner in the large host and through one NIC in the small one.
    network = cluster(3, 2)
    expected = 2 * (1 / 2 / 450 + 2 * (1 / 2 * 1 / 2) / 50) * 1e3
    assert ms("all-reduce", "hierarchical", network) == exactly(expected)


@pytest.mark.parametrize("ranks", [11, 12, 13])
def test_hosts_of_different_sizes_send_as_much_as_a_ring(ranks):
    # Every host receives the whole array once and gives it away once: 2(N-1) over NICs in all.
    network = cluster(ranks, 4)
    pattern = lay_out("all-reduce", "hierarchical", one_group(ranks), network)
    ups = pattern.shares()[2 * ranks : 3 * ranks]
    hosts = -(-ranks // 4)
    assert ups.sum() == exactly(2 * (hosts - 1))


def test_groups_cut_into_hosts_in_different_ways():
    # Groups of 6 over hosts of 4: 4 + 2 and 2 + 4, laid at the same time as on their own.
    network = cluster(12, 4)
    both = lay_out("all-reduce", "hierarchical", rows(12, 6), network)
    alone = [lay_out("all-reduce", "hierarchical", row[None], network) for row in rows(12, 6)]
    assert both.shares() == pytest.approx(sum(p.shares() for p in alone), rel=1e-12)


def test_sub_grids():
    network = torus_of(4, 4)
    columns = np.arange(16).reshape(4, 4).T
    assert ms("all-reduce", "torus", network, groups=columns) == exactly(15)
    blocks = np.array([[0, 1, 4, 5], [2, 3, 6, 7]])
    # Two rings of two, one after the other; what a line sends back passes the link back.
    assert ms("all-reduce", "torus", network, groups=blocks) == exactly(10 + 5)
    with pytest.raises(ConfigError, match="blocks, rows or planes of 4 x 4 GPUs"):
        phases("all-reduce", "torus", np.array([[0, 1, 2, 5]]), network)


@pytest.mark.parametrize(
    ("op", "algorithm", "match"),
    [
        ("all-to-all", "tree", "all-to-all can use ring, direct"),
        ("send", "ring", "send can use direct"),
        ("all-reduce", "rings", "rings: all-reduce can use ring, bidirectional-ring"),
        ("all-reduce", "torus", "needs a ring, mesh or torus of GPUs"),
        ("all-reduce", "in-network", "needs switches that can add up"),
        ("allreduce", "ring", "operation allreduce: must be one of all-reduce"),
        ("send", "direct", "a send joins two"),
    ],
)
def test_what_does_not_go_together_is_said(op, algorithm, match):
    with pytest.raises(ConfigError, match=match):
        lay_out(op, algorithm, one_group(8), switch(8))
