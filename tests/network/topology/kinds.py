"""Small topologies of every kind, each with an independent list of the nodes on a way."""

import numpy as np

from triosim.network.topology.base import LinkSpec
from triosim.network.topology.dragonfly import Dragonfly
from triosim.network.topology.full import FullyConnected
from triosim.network.topology.graph import Graph, connection, hybrid_cube_mesh
from triosim.network.topology.grid import Grid
from triosim.network.topology.hosts import Hosts
from triosim.network.topology.tiered import Tier, Tiered

SLOW = LinkSpec(bytes_per_s=1.0, latency_s=1.0, protocol="slow")
FAST = LinkSpec(bytes_per_s=8.0, latency_s=0.1, protocol="fast")
NETWORK = Tier(name="fabric", children=0, link=SLOW, links=4, per_gpu=True)


def switched(ranks):
    return Tiered([Tier(name="NVSwitch", children=4, link=FAST), NETWORK], ranks)


def rails(ranks):
    rail = Tier(name="rail", children=3, link=SLOW, links=2, rails=True)
    spine = Tier(name="spine", children=0, link=SLOW, links=2)
    return Tiered([Tier(name="NVSwitch", children=4, link=FAST), rail, spine], ranks)


def leaf_spine(ranks):
    leaf = Tier(name="leaf", children=2, link=SLOW)
    core = Tier(name="spine", children=0, link=SLOW, links=3)
    return Tiered([Tier(name="NVSwitch", children=3, link=FAST), leaf, core], ranks)


def tree(ranks):
    """GPUs 4 a switch, switches 2 a root; the first `ranks` GPUs."""
    switches, root = -(-ranks // 4), ranks + -(-ranks // 4)
    edges = [connection(gpu, ranks + gpu // 4, FAST) for gpu in range(ranks)]
    edges += [connection(ranks + i, root, SLOW, 2) for i in range(switches)]
    return Graph([edge for pair in edges for edge in pair], ranks)


KINDS = {
    "ring": lambda ranks: Grid((ranks,), True, FAST),
    "torus": lambda ranks: Grid((3, -(-ranks // 3)), True, (SLOW, FAST), ranks),
    "mesh": lambda ranks: Grid((2, 2, -(-ranks // 4)), False, FAST, ranks),
    "fully connected": lambda ranks: FullyConnected(ranks, FAST),
    "graph": tree,
    "switched": switched,
    "rails": rails,
    "leaf and spine": leaf_spine,
    "hosts of cube meshes": lambda ranks: Hosts(hybrid_cube_mesh(FAST), [NETWORK], ranks),
    "hosts of rings": lambda ranks: Hosts(
        Grid((3,), True, FAST),
        [
            Tier(name="leaf", children=2, link=SLOW),
            Tier(name="spine", children=0, link=SLOW, links=2),
        ],
        ranks,
    ),
    "hosts of trees": lambda ranks: Hosts(tree(5), [NETWORK], ranks),
    "dragonfly": lambda ranks: Dragonfly(
        -(-ranks // 6), 3, 2, gpu_link=FAST, local_link=FAST, global_link=SLOW, ranks=ranks
    ),
}


def share_of_pair(topology, source, target):
    """What of one byte from source to target passes each link."""
    return topology.traffic(np.array([source]), np.array([target]), np.ones(1))
