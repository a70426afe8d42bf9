"""What holds for every topology."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.network.topology.kinds import KINDS, share_of_pair
from tests.network.topology.walking import as_arrays, net_bytes, ordered_pairs
from triosim.network.topology.base import one_group

every_kind = pytest.mark.parametrize("kind", KINDS)
sizes = st.integers(2, 23)


@st.composite
def groups_of(draw, ranks):
    size = draw(st.integers(1, ranks))
    order = draw(st.permutations(range(ranks)))
    rows = draw(st.integers(1, ranks // size))
    return np.array(order[: rows * size]).reshape(rows, size)


@every_kind
@settings(max_examples=30)
@given(data=st.data(), ranks=sizes)
def test_traffic_adds_up_over_pairs(kind, data, ranks):
    topology = KINDS[kind](ranks)
    rank = st.integers(0, ranks - 1)
    pairs = data.draw(st.lists(st.tuples(rank, rank, st.sampled_from([0.3, 1.0, 7.0])), max_size=9))
    expected = sum(
        (size * share_of_pair(topology, a, b) for a, b, size in pairs),
        np.zeros(len(topology.capacity_bytes_per_s)),
    )
    got = topology.traffic(*as_arrays(pairs))
    assert got == pytest.approx(expected, rel=1e-12)
    assert np.array_equal(got > 0, expected > 0)


@every_kind
@settings(max_examples=30)
@given(data=st.data(), ranks=sizes)
def test_an_exchange_is_the_traffic_of_all_its_pairs(kind, data, ranks):
    topology = KINDS[kind](ranks)
    groups = data.draw(groups_of(ranks))
    pairs = as_arrays(ordered_pairs(groups.tolist(), 0.7))
    expected, got = topology.traffic(*pairs), topology.exchange(groups, 0.7)
    assert got == pytest.approx(expected, rel=1e-12)
    assert np.array_equal(got > 0, expected > 0)


@every_kind
@settings(max_examples=30)
@given(data=st.data(), ranks=sizes)
def test_links_lead_from_each_source_to_its_target(kind, data, ranks):
    """What enters a node leaves it, but for one byte that starts and one that ends."""
    topology = KINDS[kind](ranks)
    source, target = (data.draw(st.integers(0, ranks - 1)) for _ in range(2))
    balance = net_bytes(topology, share_of_pair(topology, source, target))
    expected = np.zeros(len(balance))
    expected[target] += 1.0
    expected[source] -= 1.0
    assert balance == pytest.approx(expected, abs=1e-12)


@every_kind
@settings(max_examples=30)
@given(data=st.data(), ranks=sizes)
def test_latency_is_that_of_the_links_on_the_way(kind, data, ranks):
    topology = KINDS[kind](ranks)
    groups = data.draw(groups_of(ranks))
    source, target, _ = as_arrays(ordered_pairs(groups.tolist(), 1.0))
    expected = [
        share_of_pair(topology, a, b) @ topology.link_latency_s
        for a, b in zip(source, target, strict=True)
    ]
    assert topology.latency_s(source, target) == pytest.approx(expected)
    assert topology.diameter_s(groups) == pytest.approx(max(expected, default=0.0))


@every_kind
@settings(max_examples=30)
@given(data=st.data(), ranks=sizes)
def test_the_share_that_passes_a_link_is_the_load_of_one_byte(kind, data, ranks):
    topology = KINDS[kind](ranks)
    source, target, _ = as_arrays(ordered_pairs([range(ranks)], 1.0))
    link = data.draw(st.integers(0, len(topology.capacity_bytes_per_s) - 1))
    some = data.draw(st.lists(st.integers(0, len(source) - 1), min_size=1, max_size=20))
    source, target = source[some], target[some]
    expected = [share_of_pair(topology, a, b)[link] for a, b in zip(source, target, strict=True)]
    assert topology.passing(link, source, target) == pytest.approx(expected)


@every_kind
@pytest.mark.parametrize("ranks", [2, 6, 13, 24])
def test_arrays_have_one_entry_for_each_link_and_nodes_have_names_of_their_own(kind, ranks):
    topology = KINDS[kind](ranks)
    source, target = topology.ends()
    assert topology.ranks == ranks
    assert len({len(source), len(target), len(topology.capacity_bytes_per_s)}) == 1
    assert len(topology.link_latency_s) == len(topology.strands()) == len(source)
    assert (topology.capacity_bytes_per_s > 0).all()
    assert (source != target).all()
    nodes = range(int(max(source.max(), target.max())) + 1)
    names = [topology.node_name(node) for node in nodes]
    assert len(set(names)) == len(names)
    assert names[:ranks] == [f"GPU {rank}" for rank in range(ranks)]


@every_kind
def test_every_connection_goes_both_ways(kind):
    topology = KINDS[kind](12)
    there = sorted(zip(*(end.tolist() for end in topology.ends()), strict=True))
    assert there == sorted((b, a) for a, b in there)


@every_kind
def test_a_rank_and_itself(kind):
    topology = KINDS[kind](12)
    ranks = np.arange(12)
    assert not topology.traffic(ranks, ranks, np.ones(12)).any()
    assert not topology.latency_s(ranks, ranks).any()
    assert not topology.exchange(ranks[:, None], 1.0).any()
    assert topology.diameter_s(ranks[:, None]) == 0.0
    assert topology.protocol(ranks[:, None]) is None


@every_kind
def test_the_units_split_the_ranks(kind):
    for unit in KINDS[kind](12).units(np.arange(12)):
        assert 1 < len(set(unit.tolist())) < 12


@every_kind
def test_protocols_are_those_of_links_on_the_way(kind):
    assert KINDS[kind](12).protocol(one_group(12)) in ("slow", "fast")
