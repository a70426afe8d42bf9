"""The greedy loop of fusion, pair by pair: graphs to watch it on, and what a picture needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from triosim.compile import (
    Access,
    Buffer,
    Candidate,
    Fusion,
    Node,
    OperatorGraph,
    compile_block,
    fuse,
    kernels_of,
    total_bytes,
    unfused,
)
from triosim.errors import ConfigError
from triosim.lab.compiling import BF16_BYTES, chain
from triosim.workload import block_of, load_model

CHAIN, REFUSED, CYCLE = "relu, + r, \u00d7 g", "pairs that are refused", "a cycle"
GPT2, LLAMA = "a layer of GPT-2", "a layer of Llama 3 8B"
GRAPHS = (CHAIN, REFUSED, CYCLE, GPT2, LLAMA)
LAYERS: Mapping[str, tuple[str, str]] = {GPT2: ("gpt2", "sdpa"), LLAMA: ("llama3-8b", "sdpa")}
TOKENS = 1024
SIDE = 1024  # rows and columns of the small graphs


@dataclass(frozen=True, kw_only=True, slots=True)
class FusionStep:
    """After some pairs were looked at: groups of nodes by name, and the pair that was last."""

    groups: tuple[tuple[str, ...], ...]
    candidate: Candidate | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Greedy:
    """A graph and everything that the loop did to it.

    `edges` join nodes of which one reads what the other writes, by their place in the graph.
    """

    names: tuple[str, ...]
    closed: tuple[bool, ...]
    edges: tuple[tuple[int, int], ...]
    history: tuple[Candidate, ...]
    kernels_before: int
    kernels_after: int
    bytes_before: int
    bytes_after: int

    def step(self, number: int) -> FusionStep:
        """After so many pairs; 0 is before the first."""
        home: dict[str, tuple[str, ...]] = {name: (name,) for name in self.names}
        for candidate in self.history[:number]:
            if candidate.taken:
                joined = tuple(
                    dict.fromkeys((*home[candidate.first[0]], *home[candidate.second[0]]))
                )
                home.update(dict.fromkeys(joined, joined))
        last = self.history[number - 1] if number else None
        return FusionStep(groups=tuple(dict.fromkeys(home.values())), candidate=last)


@lru_cache(maxsize=16)
def greedy(name: str, elements: int = SIDE * SIDE) -> Greedy:
    """The loop on one of `GRAPHS`; the chain has so many elements.

    Raises `ConfigError` for a graph that is not among them.
    """
    if name not in GRAPHS:
        raise ConfigError("graph", name, f"must be one of {', '.join(GRAPHS)}")
    if name in LAYERS:
        fusion = _layer(*LAYERS[name])
    else:
        makers = {REFUSED: refused_graph, CYCLE: cycle_graph}
        fusion = fuse(chain(elements) if name == CHAIN else makers[name]())
    return _greedy(fusion)


def _layer(model: str, implementation: str) -> Fusion:
    block = block_of(
        load_model(model), "dense", batch=1, seq=TOKENS, dtype="bf16",
        implementation=implementation,
    )  # fmt: skip
    return compile_block(block).forward[0].fusion


def _greedy(fusion: Fusion) -> Greedy:
    graph = fusion.graph
    edges = {
        (graph.order[graph.writer[access.buffer]], graph.order[node.name])
        for node in graph.nodes
        for access in node.reads
        if access.buffer in graph.writer
    }
    alone, fused = unfused(graph), kernels_of(fusion)
    return Greedy(
        names=tuple(node.name for node in graph.nodes),
        closed=tuple(node.closed for node in graph.nodes),
        edges=tuple(sorted(edges)),
        history=fusion.history,
        kernels_before=len(alone),
        kernels_after=len(fused),
        bytes_before=total_bytes(alone),
        bytes_after=total_bytes(fused),
    )


class _Maker:
    """Nodes over arrays of SIDE x SIDE elements in bf16, or of what `sizes` says."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.buffers: dict[str, Buffer] = {}

    def access(
        self, name: str, sizes: tuple[int, ...] = (SIDE * SIDE,), index: str = "c0"
    ) -> Access:
        size = BF16_BYTES * prod(sizes)
        known = self.buffers.get(name)
        most = max(size, known.bytes if known else 0)
        self.buffers[name] = Buffer(bytes=most, element_bytes=BF16_BYTES)
        return Access(buffer=name, index=index, sizes=sizes, bytes=size)

    def add(
        self, name: str, *reads: Access, kind: str = "pointwise", elements: int = SIDE * SIDE
    ) -> Access:
        """A node that writes its result as it lies."""
        out = self.access(f"{name} out", (elements,))
        self.nodes.append(
            Node(
                name=name, kind=kind, reads=reads, writes=(out,), space=(elements,),
                flops=elements, members=(name,),
            )
        )  # fmt: skip
        return out

    def graph(self) -> OperatorGraph:
        """All results that nobody reads leave the graph."""
        read = {access.buffer for node in self.nodes for access in node.reads}
        written = {access.buffer for node in self.nodes for access in node.writes}
        return OperatorGraph(
            nodes=tuple(self.nodes), buffers=self.buffers, outputs=frozenset(written - read)
        )


def refused_graph() -> OperatorGraph:
    """One pair that is taken, and one refused for each reason that needs no third operator."""
    make = _Maker()
    x = make.access("x")
    a = make.add("relu", x)
    make.add("scale", a)
    make.add("transpose", make.access("x", (SIDE, SIDE), f"c1 + {SIDE}*c0"))
    make.add("concat", x, make.access("y"), elements=2 * SIDE * SIDE)
    make.add("matmul", a, kind="extern")
    return make.graph()


def cycle_graph() -> OperatorGraph:
    """Two pairs, each fine alone; after one of them the other would wait for itself.

    early -> product 1 -> late, and first -> product 2 -> last: early shares x with last, and late
    shares y with first.
    """
    make = _Maker()
    x, y = make.access("x"), make.access("y")
    early = make.add("early", x)
    first = make.add("first", y)
    one = make.add("product 1", early, kind="extern")
    two = make.add("product 2", first, kind="extern")
    make.add("late", one, y)
    make.add("last", two, x)
    return make.graph()
