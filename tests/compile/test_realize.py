"""Which results are stored: single use, reuse, long formulas, calls."""

from triosim.compile import Access, Buffer, Node, realize

COUNT = 100


def access(buffer, index="c0", sizes=(COUNT,)):
    return Access(buffer=buffer, index=index, sizes=sizes, bytes=4 * COUNT)


def node(name, *reads, kind="pointwise", heavy=False):
    return Node(
        name=name, kind=kind, reads=tuple(map(access, reads)), writes=(access(f"{name}!"),),
        space=(COUNT,), shape=(COUNT,), flops=1, members=(name,), heavy=heavy,
    )  # fmt: skip


def stored(nodes, outputs, backend="triton"):
    used = {a.buffer for n in nodes for a in (*n.reads, *n.writes)}
    buffers = dict.fromkeys(used, Buffer(bytes=4 * COUNT, element_bytes=4))
    graph = realize(nodes, buffers, frozenset(outputs), backend)
    return {n.name: n for n in graph.nodes}


def test_a_result_used_once_is_taken_in_and_one_nobody_uses_is_dropped():
    made = stored([node("a", "x"), node("b", "a!"), node("lost", "x")], {"b!"})
    assert made.keys() == {"b"}
    assert made["b"].members == ("b", "a")
    assert [read.buffer for read in made["b"].reads] == ["x"]


def test_a_cheap_result_used_twice_is_computed_twice():
    made = stored([node("a", "x"), node("b", "a!"), node("c", "a!")], {"b!", "c!"})
    assert made.keys() == {"b", "c"}
    assert made["b"].flops == made["c"].flops == 2


def test_a_reused_result_that_reads_more_than_four_tensors_is_stored():
    many = node("a", *"pqrst")
    assert stored([many, node("b", "a!"), node("c", "a!")], {"b!", "c!"}).keys() == {"a", "b", "c"}
    assert stored([many, node("b", "a!")], {"b!"}).keys() == {"b"}


def test_a_cpu_stores_a_reused_exponential_and_a_gpu_does_not():
    nodes = [node("exp", "x", heavy=True), node("b", "exp!"), node("c", "exp!")]
    assert stored(nodes, {"b!", "c!"}, "cpp").keys() == {"exp", "b", "c"}
    assert stored(nodes, {"b!", "c!"}, "triton").keys() == {"b", "c"}


def test_formulas_end_at_eight_reads():
    chain = [node("n0", "x0")]
    chain += [node(f"n{i}", f"n{i - 1}!", f"x{i}") for i in range(1, 12)]
    made = stored(chain, {"n11!"})
    assert made.keys() == {"n8", "n11"}
    assert len(made["n8"].reads) == 9


def test_what_a_call_reads_is_stored_and_sums_take_formulas_in():
    made = stored(
        [node("a", "x"), node("mm", "a!", kind="extern"), node("b", "mm!"),
         node("sum", "b!", kind="reduction")], {"sum!"},
    )  # fmt: skip
    assert made.keys() == {"a", "mm", "sum"}
    assert made["sum"].members == ("sum", "b")


def test_a_sum_over_columns_reads_the_formula_across_too():
    across = access("a!", "c0 + 10*c1", (10, 10))
    total = Node(name="sum", kind="reduction", reads=(across,), writes=(access("sum!"),))
    made = stored([node("a", "x"), total], {"sum!"})
    assert made["sum"].reads == (access("x", "c0 + 10*c1", (10, 10)),)
