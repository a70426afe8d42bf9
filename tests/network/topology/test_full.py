"""A link between any two GPUs."""

import numpy as np
import pytest

from triosim.errors import ConfigError
from triosim.network.topology.base import LinkSpec, one_group
from triosim.network.topology.full import FullyConnected

LINK = LinkSpec(bytes_per_s=50.0, latency_s=2.0, efficiency=0.9, protocol="xgmi")


def test_every_pair_has_a_link_of_its_own():
    topology = FullyConnected(5, LINK)
    ends = list(zip(*(end.tolist() for end in topology.ends()), strict=True))
    assert sorted(ends) == [(a, b) for a in range(5) for b in range(5) if a != b]
    for link, (a, b) in enumerate(ends):
        loads = topology.traffic(np.array([a]), np.array([b]), np.array([3.0]))
        assert loads.nonzero()[0].tolist() == [link]
    assert topology.capacity_bytes_per_s.tolist() == [45.0] * 20


def test_an_exchange_loads_every_link_once():
    topology = FullyConnected(8, LINK)
    assert topology.exchange(one_group(8), 3.0).tolist() == [3.0] * 56
    assert topology.diameter_s(one_group(8)) == 2.0
    assert topology.protocol(one_group(8)) == "xgmi"


@pytest.mark.parametrize("ranks", [0, 1025])
def test_how_many_there_can_be(ranks):
    with pytest.raises(ConfigError, match="links between any two are for 1 to 1,024 GPUs"):
        FullyConnected(ranks, LINK)
