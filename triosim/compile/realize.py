"""Which results are stored, and which are computed again where they are needed.

Lowering keeps an element-wise operator as a formula; a consumer takes the formula in. It becomes a
loop nest of its own ("realised") where a call reads it, where it leaves the graph, or where storing
it seems cheaper: read more than once and itself reading much, or simply too long. Reductions are
always realised. The rules and numbers are Inductor 2.13's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from triosim.compile.graph import Access, Buffer, Node, OperatorGraph

READS_WHEN_REUSED = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Most reads and operators of one formula; `heavy`: an exponential is not computed twice."""

    reads: int
    operators: int
    heavy: bool


LIMITS = {
    "triton": Limits(reads=8, operators=30, heavy=False),
    "cpp": Limits(reads=12, operators=50, heavy=True),
}


def realize(
    nodes: Sequence[Node], buffers: Mapping[str, Buffer], outputs: frozenset[str], backend: str
) -> OperatorGraph:
    """The graph that fusion starts from: formulas taken into their consumers, dead ones dropped."""
    alive = live(nodes, outputs)
    work = _Realize(alive, LIMITS[backend], outputs)
    for node in alive:
        work.take(node)
    for name in [name for name in work.formulas if name in outputs]:
        work.store(name)
    used = {a.buffer for node in work.done for a in (*node.reads, *node.writes)}
    return OperatorGraph(
        nodes=tuple(work.done),
        buffers={name: buffer for name, buffer in buffers.items() if name in used},
        outputs=outputs & used,
    )


def live(nodes: Sequence[Node], outputs: frozenset[str]) -> list[Node]:
    """The nodes whose results somebody needs."""
    wanted, kept = set(outputs), []
    for node in reversed(nodes):
        if node.kind == "extern" or any(access.buffer in wanted for access in node.writes):
            kept.append(node)
            wanted |= {access.buffer for access in node.reads}
    return kept[::-1]


class _Realize:
    def __init__(self, nodes: Sequence[Node], limits: Limits, outputs: frozenset[str]) -> None:
        self.limits, self.outputs = limits, outputs
        self.formulas: dict[str, Node] = {}
        self.done: list[Node] = []
        self.users: dict[str, list[Node]] = {}
        for node in nodes:
            for name in dict.fromkeys(access.buffer for access in node.reads):
                self.users.setdefault(name, []).append(node)

    def take(self, node: Node) -> None:
        """The next node of the graph, after all that it reads."""
        if not node.loops:
            for access in node.reads:
                self.store(access.buffer)
            self.done.append(node)
            return
        node = self._with_formulas(node)
        if node.kind == "reduction":
            self.done.append(node)
            return
        name = node.writes[0].buffer
        self.formulas[name] = node
        if self._stored_at_once(node, name):
            self.store(name)

    def store(self, name: str) -> None:
        """Write a result to memory, if it is a formula still."""
        node = self.formulas.pop(name, None)
        if node is not None:
            space = merged(node.shape, (*node.reads, *node.writes))
            self.done.append(replace(node, space=space))

    def _with_formulas(self, node: Node) -> Node:
        reads: list[Access] = []
        members, flops, heavy = list(node.members), node.flops, node.heavy
        for access in node.reads:
            formula = self.formulas.get(access.buffer)
            if formula is None:
                reads.append(access)
                continue
            reads += [_through(access, inner) for inner in formula.reads]
            members += [m for m in formula.members if m not in members]
            flops += formula.flops
            heavy = heavy or formula.heavy
        return replace(
            node, reads=tuple(dict.fromkeys(reads)), members=tuple(members), flops=flops,
            heavy=heavy,
        )  # fmt: skip

    def _stored_at_once(self, node: Node, name: str) -> bool:
        users = self.users.get(name, [])
        count = len(users) + (name in self.outputs)
        long = len(node.members) > self.limits.operators
        reads = [a for a in node.reads if a.index != "0"]
        if node.random:
            return True
        if count > 1:
            if name in self.outputs or long or len(reads) > READS_WHEN_REUSED:
                return True
            if self.limits.heavy and node.heavy:
                return True
            if len(reads) > 1 and not all(user.loops for user in users):
                return True
        return long or len(reads) > self.limits.reads


def _through(outer: Access, inner: Access) -> Access:
    """How a formula's operand is addressed by the loops that take the formula in."""
    if outer.index == "c0" or inner.index == "0":
        return inner
    if outer.index.startswith("c0 + ") and len(outer.sizes) == 2:  # columns outside, rows inside
        columns, rows = outer.sizes
        if inner.index == "c1":
            return replace(inner, index="c0", sizes=(columns,))
        if inner.index == "c0" and inner.sizes == (rows,):
            return replace(inner, index="c1", sizes=outer.sizes)
        if inner.index == "c0" and inner.sizes == (rows * columns,):
            return replace(inner, index=outer.index, sizes=outer.sizes)
    if inner.index == "c0":
        return replace(inner, index=outer.index, sizes=outer.sizes)
    return replace(inner, index=f"{inner.index} of {outer.index}", sizes=outer.sizes)


def merged(shape: tuple[int, ...], accesses: Sequence[Access]) -> tuple[int, ...]:
    """Loops over a result: one where all is read as it lies; rows and columns where something has
    one number per row or per column; else one per dimension."""
    numel = prod(shape)
    kinds = {(a.index, a.sizes == (numel,)) for a in accesses if a.index != "0"}
    if all(index == "c0" and full for index, full in kinds):
        return (numel,)
    if all(index in ("c0", "c1") for index, _ in kinds) and shape:
        return (numel // shape[-1], shape[-1])
    return shape
