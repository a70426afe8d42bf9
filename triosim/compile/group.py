"""Nodes that run as one kernel, while fusion goes on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import chain
from math import prod

from triosim.compile.graph import Access, Node, OperatorGraph


class Group:
    """One or more nodes fused so far.

    `form` says how: "" for nodes in common loops; "outer loops" for loop nests one after the other
    inside shared outer loops (C++, `depth` of them); "mixed order" for reductions along rows and
    along columns of one tensor in one pass (Triton). `stages` are the parts of those two forms.
    """

    def __init__(
        self, graph: OperatorGraph, nodes: Sequence[Node], *, form: str = "",
        stages: tuple[Group, ...] = (), depth: int = 0, space: tuple[int, ...] | None = None,
    ) -> None:  # fmt: skip
        self.graph = graph
        self.nodes = tuple(nodes)
        self.form, self.stages, self.depth = form, stages, depth
        leader = next((n for n in self.nodes if n.kind == "reduction"), self.nodes[0])
        self.space = leader.space if space is None else space
        self.reduced = leader.reduced
        self.is_reduction = leader.kind == "reduction"
        self.is_template = any(n.kind == "template" for n in self.nodes)
        self.names = frozenset(n.name for n in self.nodes)
        orders = [graph.order[n.name] for n in self.nodes]
        self.first, self.last = min(orders), max(orders)

    @property
    def closed(self) -> bool:
        return self.nodes[0].closed

    @property
    def single(self) -> Node | None:
        """The node of a group that holds one."""
        return self.nodes[0] if len(self.nodes) == 1 else None

    @property
    def numel(self) -> int:
        return prod(self.space)

    @property
    def reduced_numel(self) -> int:
        return prod(self.reduced)

    @cached_property
    def split(self) -> bool:
        """Whether all its reductions are first stages of longer ones."""
        return self.is_reduction and all(n.whole for n in self.nodes if n.kind == "reduction")

    @cached_property
    def reduction(self) -> tuple[int, int]:
        """Results and length of its reductions, of which stages are put together again."""
        if self.split:
            return next(n.whole for n in self.nodes if n.whole)
        return self.numel, self.reduced_numel

    @cached_property
    def ancestors(self) -> frozenset[str]:
        return frozenset(chain.from_iterable(self.graph.ancestors[name] for name in self.names))

    @cached_property
    def writes(self) -> tuple[Access, ...]:
        return tuple(dict.fromkeys(a for n in self.nodes for a in n.writes))

    @cached_property
    def written(self) -> frozenset[str]:
        """Names of the buffers that the group writes."""
        return frozenset(access.buffer for access in self.writes)

    @cached_property
    def reads(self) -> tuple[Access, ...]:
        """Accesses from outside: what a member writes in the same way is read from a register."""
        own = set(self.writes)
        return tuple(dict.fromkeys(a for n in self.nodes for a in n.reads if a not in own))

    @cached_property
    def accesses(self) -> frozenset[Access]:
        return frozenset((*self.reads, *self.writes))

    @cached_property
    def used(self) -> tuple[str, ...]:
        """Buffers in the order of their first use."""
        return tuple(dict.fromkeys(a.buffer for n in self.nodes for a in (*n.reads, *n.writes)))

    @cached_property
    def sources(self) -> tuple[Access, ...]:
        """Reads of what other nodes of the graph write, before the group can start."""
        return tuple(
            a for a in self.reads if a.buffer in self.graph.writer and a.buffer not in self.written
        )

    def depends_on(self, other: Group) -> bool:
        return not other.names.isdisjoint(self.ancestors)

    def distance(self, other: Group) -> int:
        """How far apart the two reach in the graph's order."""
        return max(abs(self.first - other.last), abs(other.first - self.last))

    def __repr__(self) -> str:
        return "+".join(n.name for n in self.nodes)
