"""The route: fewest hops, then lowest latency, then widest bottleneck, then smallest node ids."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triosim.errors import Infeasible
from triosim.network.topology.graph import Edge, Graph


def route(edges, source, target):
    topology = Graph(
        Edge(source=a, target=b, bytes_per_s=width, latency_s=latency)
        for a, b, width, latency in edges
    )
    links = topology.route(source, target)
    return [source] + [topology.edges[i].target for i in links]


def test_fewest_hops_beat_latency_and_width():
    assert route([(0, 9, 1, 100), (0, 1, 50, 0), (1, 9, 50, 0)], 0, 9) == [0, 9]


def test_then_the_lowest_latency():
    edges = [(0, 1, 50, 2), (1, 9, 50, 2), (0, 2, 1, 1), (2, 9, 1, 1)]
    assert route(edges, 0, 9) == [0, 2, 9]


def test_then_the_widest_bottleneck():
    edges = [(0, 1, 9, 1), (1, 9, 2, 1), (0, 2, 3, 1), (2, 9, 3, 1)]
    assert route(edges, 0, 9) == [0, 2, 9]


def test_then_the_smallest_node_ids():
    edges = [(0, 2, 1, 1), (2, 9, 1, 1), (0, 1, 1, 1), (1, 9, 1, 1)]
    assert route(edges, 0, 9) == [0, 1, 9]


def test_a_narrow_link_further_on_evens_widths_out_so_that_ids_decide():
    edges = [(0, 1, 5, 1), (1, 3, 5, 1), (0, 2, 9, 1), (2, 3, 9, 1), (3, 9, 1, 1)]
    assert route(edges, 0, 9) == [0, 1, 3, 9]


def test_no_way_to_itself_and_none_where_there_is_none():
    assert route([(0, 1, 1, 0)], 0, 0) == [0]
    with pytest.raises(Infeasible, match="from node 1 to node 0"):
        route([(0, 1, 1, 0)], 1, 0)


edge = st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(1, 3), st.integers(0, 2))


@settings(max_examples=200)
@given(st.lists(edge.filter(lambda e: e[0] != e[1]), max_size=12, unique_by=lambda e: e[:2]))
def test_agrees_with_trying_every_path(edges):
    by_pair = {(a, b): (width, latency) for a, b, width, latency in edges}
    paths = []
    for length in range(4):
        for middle in itertools.permutations((1, 2, 3), length):
            nodes = (0, *middle, 4)
            hops = list(itertools.pairwise(nodes))
            if all(hop in by_pair for hop in hops):
                width = min(by_pair[hop][0] for hop in hops)
                latency = sum(by_pair[hop][1] for hop in hops)
                paths.append((len(hops), latency, -width, nodes))
    if not paths:
        with pytest.raises(Infeasible):
            route(edges, 0, 4)
    else:
        assert route(edges, 0, 4) == list(min(paths)[3])
