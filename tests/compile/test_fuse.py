"""The greedy loop: legality, order of choices, and what must hold for any graph."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triosim.compile import (
    Access,
    Buffer,
    Node,
    OperatorGraph,
    fuse,
    kernels_of,
    total_bytes,
    unfused,
)
from triosim.errors import ConfigError

ROWS, COLUMNS = 64, 32
FULL = ROWS * COLUMNS


def flat(buffer, count=FULL):
    return Access(buffer=buffer, index="c0", sizes=(count,), bytes=4 * count)


def loops(name, *reads, out=None):
    return Node(
        name=name, kind="pointwise", reads=tuple(map(flat, reads)),
        writes=(flat(out or f"{name}!"),), space=(FULL,),
    )  # fmt: skip


def row_sum(name, *reads):
    return Node(
        name=name, kind="reduction", reads=tuple(map(flat, reads)),
        writes=(flat(f"{name}!", ROWS),), space=(ROWS,), reduced=(COLUMNS,),
    )  # fmt: skip


def call(name, *reads, kind="extern"):
    def whole(buffer):
        return Access(buffer=buffer, index="all", sizes=(FULL,), bytes=4 * FULL)

    return Node(
        name=name, kind=kind, reads=tuple(map(whole, reads)), writes=(whole(f"{name}!"),),
        space=(FULL,),
    )  # fmt: skip


def graph(*nodes, outputs=None):
    sizes = {a.buffer: a.bytes for n in nodes for a in (*n.reads, *n.writes)}
    read = {a.buffer for n in nodes for a in n.reads}
    written = {a.buffer for n in nodes for a in n.writes}
    return OperatorGraph(
        nodes=nodes,
        buffers={name: Buffer(bytes=size, element_bytes=4) for name, size in sizes.items()},
        outputs=frozenset(written - read if outputs is None else outputs),
    )


def names(fusion):
    return [sorted(node.name for node in group) for group in fusion.groups]


def became(fusion, first, second, number=1):
    return next(
        c.refusal for c in fusion.history
        if c.round == number and (c.first, c.second) == ((first,), (second,))
    )  # fmt: skip


@pytest.mark.parametrize("backend", ["triton", "cpp"])
def test_a_chain_of_elementwise_operators_is_one_kernel(backend):
    fusion = fuse(graph(loops("a", "x"), loops("b", "a!"), loops("c", "b!")), backend)
    assert names(fusion) == [["a", "b", "c"]]
    assert fusion.history[0].taken
    assert fusion.history[0].shared_bytes == 4 * FULL


@pytest.mark.parametrize("backend", ["triton", "cpp"])
def test_a_sum_per_row_and_what_uses_it_are_one_kernel(backend):
    scaled = Node(
        name="scaled", kind="pointwise", reads=(flat("x"), flat("sum!", ROWS)),
        writes=(flat("scaled!"),), space=(ROWS, COLUMNS),
    )  # fmt: skip
    assert names(fuse(graph(row_sum("sum", "x"), scaled), backend)) == [["scaled", "sum"]]


def test_nothing_fuses_with_a_call_and_unshared_work_stays_apart():
    fusion = fuse(graph(loops("a", "x"), call("mm", "a!"), loops("b", "mm!"), loops("c", "y")))
    assert names(fusion) == [["a"], ["mm"], ["b"], ["c"]]


def test_a_call_between_two_operators_keeps_them_apart():
    fusion = fuse(graph(loops("a", "x"), call("mm", "a!"), loops("b", "mm!", "x")))
    assert became(fusion, "a", "b") == "another operator runs between them"


def test_a_pair_is_refused_where_an_earlier_choice_makes_it_a_cycle():
    # p -> call -> s and q -> call -> r: either p with r or q with s, not both.
    fusion = fuse(
        graph(
            loops("p", "x"), loops("q", "y"), call("one", "p!"), call("two", "q!"),
            loops("r", "two!", "x"), loops("s", "one!", "y"),
        )
    )  # fmt: skip
    assert ["p", "r"] in names(fusion)
    assert became(fusion, "q", "s") == "cycle"


def test_other_loops_other_order_and_too_little_in_common_are_named():
    small = Node(
        name="small", kind="pointwise", reads=(flat("x", ROWS),), writes=(flat("s!", ROWS),),
        space=(ROWS,),
    )  # fmt: skip
    whole = Node(
        name="whole", kind="pointwise", reads=(flat("x", ROWS), flat("y")),
        writes=(flat("w!"),), space=(FULL,),
    )  # fmt: skip
    assert became(fuse(graph(small, whole)), "small", "whole") == "other iteration space"
    across = Access(buffer="a!", index=f"c0 + {COLUMNS}*c1", sizes=(COLUMNS, ROWS), bytes=4 * FULL)
    turned = Node(
        name="t", kind="pointwise", reads=(across, flat("x")), writes=(flat("t!"),),
        space=(FULL,),
    )  # fmt: skip
    fusion = fuse(graph(loops("a", "x"), turned))
    assert became(fusion, "a", "t") == "one writes and the other reads in another order"
    number = Access(buffer="n", index="0", sizes=(), bytes=4)
    ones = [
        Node(
            name=name, kind="pointwise", reads=(number,), writes=(flat(f"{name}!"),), space=(FULL,)
        )
        for name in "ab"
    ]
    assert became(fuse(graph(*ones)), "a", "b") == "too few shared bytes"


def test_siblings_far_apart_stay_apart():
    between = [loops(f"n{i}", f"in{i}") for i in range(70)]
    fusion = fuse(graph(loops("a", "x"), *between, loops("b", "x")))
    assert became(fusion, "a", "b") == "too far apart"


def test_a_product_takes_elementwise_operators_in_but_after_all_other_pairs():
    mm = call("mm", "x", kind="template")
    fusion = fuse(graph(mm, loops("a", "mm!"), loops("b", "a!")))
    assert names(fusion) == [["a", "b", "mm"]]
    assert [c.category for c in fusion.history if c.taken] == ["alike", "after product"]
    fusion = fuse(graph(mm, loops("a", "mm!"), row_sum("s", "mm!")))
    assert names(fusion) == [["mm"], ["a", "s"]]
    assert became(fusion, "mm", "s") == "a product takes only element-wise operators in"


def test_a_product_takes_in_what_only_it_reads():
    def before(*nodes):
        return names(fuse(graph(loops("a", "x"), call("mm", "a!", kind="template"), *nodes)))

    assert before() == [["a", "mm"]]
    wide = loops("a", "x", "y", "z")
    assert names(fuse(graph(wide, call("mm", "a!", kind="template")))) == [["a"], ["mm"]]
    assert before(call("other", "a!")) == [["a"], ["mm"], ["other"]]


def test_sums_along_rows_and_along_columns_of_one_large_tensor_are_one_pass_on_a_gpu():
    rows, columns = 8192, 1024
    size = rows * columns
    across = Access(buffer="x", index=f"c0 + {columns}*c1", sizes=(columns, rows), bytes=4 * size)
    along = Node(
        name="along", kind="reduction", reads=(flat("x", size),), writes=(flat("r", rows),),
        space=(rows,), reduced=(columns,),
    )  # fmt: skip
    other = Node(
        name="across", kind="reduction", reads=(across,), writes=(flat("c", columns),),
        space=(columns,), reduced=(rows,),
    )  # fmt: skip
    both = graph(along, other, outputs={"r", "c"})
    assert names(fuse(both, "triton")) == [["across", "along"]]
    assert names(fuse(both, "cpp")) == [["along"], ["across"]]


def test_unknown_backend_and_broken_graphs_are_refused():
    with pytest.raises(ConfigError, match="backend gpu: must be triton or cpp"):
        fuse(graph(loops("a", "x")), "gpu")
    with pytest.raises(ConfigError, match="reads b! before it is written"):
        graph(loops("a", "b!"), loops("b", "x"))
    with pytest.raises(ConfigError, match="used twice"):
        graph(loops("a", "x"), loops("a", "y", out="z"))
    with pytest.raises(ConfigError, match="kind matmul: must be"):
        Node(name="a", kind="matmul", writes=())


@st.composite
def graphs(draw):
    """Loops, sums and calls that read anything before them."""
    rows = st.sampled_from(["row_sum", "loops", "loops", "call"])
    nodes, made = [], ["x", "y"]
    for i in range(draw(st.integers(1, 12))):
        reads = draw(st.lists(st.sampled_from(made), min_size=1, max_size=3, unique=True))
        kind = draw(rows)
        node = {"row_sum": row_sum, "loops": loops, "call": call}[kind](f"n{i}", *reads)
        nodes.append(node)
        if kind != "row_sum":
            made.append(f"n{i}!")
    outputs = draw(st.sets(st.sampled_from([f"n{i}!" for i in range(len(nodes))])))
    return graph(*nodes, outputs=outputs)


@given(graphs(), st.sampled_from(["triton", "cpp"]))
def test_every_operator_runs_once_and_after_what_it_reads(operators, backend):
    """Kernel after kernel, so no two of them wait for each other."""
    done = set()
    for node in itertools.chain.from_iterable(fuse(operators, backend).groups):
        assert all(a.buffer in done or a.buffer in ("x", "y") for a in node.reads)
        assert done.isdisjoint(a.buffer for a in node.writes)
        done |= {a.buffer for a in node.writes}
    assert done == operators.writer.keys()


@given(graphs(), st.sampled_from(["triton", "cpp"]))
def test_fusion_adds_neither_traffic_nor_launches(operators, backend):
    fused, alone = kernels_of(fuse(operators, backend)), unfused(operators)
    assert total_bytes(fused) <= total_bytes(alone)
    assert len(fused) <= len(alone)
    assert sum(k.flops for k in fused) == sum(k.flops for k in alone)


@given(graphs(), st.sampled_from(["triton", "cpp"]))
def test_pairs_are_tried_in_the_order_of_their_scores(operators, backend):
    history = fuse(operators, backend).history
    for _, entries in itertools.groupby(history, key=lambda c: c.round):
        ranked = sorted((c for c in entries if c.rank), key=lambda c: c.rank)
        assert [c.rank for c in ranked] == list(range(1, len(ranked) + 1))
        if ranked and ranked[0].shared_bytes <= 16 * min(c.shared_bytes for c in ranked):
            keys = [(c.category == "alike", c.shared_bytes, -c.distance) for c in ranked]
            assert keys == sorted(keys, reverse=True)
        assert all(c.taken == (c.refusal == "") for c in ranked)
        assert not ranked or ranked[0].taken or ranked[0].refusal == "cycle"


def test_sixteen_times_the_bytes_outweigh_kinds_alike():
    # A chain of unlike kinds that saves all of x against two sums that share one number per row.
    near = Node(
        name="near", kind="reduction", reads=(flat("x"), flat("w", ROWS)),
        writes=(flat("near!", ROWS),), space=(ROWS,), reduced=(COLUMNS,),
    )  # fmt: skip
    second = Node(
        name="second", kind="reduction", reads=(flat("z"), flat("w", ROWS)),
        writes=(flat("second!", ROWS),), space=(ROWS,), reduced=(COLUMNS,),
    )  # fmt: skip
    fusion = fuse(graph(loops("a", "v", out="x"), near, second))
    ranked = {(c.first, c.second): c.rank for c in fusion.history if c.round == 1}
    assert ranked[("a",), ("near",)] < ranked[("near",), ("second",)]
