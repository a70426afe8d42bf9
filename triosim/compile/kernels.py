"""Kernels after fusion: who is in them, and what they read, write and compute."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from triosim.compile.fuse import Fusion
from triosim.compile.graph import Access, Node, OperatorGraph
from triosim.hardware import Work


@dataclass(frozen=True, kw_only=True, slots=True)
class FusedKernel:
    """One kernel. `kind`: "pointwise", "reduction", "template" or "extern".

    `members` are the operators computed in it, one that other kernels compute as well included.
    `read_bytes` and `written_bytes` pass through memory; what only its own nodes use does not.
    `work` is what a roofline takes. `launches` is 0 where nothing runs on the GPU's stream for it.
    """

    name: str
    kind: str
    nodes: tuple[str, ...]
    members: tuple[str, ...]
    module: str
    read_bytes: int
    written_bytes: int
    flops: float
    work: Work
    launches: int = 1

    @property
    def bytes(self) -> int:
        return self.read_bytes + self.written_bytes


def kernels_of(fusion: Fusion, works: Mapping[str, Work] | None = None) -> tuple[FusedKernel, ...]:
    """The kernels in their order of execution; `works` knows calls (products, ...) by node name."""
    return tuple(
        _kernel(fusion.graph, group, works or {})
        for group in fusion.groups
        if group[0].kind != "nop"
    )


def unfused(
    graph: OperatorGraph, works: Mapping[str, Work] | None = None
) -> tuple[FusedKernel, ...]:
    """A kernel per node."""
    return tuple(_kernel(graph, (node,), works or {}) for node in graph.nodes if node.kind != "nop")


def total_bytes(kernels: Iterable[FusedKernel]) -> int:
    return sum(kernel.bytes for kernel in kernels)


def _kernel(graph: OperatorGraph, nodes: Sequence[Node], works: Mapping[str, Work]) -> FusedKernel:
    names = {node.name for node in nodes}
    inside = {a.buffer for node in nodes for a in node.writes}
    reads = [a for node in nodes for a in node.reads if a.buffer not in inside]
    leaving = [
        a for node in nodes for a in node.writes
        if a.buffer in graph.outputs or not graph.readers.get(a.buffer, frozenset()) <= names
        or node.kind == "extern"
    ]  # fmt: skip
    leader = max(nodes, key=_leads)
    call = works.get(leader.name)
    read, written = _bytes(graph, reads), _bytes(graph, leaving)
    flops = sum(node.flops for node in nodes)
    kind = "reduction" if leader.kind == "reduction" else "elementwise"
    work = Work(kind=kind, flops=flops, bytes=read + written, dtype="fp32")
    if call is not None and len(nodes) == 1:  # the workload knows what a call moves
        work, written = call, min(written, round(call.bytes))
        read = round(call.bytes) - written
    elif call is not None:  # a product that took neighbours in moves their operands too
        work = Work(kind=call.kind, flops=flops, bytes=read + written, dtype=call.dtype)
    return FusedKernel(
        name=" + ".join(node.name for node in nodes),
        kind=leader.kind,
        nodes=tuple(node.name for node in nodes),
        members=tuple(dict.fromkeys(m for node in nodes for m in node.members)),
        module=_common([node.module for node in nodes]),
        read_bytes=read,
        written_bytes=written,
        flops=flops,
        work=work,
        launches=work.kernels,
    )


def _leads(node: Node) -> int:
    return ("pointwise", "reduction", "template", "extern").index(node.kind)


def _bytes(graph: OperatorGraph, accesses: Sequence[Access]) -> int:
    """Parts of one buffer add up, but not beyond the buffer; an index read twice counts once."""
    total: dict[str, int] = {}
    most: dict[str, int] = {}
    for access in dict.fromkeys(accesses):
        total[access.buffer] = total.get(access.buffer, 0) + access.bytes
        most[access.buffer] = max(most.get(access.buffer, 0), access.bytes)
    return sum(
        min(count, max(most[name], graph.buffers[name].bytes)) for name, count in total.items()
    )


def _common(modules: Sequence[str]) -> str:
    """The innermost module that all are in."""
    paths = [module.split(".") for module in modules]
    shared = []
    for names in zip(*paths, strict=False):
        if len(set(names)) > 1:
            break
        shared.append(names[0])
    return ".".join(shared)
