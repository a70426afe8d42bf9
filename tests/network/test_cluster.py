"""Loads that a cluster hands out, and what they become once all are known."""

import numpy as np
import pytest

from triosim.network.cluster import Carried, Cluster, Pending
from triosim.network.links import Load
from triosim.network.topology.base import LinkSpec
from triosim.network.topology.describe import topology_of

B, ALPHA = 10e9, 3e-6
LINK = LinkSpec(bytes_per_s=B, latency_s=ALPHA)
REMOTE = Load(bytes_by_link=((0, 5.0),), latency_s=0.0, sent_bytes=0.0)


def cluster(name, ranks, **settings):
    return Cluster(topology_of(name, ranks, LINK), **({"protocol": False} | settings))


def seconds(load, links, first=0):
    """A load's time on its own."""
    return sum(
        part.latency_s + max((b / links[k - first].bytes_per_s for k, b in part.bytes_by_link),
                             default=0.0)
        for part in load.parts
    )  # fmt: skip


def test_a_ring_all_reduce_is_one_link_that_stands_for_all():
    ring = cluster("ring", 8, algorithm="ring")
    pending = ring.all_reduce(8e6)
    assert isinstance(pending, Pending)
    assert pending.sent_bytes == pytest.approx(2 * 7 / 8 * 8e6)
    links, (load,) = ring.settle([pending], 0)
    (link,) = links
    assert (link.members, link.bytes_per_s) == (8, B)
    assert link.name == "GPU 0 to GPU 1 and 7 like it"
    assert load.bytes_by_link == ((0, pytest.approx(14e6)),)
    assert load.latency_s == pytest.approx(14 * ALPHA)
    assert load.then == ()
    assert (load.operation, load.algorithm, load.protocol) == ("all-reduce", "ring", None)


def test_links_are_numbered_from_the_first_and_other_loads_stay():
    ring = cluster("ring", 4, algorithm="ring")
    links, loads = ring.settle([REMOTE, ring.all_reduce(1e6), REMOTE], 7)
    assert loads[0] is loads[2] is REMOTE
    assert [k for k, _ in loads[1].bytes_by_link] == [7]
    assert len(links) == 1


def test_unfolded_every_link_that_carries_something_is_one():
    ring = cluster("ring", 4, algorithm="ring", fold=False)
    links, (load,) = ring.settle([ring.all_reduce(1e6)], 0)
    assert [(k.source, k.target, k.members) for k in links] == [
        (0, 1, 1), (1, 2, 1), (2, 3, 1), (3, 0, 1),
    ]  # fmt: skip
    assert len(load.bytes_by_link) == 4


def test_one_transfer_makes_the_others_of_its_size_no_links_more():
    many = cluster("torus", 16)
    loads = [many.all_reduce(size) for size in (1e3, 1e6, 1e9)]
    links, settled = many.settle(loads, 0)
    assert all(isinstance(load, Carried) for load in settled)
    for pending, load in zip(loads, settled, strict=True):
        assert seconds(load, links) == pytest.approx(pending.planned.time_s)


def test_a_send_takes_its_route():
    grid = cluster("mesh:2x4", 8)
    links, (load,) = grid.settle([grid.send(3, 4, 2e6)], 0)
    assert load.latency_s == pytest.approx(4 * ALPHA)
    assert seconds(load, links) == pytest.approx(4 * ALPHA + 2e6 / B)
    assert load.sent_bytes == pytest.approx(2e6)  # what its sender sends
    assert load.operation == "send"


@pytest.mark.parametrize("size", [0.0, 1e6])
def test_one_rank_moves_nothing(size):
    alone = cluster("ring", 1)
    links, (load,) = alone.settle([alone.all_reduce(size)], 0)
    assert (links, load.bytes_by_link, load.latency_s, load.sent_bytes) == ([], (), 0.0, 0.0)


def test_protocols_grow_the_bytes_and_take_their_time():
    groups = np.arange(16, dtype=np.int64)[None]
    topology = topology_of("dgx-h100", 16)
    ideal, real = (Cluster(topology, protocol=p, algorithm="ring") for p in (False, True))
    plain, costly = (k.collective("all-gather", groups, 1e6) for k in (ideal, real))
    assert costly.planned.time_s > plain.planned.time_s
    links, (load,) = real.settle([costly], 0)
    assert load.protocol == costly.planned.cost.protocol is not None
    assert seconds(load, links) == pytest.approx(costly.planned.time_s)


def test_siblings_share_the_links_between_them():
    near = cluster("ring", 8, algorithm="ring")
    one = near.collective("all-reduce", np.array([[0, 2, 4, 6]]), 1e6)
    both = near.collective("all-reduce", np.array([[0, 2, 4, 6], [1, 3, 5, 7]]), 1e6)
    assert both.planned.time_s - both.latency_s == pytest.approx(
        2 * (one.planned.time_s - one.latency_s)
    )
