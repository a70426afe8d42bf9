"""Sums along columns in pieces."""

import pytest

from triosim.compile import Access, Buffer, Node, OperatorGraph
from triosim.compile.split import pieces, split_sums

H100_PROCESSORS = 132


@pytest.mark.parametrize(
    ("length", "results", "expected"),
    [
        (16384, 4096, 32),
        (8192, 768, 64),
        (8192, 2304, 64),
        # Too short, enough results to fill the GPU, and a single result (of another kind).
        (32, 768, 1),
        (8192, 2 * 32 * H100_PROCESSORS, 1),
        (8192, 1, 1),
    ],
)
def test_pieces_are_as_many_as_inductor_makes(length, results, expected):
    """The first three as torch 2.13 scheduled them for an H100 in blocks of Llama and GPT-2."""
    assert pieces(length, results, H100_PROCESSORS) == expected


def test_a_sum_in_pieces_reads_and_writes_what_the_whole_one_does():
    rows, columns = 8192, 768
    size = rows * columns

    def access(buffer, index, sizes, count):
        return Access(buffer=buffer, index=index, sizes=sizes, bytes=4 * count)

    total = Node(
        name="sum", kind="reduction", space=(columns,), reduced=(rows,), flops=size,
        reads=(
            access("x", f"c0 + {columns}*c1", (columns, rows), size),
            access("scale", "c1", (columns, rows), rows),
            access("weight", "c0", (columns,), columns),
        ),
        writes=(access("out", "c0", (columns,), columns),),
    )  # fmt: skip
    buffers = {
        a.buffer: Buffer(bytes=a.bytes, element_bytes=4) for a in (*total.reads, *total.writes)
    }
    whole = OperatorGraph(nodes=(total,), buffers=buffers, outputs=frozenset({"out"}))
    first, second = split_sums(whole, H100_PROCESSORS).nodes
    assert first.whole == (columns, rows)
    assert (first.numel, first.reduced_numel) == (64 * columns, rows // 64)
    assert [a.bytes for a in first.reads] == [a.bytes for a in total.reads]
    # One row of a piece is 768 elements from the next, one piece 128 rows.
    assert [a.index for a in first.reads] == ["98304*c0 + c1 + 768*c2", "128*c0 + c2", "c1"]
    assert second.writes == total.writes
    assert (second.numel, second.reduced_numel) == (columns, 64)
    assert first.writes[0].bytes == second.reads[0].bytes == 4 * 64 * columns


def test_a_sum_along_rows_stays_whole():
    read = Access(buffer="x", index="c0", sizes=(8192 * 768,), bytes=4 * 8192 * 768)
    write = Access(buffer="out", index="c0", sizes=(8192,), bytes=4 * 8192)
    node = Node(
        name="sum", kind="reduction", space=(8192,), reduced=(768,), reads=(read,), writes=(write,)
    )
    buffers = {a.buffer: Buffer(bytes=a.bytes, element_bytes=4) for a in (read, write)}
    graph = OperatorGraph(nodes=(node,), buffers=buffers, outputs=frozenset({"out"}))
    assert split_sums(graph, H100_PROCESSORS) == graph
