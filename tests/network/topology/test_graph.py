"""The route: fewest hops, then lowest latency, then widest bottleneck, then smallest node ids."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triosim.errors import Infeasible
from triosim.network.topology.base import LinkSpec, one_group
from triosim.network.topology.graph import Edge, Graph, connection, hybrid_cube_mesh


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


def test_of_parallel_edges_the_first_of_the_widest_is_used():
    topology = Graph(Edge(source=0, target=1, bytes_per_s=width) for width in (1.0, 3.0, 3.0))
    assert topology.route(0, 1) == (1,)


def test_a_search_goes_on_where_an_earlier_one_stopped():
    topology = Graph(Edge(source=i, target=i + 1, bytes_per_s=1.0) for i in range(5))
    for target in (2, 5, 1, 4):
        assert topology.route(0, target) == tuple(range(target))


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


@settings(max_examples=200)
@given(
    st.lists(edge.filter(lambda e: e[0] != e[1]), min_size=1, max_size=16),
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(1, 3)), max_size=8),
)
def test_traffic_and_latency_follow_the_routes(edges, pairs):
    topology = Graph(
        (
            Edge(source=a, target=b, bytes_per_s=width, latency_s=latency)
            for a, b, width, latency in edges
        ),
        5,
    )
    routes = []
    for a, b, _ in pairs:
        try:
            routes.append(topology.route(a, b))
        except Infeasible:
            pairs = [pair for pair in pairs if pair[:2] != (a, b)]
    loads = np.zeros(len(edges))
    for links, (_, _, size) in zip(routes, pairs, strict=True):
        loads[list(links)] += size
    source, target, size = np.array(pairs, dtype=int).reshape(-1, 3).T
    assert topology.traffic(source, target, size).tolist() == loads.tolist()
    latency_s = [sum(edges[i][3] for i in links) for links in routes]
    assert topology.latency_s(source, target).tolist() == latency_s


def test_a_pair_that_nothing_joins_is_named():
    topology = Graph(connection(0, 1, LinkSpec(bytes_per_s=1.0)), 3, ["a", "b", "c"])
    for ask in (topology.exchange, lambda groups, _: topology.diameter_s(groups)):
        with pytest.raises(Infeasible, match="No path leads from a to c"):
            ask(one_group(3), 1.0)


NVLINK = LinkSpec(bytes_per_s=25e9, latency_s=1e-6, protocol="nvlink2")
# Numbers of NVLinks that `nvidia-smi topo -m` prints on hosts with eight V100-SXM2, as in the
# benchmark reports of OneFlow's DLPerf.
V100_HOST = (
    (0, 1, 1, 2, 2, 0, 0, 0), (1, 0, 2, 1, 0, 2, 0, 0), (1, 2, 0, 2, 0, 0, 1, 0),
    (2, 1, 2, 0, 0, 0, 0, 1), (2, 0, 0, 0, 0, 1, 1, 2), (0, 2, 0, 0, 1, 0, 2, 1),
    (0, 0, 1, 0, 1, 2, 0, 2), (0, 0, 0, 1, 2, 1, 2, 0),
)  # fmt: skip


def test_the_hybrid_cube_mesh_has_the_nvlinks_of_a_dgx_1():
    topology = hybrid_cube_mesh(NVLINK)
    source, target = topology.ends()
    found = np.zeros((8, 8))
    found[source, target] = topology.capacity_bytes_per_s / 25e9
    assert found.astype(int).tolist() == [list(row) for row in V100_HOST]
    assert found.sum(axis=0).tolist() == found.sum(axis=1).tolist() == [6.0] * 8


def test_gpus_of_a_dgx_1_are_one_or_two_hops_apart():
    topology = hybrid_cube_mesh(NVLINK)
    joined = np.array(V100_HOST) > 0
    for a, b in itertools.permutations(range(8), 2):
        assert len(topology.route(a, b)) == (1 if joined[a, b] else 2)
    # The widest of the two ways from 0 to 7 is by two double links, over 4.
    assert [topology.edges[i].target for i in topology.route(0, 7)] == [4, 7]
    assert topology.diameter_s(one_group(8)) == 2e-6
    assert topology.protocol(one_group(8)) == "nvlink2"
