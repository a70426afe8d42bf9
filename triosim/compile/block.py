"""A block as torch.compile runs it: graphs between breaks, each with its fused kernels.

Dynamo captures graphs; a break ends one and starts the next. Of each graph AOTAutograd makes a
forward and a backward, and Inductor fuses both. Left out: what breaks inside a module do to the
operators around them, dynamic shapes, and operators that Inductor hands to other libraries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise

from triosim.compile.fuse import Fusion, fuse
from triosim.compile.graph import Node
from triosim.compile.kernels import FusedKernel, kernels_of, total_bytes
from triosim.compile.legality import BACKENDS
from triosim.compile.lower import Program, lower
from triosim.compile.partition import partition
from triosim.compile.realize import realize
from triosim.compile.split import split_sums
from triosim.errors import ConfigError
from triosim.workload import Block, Op


@dataclass(frozen=True, kw_only=True, slots=True)
class Graph:
    """One captured graph in one direction: `fusion` with its history, `kernels` that run.

    `operators` are the loops and calls before anything is inlined. `copied_bytes` are inputs that
    a CUDA graph must first copy to their fixed place: all but parameters and tables.
    """

    phase: str
    operators: tuple[Node, ...]
    fusion: Fusion
    kernels: tuple[FusedKernel, ...]
    copied_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class CompiledBlock:
    """`forward` and `backward` hold one graph per segment, in order of execution.

    `kept_bytes`: activations that backward keeps, parameters and tables apart. `calls` finds the
    workload's operator of a kernel that is a call (products, attention, communications).
    """

    forward: tuple[Graph, ...]
    backward: tuple[Graph, ...]
    kept_bytes: int
    calls: Mapping[str, Op]

    @property
    def forward_kernels(self) -> tuple[FusedKernel, ...]:
        return tuple(kernel for graph in self.forward for kernel in graph.kernels)

    @property
    def backward_kernels(self) -> tuple[FusedKernel, ...]:
        return tuple(kernel for graph in self.backward for kernel in graph.kernels)

    @property
    def kernels(self) -> tuple[FusedKernel, ...]:
        return (*self.forward_kernels, *self.backward_kernels)

    @property
    def launches(self) -> int:
        return sum(kernel.launches for kernel in self.kernels)

    @property
    def bytes(self) -> int:
        """Memory traffic of all kernels."""
        return total_bytes(self.kernels)

    def call(self, kernel: FusedKernel) -> Op | None:
        return next((self.calls[name] for name in kernel.nodes if name in self.calls), None)


# Streaming multiprocessors of an H100 SXM, on which Inductor's cuts of long sums depend.
PROCESSORS = 132


@lru_cache(maxsize=16)
def compile_block(
    block: Block,
    *,
    backend: str = "triton",
    breaks: tuple[str, ...] = (),
    templates: bool = False,
    processors: int = PROCESSORS,
) -> CompiledBlock:
    """What torch.compile makes of a block.

    `breaks`: module paths, as operators have them, after which the graph breaks. `templates`:
    products are generated as well (max-autotune). `processors` of the GPU decide into how many
    pieces long sums are cut. Raises `ConfigError` for an unknown path or backend.
    """
    if backend not in BACKENDS:
        raise ConfigError("backend", backend, "must be triton or cpp")
    program = lower(block, backend, templates=templates)
    forward, backward, kept_bytes = [], [], 0
    kept_before: set[str] = set()
    for ahead, back in segments(program, breaks):
        outside = _used_elsewhere(program, ahead, back)
        kept, back = partition(ahead, back, program.buffers, program.free)
        make = partial(_graph, program=program, backend=backend, processors=processors)
        forward.append(make("forward", ahead, outputs=outside | kept))
        if back:
            backward.append(make("backward", back, outputs=outside))
        new = kept - program.free - kept_before - program.given - _gradients(program)
        kept_bytes += sum(program.buffers[name].bytes for name in new)
        kept_before |= new
    return CompiledBlock(
        forward=tuple(forward),
        backward=tuple(reversed(backward)),
        kept_bytes=kept_bytes,
        calls=program.calls,
    )


def segments(
    program: Program, breaks: Sequence[str]
) -> list[tuple[tuple[Node, ...], tuple[Node, ...]]]:
    """Forward and backward of each graph between breaks.

    A backward operator belongs to the segment of its module's forward; where a module's operators
    are in several, to the last that backward has not left yet.
    """
    ends = []
    for path in breaks:
        inside = [
            i for i, node in enumerate(program.forward)
            if node.module == path or node.module.startswith(f"{path}.")
        ]  # fmt: skip
        if not inside:
            modules = sorted({node.module for node in program.forward})
            raise ConfigError(
                "breaks", path, f"must be a module of the block: {', '.join(modules)}"
            )
        ends.append(inside[-1] + 1)
    edges = [0, *sorted(set(ends) - {len(program.forward)}), len(program.forward)]
    ahead = [program.forward[a:b] for a, b in pairwise(edges)]
    homes: dict[str, list[int]] = {}
    for i, nodes in enumerate(ahead):
        for node in nodes:
            homes.setdefault(node.module, []).append(i)
    back: list[list[Node]] = [[] for _ in ahead]
    current = len(ahead) - 1
    for node in program.backward:
        legal = [i for i in homes.get(node.module, []) if i <= current]
        current = max(legal, default=current)
        back[current].append(node)
    return [(a, tuple(b)) for a, b in zip(ahead, back, strict=True)]


def _gradients(program: Program) -> set[str]:
    return {access.buffer for node in program.backward for access in node.writes}


def _used_elsewhere(
    program: Program, ahead: Sequence[Node], back: Sequence[Node]
) -> frozenset[str]:
    """What a segment makes and others read, and what the block hands on."""
    own = {node.name for node in (*ahead, *back)}
    read = {
        access.buffer
        for node in (*program.forward, *program.backward) if node.name not in own
        for access in node.reads
    }  # fmt: skip
    return frozenset(read | program.outputs)


def _graph(
    phase: str, nodes: Sequence[Node], *, program: Program, outputs: frozenset[str], backend: str,
    processors: int,
) -> Graph:  # fmt: skip
    made = {access.buffer for node in nodes for access in node.writes}
    graph = realize(nodes, program.buffers, outputs & made, backend)
    if backend == "triton":
        graph = split_sums(graph, processors)
    fusion = fuse(graph, backend)
    works = {name: op.work for name, op in program.calls.items()}
    inputs = {a.buffer for node in graph.nodes for a in node.reads} - made - program.free
    return Graph(
        phase=phase,
        operators=tuple(nodes),
        fusion=fusion,
        kernels=kernels_of(fusion, works),
        copied_bytes=sum(graph.buffers[name].bytes for name in inputs),
    )
