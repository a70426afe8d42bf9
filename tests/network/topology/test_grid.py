"""Rings, meshes and tori against messages followed hop by hop."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.network.topology.walking import (
    as_arrays,
    links_between,
    loads,
    net_bytes,
    ordered_pairs,
)
from triosim.errors import ConfigError
from triosim.network.topology.base import LinkSpec, one_group
from triosim.network.topology.grid import Grid

LINK = LinkSpec(bytes_per_s=1.0, latency_s=1.0)


def walk(grid, shape, wrap, source, target):
    """Links and shares from source to target: the last dimension first, the shorter way round."""
    between = links_between(grid)
    place = list(np.unravel_index(source, shape))
    end = np.unravel_index(target, shape)
    path = []
    for j in reversed(range(len(shape))):
        n = shape[j]
        ahead, back = (end[j] - place[j]) % n, (place[j] - end[j]) % n
        if not wrap[j]:
            ways = [(1 if end[j] > place[j] else -1, 1.0)]
        elif ahead == back and n > 2:
            ways = [(1, 0.5), (-1, 0.5)]
        else:
            ways = [(1 if ahead <= back else -1, 1.0)]
        for step, share in ways:
            at = list(place)
            while at[j] != end[j]:
                here = np.ravel_multi_index(at, shape)
                at[j] = (at[j] + step) % n
                (link,) = between[here, np.ravel_multi_index(at, shape)]
                path.append((link, share))
        place[j] = end[j]
    return path


@st.composite
def grids(draw):
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=3)))
    wrap = tuple(draw(st.booleans()) for _ in shape)
    links = [LinkSpec(bytes_per_s=j + 1.0, latency_s=10.0**j) for j in range(len(shape))]
    places = math.prod(shape)
    grid = Grid(shape, wrap, links, draw(st.integers(max(1, places // 2), places)))
    return grid, shape, wrap


@st.composite
def some_groups(draw, ranks):
    size = draw(st.integers(1, min(ranks, 12)))
    order = draw(st.permutations(range(ranks)))
    rows = draw(st.integers(1, max(1, min(3, ranks // size))))
    return np.array(order[: rows * size]).reshape(rows, size)


@given(st.data())
def test_traffic_loads_the_links_of_every_walk(data):
    grid, shape, wrap = data.draw(grids())
    rank = st.integers(0, grid.ranks - 1)
    size = st.sampled_from([0.0, 0.1, 1.0, 3.0, 1e6])
    pairs = data.draw(st.lists(st.tuples(rank, rank, size), max_size=20))
    count = len(grid.capacity_bytes_per_s)
    got = grid.traffic(*as_arrays(pairs))
    expected = loads(lambda a, b: walk(grid, shape, wrap, a, b), pairs, count)
    largest = max((size for _, _, size in pairs), default=0.0)
    assert got == pytest.approx(expected, rel=1e-9, abs=1e-9 * largest)
    assert np.array_equal(got > 0, expected > 0)  # no dust on idle links


@given(st.data())
def test_an_exchange_is_the_traffic_of_all_its_pairs(data):
    grid, shape, wrap = data.draw(grids())
    groups = data.draw(some_groups(grid.ranks))
    pairs = ordered_pairs(groups.tolist(), 0.3)
    count = len(grid.capacity_bytes_per_s)
    expected = loads(lambda a, b: walk(grid, shape, wrap, a, b), pairs, count)
    got = grid.exchange(groups, 0.3)
    assert got == pytest.approx(expected, rel=1e-12)
    assert np.array_equal(got > 0, expected > 0)


@given(st.data())
def test_latency_is_the_sum_over_the_walk_and_the_diameter_the_largest(data):
    grid, shape, wrap = data.draw(grids())
    groups = data.draw(some_groups(grid.ranks))
    some = data.draw(st.lists(st.integers(0, grid.ranks - 1), min_size=1, max_size=5))
    wanted = [*itertools.product(some, range(grid.ranks)), *itertools.product(groups[0], groups[0])]
    everyone = sorted({(int(a), int(b)) for a, b in wanted})
    slow = {
        (a, b): sum(grid.link_latency_s[k] * share for k, share in walk(grid, shape, wrap, a, b))
        for a, b in everyone
    }
    source, target = np.array(everyone).T
    assert grid.latency_s(source, target) == pytest.approx(list(slow.values()))
    largest = max(slow[pair] for pair in itertools.product(groups[0].tolist(), repeat=2))
    assert grid.diameter_s(groups[:1]) == pytest.approx(largest)


@pytest.mark.parametrize("wrap", [True, False, (True, False, True)])
@pytest.mark.parametrize("kind", ["box", "boxes", "loose"])
def test_the_diameter_of_many_ranks_is_that_of_their_pairs(wrap, kind):
    shape = (6, 11, 15)
    links = [LinkSpec(bytes_per_s=1.0, latency_s=s) for s in (7.0, 0.4, 1.0)]
    grid = Grid(shape, wrap, links)
    groups = {
        "box": one_group(990),
        "boxes": np.arange(990).reshape(6, 165)[:5],
        "loose": np.random.default_rng(1).permutation(990)[None, :700],
    }[kind]
    pairs = grid.latency_s(groups[:, :, None], groups[:, None, :])
    assert grid.diameter_s(np.concatenate((groups, groups, groups))) == pytest.approx(pairs.max())


@given(st.data())
def test_what_enters_a_rank_is_addressed_to_it(data):
    grid, _, _ = data.draw(grids())
    rank = st.integers(0, grid.ranks - 1)
    pairs = data.draw(
        st.lists(st.tuples(rank, rank, st.integers(0, 9).map(float)), min_size=1, max_size=20)
    )
    if not len(grid.capacity_bytes_per_s):
        return
    source, target, size = as_arrays(pairs)
    balance = np.zeros(int(grid.ends()[0].max()) + 1)
    np.add.at(balance, target, size)
    np.add.at(balance, source, -size)
    assert net_bytes(grid, grid.traffic(source, target, size)) == pytest.approx(balance, abs=1e-9)


@pytest.mark.parametrize(("ranks", "share"), [(8, 1.0), (16, 2.0)])
def test_all_to_all_on_a_ring(ranks, share):
    """C2: n ranks send 1/n of the array to each other one; every link carries 1.0 and 2.0 S."""
    ring = Grid((ranks,), True, LINK)
    assert ring.exchange(one_group(ranks), 1.0 / ranks) == pytest.approx(np.full(2 * ranks, share))


@pytest.mark.parametrize("n", [4, 6, 16])
def test_the_bisection_of_a_mesh(n):
    """C9: half of n x n ranks send to the other half over n links, (n*n/2)^2 messages in all."""
    mesh = Grid((n, n), False, LINK)
    source, target = mesh.ends()
    cut = (source % n < n // 2) & (target % n >= n // 2)
    assert cut.sum() == n
    assert mesh.exchange(one_group(n * n), 1.0)[cut].sum() == (n * n / 2) ** 2


def test_a_torus_of_equal_links_has_the_same_load_on_mirrored_shapes():
    """C10: (2, 8) and (8, 2) are the same network."""
    one, other = Grid((2, 8), True, LINK), Grid((8, 2), True, LINK)
    assert sorted(one.exchange(one_group(16), 1.0)) == sorted(other.exchange(one_group(16), 1.0))
    assert one.diameter_s(one_group(16)) == other.diameter_s(one_group(16)) == 5.0


def test_a_side_of_two_has_one_connection_and_a_mesh_no_link_beyond_its_edge():
    assert len(Grid((2,), True, LINK).capacity_bytes_per_s) == 2
    assert len(Grid((3, 4), False, LINK).capacity_bytes_per_s) == 2 * (2 * 4 + 3 * 3)
    assert len(Grid((3, 4), True, LINK).capacity_bytes_per_s) == 2 * 24


def test_names_shape_and_protocol():
    links = [LinkSpec(bytes_per_s=1.0, protocol=name) for name in ("outer", "inner")]
    grid = Grid((3, 4), True, links, 11)
    assert grid.shape() is None
    assert Grid((3, 4), True, links).shape() == (3, 4)
    assert (grid.node_name(10), grid.node_name(11)) == ("GPU 10", "free place 11")
    assert grid.protocol(np.array([[0, 1], [4, 6]])) == "inner"
    assert grid.protocol(np.array([[0, 1], [1, 5]])) == "outer"
    assert grid.protocol(np.array([[0], [1]])) is None
    assert grid.units(np.arange(11)) == []
    assert grid.reduction(one_group(11)) is None


@pytest.mark.parametrize(
    ("shape", "ranks", "sentence"),
    [
        ((3, 0), None, "topology 3x0: every side must be 1 or more."),
        ((3, 4), 13, "topology 13 GPUs: a grid of 3x4 has places for 1 to 12."),
    ],
)
def test_what_no_grid_can_be(shape, ranks, sentence):
    with pytest.raises(ConfigError) as error:
        Grid(shape, True, LINK, ranks)
    assert str(error.value) == sentence


def test_one_setting_for_every_dimension():
    with pytest.raises(ConfigError, match="3 wraps and 2 links"):
        Grid((2, 2), (True, True, False), LINK)
