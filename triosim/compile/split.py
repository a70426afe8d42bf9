"""Sums over many rows in two stages, as Inductor 2.13 makes them for a GPU.

A sum along columns with few results would leave most processors idle, so each column is cut into
pieces; a second, small kernel adds the pieces up. Left out: sums over everything at once.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, isqrt, prod

from triosim.compile.graph import Access, Buffer, Node, OperatorGraph

THREADS_PER_PROCESSOR, THREADS_PER_BLOCK = 2048, 256
LEAST_PER_THREAD, MOST_PER_THREAD = 32, 512
ROWS_PER_THREAD, COLUMNS_PER_BLOCK = 4, 128
# A piece is taken as a divisor of the length if one lies this near to what was aimed at.
NEAR, NEAR_MOST = 20, 50
_FP32_BYTES = 4


def pieces(length: int, results: int, processors: int) -> int:
    """Into how many pieces a sum of `length` numbers along columns is cut, 1 for none."""
    if length <= LEAST_PER_THREAD or results == 1 or results >= processors * 2 * 32:
        return 1
    threads = processors * THREADS_PER_PROCESSOR
    if length * results < LEAST_PER_THREAD * threads:
        size = LEAST_PER_THREAD
    elif length * results < MOST_PER_THREAD * threads:
        blocks = ceil(threads // THREADS_PER_BLOCK / ceil(results / COLUMNS_PER_BLOCK))
        aim = ceil(length / (ROWS_PER_THREAD * blocks))
        divisor = _nearest_divisor(length, aim)
        size = max(divisor, LEAST_PER_THREAD) if abs(aim - divisor) < NEAR else aim
    else:
        divisor = _nearest_divisor(length, MOST_PER_THREAD)
        size = divisor if abs(divisor - MOST_PER_THREAD) < NEAR_MOST else MOST_PER_THREAD
    return ceil(length / (ROWS_PER_THREAD * size))


def _nearest_divisor(length: int, aim: int) -> int:
    small = [i for i in range(1, isqrt(length) + 1) if length % i == 0]
    return min(sorted({*small, *(length // i for i in small)}), key=lambda i: abs(i - aim))


def split_sums(graph: OperatorGraph, processors: int) -> OperatorGraph:
    """The same graph with its sums along columns in two stages where Inductor makes two."""
    nodes: list[Node] = []
    buffers = dict(graph.buffers)
    for node in graph.nodes:
        count = 1
        if node.kind == "reduction" and any(_across(access) for access in node.reads):
            count = pieces(node.reduced_numel, node.numel, processors)
        nodes += _stages(node, count, buffers) if count > 1 else [node]
    return OperatorGraph(nodes=tuple(nodes), buffers=buffers, outputs=graph.outputs)


def _across(access: Access) -> bool:
    return access.index.startswith("c0 + ")


def _stages(node: Node, count: int, buffers: dict[str, Buffer]) -> list[Node]:
    results, length = node.numel, ceil(node.reduced_numel / count)
    (out,) = node.writes
    name, size = f"{out.buffer} in pieces", count * results * _FP32_BYTES
    buffers[name] = Buffer(bytes=size, element_bytes=_FP32_BYTES)
    part = Access(buffer=name, index="c0", sizes=(count * results,), bytes=size)
    across = replace(part, index=f"c0 + {results}*c1", sizes=(results, count))
    first = replace(
        node,
        name=f"{node.name} in pieces",
        reads=tuple(_in_pieces(access, count, results, length) for access in node.reads),
        writes=(part,),
        space=(count * results,),
        shape=(count, results),
        reduced=(length,),
        whole=(results, node.reduced_numel),
    )
    second = replace(
        node, reads=(across,), reduced=(count,), flops=float(count * results), members=()
    )
    return [first, second]


def _in_pieces(access: Access, count: int, results: int, length: int) -> Access:
    """The same elements by loops over pieces, columns and the rows of one piece."""
    sizes = (count, results, length)
    if _across(access):
        index = f"{results * length}*c0 + c1 + {results}*c2"
    elif access.index == "c1":
        index = f"{length}*c0 + c2"
    elif access.index == "c0" and prod(access.sizes) == results:
        index = "c1"
    else:
        return access
    return replace(access, index=index, sizes=sizes)
