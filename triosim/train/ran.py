"""What a part runs and what passes between: its operators, or kernels that torch.compile fused."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from triosim.compile import FusedKernel, Graph, compile_block
from triosim.compile.block import PROCESSORS
from triosim.workload import Block, Op
from triosim.workload.tape import Kernel, Storage


@dataclass(frozen=True, slots=True)
class Ran:
    """One kernel or communication, with the memory that it reads and writes."""

    op: Op
    reads: tuple[Storage, ...]
    writes: tuple[Storage, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """A part in both directions. `saved_bytes`: what backward keeps of what forward had.

    `compiled`: torch.compile fused it; `resumed` are the identities of operators with which a graph
    begins after a break. `elsewhere` is memory that is counted elsewhere: parameters and their
    gradients.
    """

    block: Block
    forward: tuple[Ran, ...]
    backward: tuple[Ran, ...]
    saved_bytes: int
    elsewhere: frozenset[Storage]
    compiled: bool = False
    resumed: frozenset[int] = frozenset()


@lru_cache(maxsize=128)
def run_of(
    block: Block, *, compiled: bool, processors: int = PROCESSORS, breaks: tuple[str, ...] = ()
) -> Run:
    """Operators one by one, or fused as torch.compile does for a GPU of so many processors.

    `breaks`: paths of modules after which its graph breaks.
    """
    return _compiled(block, processors, breaks) if compiled else _one_by_one(block)


def _one_by_one(block: Block) -> Run:
    def ran(ops: Iterable[Op]) -> tuple[Ran, ...]:
        return tuple(
            Ran(op, *(tuple(v.storage for v in vs) for vs in (op.kernel.reads, op.kernel.writes)))
            for op in ops
        )

    return Run(
        block=block,
        forward=ran(block.forward),
        backward=ran(block.backward),
        saved_bytes=block.saved_bytes,
        elsewhere=frozenset(v.storage for v in (*block.parameters, *block.gradients)),
    )


def _compiled(block: Block, processors: int, breaks: tuple[str, ...]) -> Run:
    """Both graphs name their buffers alike. A call stays the workload's operator."""
    compiled = compile_block(block, processors=processors, breaks=breaks)
    memory: dict[str, Storage] = {}
    splits = {op.module: op.split for op in block.ops}
    resumed: set[int] = set()

    def ran(graphs: Iterable[Graph]) -> Iterable[Ran]:
        for number, graph in enumerate(graphs):
            buffers = graph.fusion.graph.buffers
            memory.update({n: Storage(buffers[n].bytes) for n in buffers if n not in memory})
            nodes = {node.name: node for node in graph.fusion.graph.nodes}
            for index, kernel in enumerate(graph.kernels):
                own = [nodes[name] for name in kernel.nodes]
                op = compiled.call(kernel) or _fused(kernel, graph.phase, splits)
                if number and not index:
                    resumed.add(id(op))
                yield Ran(
                    op,
                    tuple({memory[a.buffer]: 0 for node in own for a in node.reads}),
                    tuple({memory[a.buffer]: 0 for node in own for a in node.writes}),
                )

    forward, backward = (tuple(ran(g)) for g in (compiled.forward, compiled.backward))
    # What leaves the backward graphs are gradients of parameters, and the entry's, which lives on
    # as the part before's.
    leaving = {name for graph in compiled.backward for name in graph.fusion.graph.outputs}
    paths = {value.path for value in block.parameters}
    return Run(
        block=block,
        forward=forward,
        backward=backward,
        saved_bytes=compiled.kept_bytes,
        elsewhere=frozenset(memory[name] for name in (leaving | paths) & memory.keys()),
        compiled=True,
        resumed=frozenset(resumed),
    )


def _fused(kernel: FusedKernel, phase: str, splits: dict[str, str]) -> Op:
    return Op(
        name=kernel.name,
        origin="",
        module=kernel.module,
        phase=phase,
        split=splits.get(kernel.module, ""),
        call=-1,
        kernel=Kernel(
            work=kernel.work, read_bytes=kernel.read_bytes, written_bytes=kernel.written_bytes
        ),
        saved_bytes=0,
        outputs=(),
    )
