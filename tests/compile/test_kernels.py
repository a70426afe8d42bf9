"""What fused kernels move: the seminar's question K1."""

import pytest

from triosim.compile import (
    Access,
    Buffer,
    Node,
    OperatorGraph,
    fuse,
    kernels_of,
    realize,
    total_bytes,
    unfused,
)

ELEMENTS = 16_384 * 4096
BYTES_PER_S = 2.4e12


def tensor(name):
    return Access(buffer=name, index="c0", sizes=(ELEMENTS,), bytes=2 * ELEMENTS)


def loops(name, *reads):
    return Node(
        name=name, kind="pointwise", reads=tuple(map(tensor, reads)), writes=(tensor(f"{name}!"),),
        space=(ELEMENTS,), shape=(16_384, 4096), flops=ELEMENTS, members=(name,),
    )  # fmt: skip


@pytest.fixture
def k1():
    """relu, + r, times g on 16,384 x 4096 in bf16."""
    nodes = loops("relu", "x"), loops("add", "relu!", "r"), loops("mul", "add!", "g")
    used = {a.buffer for node in nodes for a in (*node.reads, *node.writes)}
    size = Buffer(bytes=2 * ELEMENTS, element_bytes=2)
    return OperatorGraph(
        nodes=nodes, buffers=dict.fromkeys(used, size), outputs=frozenset({"mul!"})
    )


def test_k1_unfused_makes_eight_passes_and_fused_four(k1):
    alone, fused = unfused(k1), kernels_of(fuse(k1))
    assert (len(alone), len(fused)) == (3, 1)
    assert total_bytes(alone) == 8 * 2 * ELEMENTS
    assert total_bytes(fused) == 4 * 2 * ELEMENTS
    assert total_bytes(alone) / BYTES_PER_S == pytest.approx(447e-6, rel=2e-3)
    assert total_bytes(fused) / BYTES_PER_S == pytest.approx(224e-6, rel=2e-3)
    assert total_bytes(alone) - total_bytes(fused) == pytest.approx(537e6, rel=1e-3)


def test_k1_inlined_before_fusion_is_the_same_kernel(k1):
    inlined = realize(k1.nodes, k1.buffers, k1.outputs, "triton")
    (kernel,) = kernels_of(fuse(inlined))
    assert kernel.bytes == total_bytes(kernels_of(fuse(k1)))
    assert kernel.members == ("mul", "add", "relu")
    assert kernel.flops == 3 * ELEMENTS


def test_a_result_that_leaves_the_graph_is_written_too(k1):
    kept = OperatorGraph(nodes=k1.nodes, buffers=k1.buffers, outputs=frozenset({"add!", "mul!"}))
    (kernel,) = kernels_of(fuse(kept))
    assert kernel.written_bytes == 2 * 2 * ELEMENTS
    assert kernel.read_bytes == 3 * 2 * ELEMENTS
    assert kernel.kind == "pointwise"
    assert kernel.work.bytes == kernel.bytes
