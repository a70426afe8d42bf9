"""Routes on a mesh, and how many of them share a link."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from triosim.network.mesh import Mesh

shapes = st.tuples(st.integers(1, 4), st.integers(1, 4)).filter(lambda shape: shape != (1, 1))


def pairs_on(shape):
    gpus = st.integers(0, shape[0] * shape[1] - 1)
    return st.tuples(gpus, gpus).filter(lambda pair: pair[0] != pair[1])


def steps(rows, cols, source, target):
    """Row first, then column, one GPU at a time."""
    (r, c), (r1, c1) = divmod(source, cols), divmod(target, cols)
    while (r, c) != (r1, c1):
        here = r * cols + c
        if c != c1:
            c += 1 if c1 > c else -1
        else:
            r += 1 if r1 > r else -1
        yield here, r * cols + c


@given(shapes, st.data())
def test_the_fullest_link_is_that_of_the_routes(shape, data):
    pairs = data.draw(st.lists(pairs_on(shape), min_size=1, max_size=12))
    mesh = Mesh(rows=shape[0], cols=shape[1])
    passing = Counter()
    for a, b in pairs:
        for source, target in ((a, b), (b, a)):
            walked = list(steps(*shape, source, target))
            assert mesh.route(source, target) == walked
            passing.update(walked)
    count, link = mesh.fullest_link(pairs)
    assert count == passing[link] == max(passing.values())
