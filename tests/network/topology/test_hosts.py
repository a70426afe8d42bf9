"""Hosts with a topology inside: what stays in a host, and what leaves it."""

import numpy as np
import pytest

from triosim.errors import ConfigError
from triosim.network.topology.base import LinkSpec, one_group
from triosim.network.topology.full import FullyConnected
from triosim.network.topology.graph import Graph, connection
from triosim.network.topology.hosts import Hosts
from triosim.network.topology.tiered import Tier, Tiered

XGMI = LinkSpec(bytes_per_s=50.0, latency_s=1.0, protocol="xgmi")
NIC = LinkSpec(bytes_per_s=25.0, latency_s=3.0, protocol="infiniband")
FABRIC = Tier(name="fabric", children=0, link=NIC, links=4, per_gpu=True)


def names(topology, loads):
    source, target = topology.ends()
    used = np.flatnonzero(loads)
    return [(topology.node_name(source[i]), topology.node_name(target[i]), loads[i]) for i in used]


def send(topology, source, target):
    return topology.traffic(np.array([source]), np.array([target]), np.array([6.0]))


def test_inside_a_host_only_its_own_links_are_used():
    topology = Hosts(FullyConnected(4, XGMI), [FABRIC], 10)
    assert names(topology, send(topology, 5, 6)) == [("GPU 5", "GPU 6", 6.0)]
    assert topology.latency_s(np.array([5]), np.array([6])).tolist() == [1.0]
    assert topology.protocol(np.array([[4, 6]])) == "xgmi"


def test_between_hosts_the_gpus_own_nics_are_used_and_no_link_inside():
    topology = Hosts(FullyConnected(4, XGMI), [FABRIC], 10)
    assert sorted(names(topology, send(topology, 2, 9))) == [
        ("GPU 2", "host 0", 6.0),
        ("fabric 0", "host 2", 6.0),
        ("host 0", "fabric 0", 6.0),
        ("host 2", "GPU 9", 6.0),
    ]
    assert topology.latency_s(np.array([2]), np.array([9])).tolist() == [3.0]
    assert topology.protocol(one_group(10)) == "infiniband"
    used = np.flatnonzero(send(topology, 2, 9))
    assert topology.capacity_bytes_per_s[used].tolist() == [25.0] * 4


def test_what_leaves_the_hosts_is_what_leaves_switched_ones():
    """Beyond the hosts it makes no difference what is in them."""
    topology = Hosts(FullyConnected(4, XGMI), [FABRIC], 10)
    switched = Tiered([Tier(name="host", children=4, link=XGMI), FABRIC], 10)
    for groups in (one_group(10), np.arange(10).reshape(5, 2), np.array([[0, 4, 8], [1, 5, 9]])):
        ours, theirs = topology.exchange(groups, 1.0), switched.exchange(groups, 1.0)
        assert ours[-2 * 10 :].tolist() == theirs[-2 * 10 :].tolist()


def test_hosts_with_switches_inside():
    """Two pairs of GPUs on two PCIe switches under one root."""
    edges = [connection(gpu, 4 + gpu // 2, XGMI) for gpu in range(4)]
    edges += [connection(switch, 6, XGMI) for switch in (4, 5)]
    labels = [*(f"GPU {i}" for i in range(4)), "PCIe 0", "PCIe 1", "root"]
    inside = Graph([edge for pair in edges for edge in pair], 4, labels)
    topology = Hosts(inside, [FABRIC], 7)
    assert names(topology, send(topology, 4, 6)) == [
        ("GPU 4", "PCIe 0 of host 1", 6.0),
        ("PCIe 1 of host 1", "GPU 6", 6.0),
        ("PCIe 0 of host 1", "root of host 1", 6.0),
        ("root of host 1", "PCIe 1 of host 1", 6.0),
    ]
    assert topology.node_name(7) == "free place 7"


def test_units_are_the_hosts():
    topology = Hosts(FullyConnected(4, XGMI), [FABRIC], 8)
    assert [unit.tolist() for unit in topology.units(np.arange(8))] == [[0] * 4 + [1] * 4]
    assert topology.units(np.arange(4)) == []


def test_hosts_need_a_network():
    with pytest.raises(ConfigError, match="needs at least one tier to join the hosts"):
        Hosts(FullyConnected(4, XGMI), [], 4)
