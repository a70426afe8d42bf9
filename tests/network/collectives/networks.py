"""Networks that the tests of collectives run on: 100 GB/s links without latency unless told."""

import numpy as np

from triosim.network.topology.base import LinkSpec, one_group
from triosim.network.topology.full import FullyConnected
from triosim.network.topology.grid import Grid
from triosim.network.topology.tiered import Tier, Tiered

GB = 1e9


def link(gb_per_s=100.0, latency_s=0.0):
    return LinkSpec(bytes_per_s=gb_per_s * GB, latency_s=latency_s)


def switch(ranks, latency_s=0.0, reduces=False):
    """One full switch."""
    tier = Tier(name="switch", children=0, link=link(latency_s=latency_s), reduces=reduces)
    return Tiered([tier], ranks)


def cluster(ranks, per_host, inside=450.0, nic=50.0, shared_nic=False, latency_s=0.0):
    """Hosts joined by a switch, with a NIC for each GPU or one for the host."""
    inner = Tier(name="host", children=per_host, link=link(inside, latency_s), reduces=True)
    outer = Tier(
        name="switch",
        children=0,
        link=link(nic, latency_s),
        links=1 if shared_nic else per_host,
        per_gpu=not shared_nic,
        reduces=True,
    )
    return Tiered([inner, outer], ranks)


def ring_of(ranks, latency_s=0.0):
    return Grid((ranks,), True, link(latency_s=latency_s))


def mesh_of(ranks, latency_s=0.0):
    """A link between any two ranks."""
    return FullyConnected(ranks, link(latency_s=latency_s))


def torus_of(*shape, latency_s=0.0):
    return Grid(shape, True, link(latency_s=latency_s))


def rows(ranks, columns):
    """Sibling groups of neighbours."""
    return np.arange(ranks, dtype=np.int64).reshape(-1, columns)


__all__ = ["GB", "cluster", "link", "mesh_of", "one_group", "ring_of", "rows", "switch", "torus_of"]
