"""What backward keeps: the cheapest cut, checked against all cuts."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from triosim.compile import Access, Buffer, Node
from triosim.compile.partition import partition


def node(name, reads, kind="pointwise", **settings):
    def access(buffer):
        return Access(buffer=buffer, index="c0", sizes=(1,), bytes=1)

    return Node(
        name=name, kind=kind, reads=tuple(map(access, reads)), writes=(access(f"{name}!"),),
        **settings,
    )  # fmt: skip


def kept(forward, backward, sizes, free=()):
    buffers = {name: Buffer(bytes=size, element_bytes=1) for name, size in sizes.items()}
    found, again = partition(forward, backward, buffers, frozenset(free))
    return found, [n.name for n in again]


def test_an_activation_is_computed_again_from_the_product_before_it():
    forward = node("mm", ["x"], "extern"), node("relu", ["mm!"]), node("scale", ["relu!"])
    backward = (node("back", ["g", "scale!", "mm!"]),)
    found, order = kept(forward, backward, {"mm!": 8, "relu!": 8, "scale!": 8, "x": 8, "g": 8})
    assert found == {"mm!", "g"}
    assert order == ["relu", "scale", "back"]


def test_the_smaller_end_of_a_chain_is_kept():
    forward = node("mm", ["x"], "extern"), node("to8bit", ["mm!"])
    found, _ = kept(forward, (node("back", ["to8bit!"]),), {"mm!": 9, "to8bit!": 1, "x": 9})
    assert found == {"to8bit!"}


def test_random_numbers_and_what_a_call_reads_are_never_made_twice():
    forward = (
        node("mask", [], random=True), node("drop", ["x", "mask!"]), node("act", ["drop!"]),
    )  # fmt: skip
    sizes = {"x": 4, "mask!": 1, "drop!": 4, "act!": 4}
    assert kept(forward, (node("back", ["mask!"]),), sizes)[0] == {"mask!"}
    assert kept(forward, (node("mm", ["act!"], "extern"),), sizes)[0] == {"act!"}


def test_what_lives_anyway_costs_nothing():
    forward = (node("act", ["w"]),)
    found, order = kept(forward, (node("back", ["act!"]),), {"w": 100, "act!": 1}, free=["w"])
    assert found == {"w"}
    assert order == ["act", "back"]


@given(st.data())
def test_no_other_set_from_which_backward_can_start_is_cheaper(data):
    """Sizes are powers of 16: the small preference for near tensors then decides nothing."""
    nodes, made = [], ["x"]
    for i in range(data.draw(st.integers(1, 5))):
        reads = data.draw(st.lists(st.sampled_from(made), min_size=1, max_size=2, unique=True))
        kind = data.draw(st.sampled_from(["pointwise", "extern"]))
        nodes.append(node(f"n{i}", reads, kind))
        made.append(f"n{i}!")
    powers = data.draw(st.permutations(range(len(made))))
    sizes = {name: 16**power for name, power in zip(made, powers, strict=True)}
    wanted = data.draw(st.lists(st.sampled_from(made), min_size=1, max_size=2, unique=True))
    writer = {n.writes[0].buffer: n for n in nodes}
    called = {a.buffer for n in nodes if n.kind == "extern" for a in n.reads}

    def weight(names):
        stored = {n for n in names if n in writer and writer[n].loops and n not in called}
        return sum(sizes[n] * (2 if n in stored else 1) for n in names)

    def enough(names):
        todo, seen = list(wanted), set()
        while todo:
            name = todo.pop()
            if name in names or name in seen:
                continue
            seen.add(name)
            if name not in writer or writer[name].kind == "extern":
                return False
            todo += [a.buffer for a in writer[name].reads]
        return True

    sets = itertools.chain.from_iterable(
        itertools.combinations(made, n) for n in range(len(made) + 1)
    )
    best = min(weight(names) for names in sets if enough(set(names)))
    found, _ = kept(nodes, (node("back", wanted),), sizes)
    assert enough(found)
    assert weight(found) == best
