"""A block of the workload as loops over elements, before anything is inlined or fused."""

from __future__ import annotations

from dataclasses import dataclass

from triosim.compile.graph import Buffer, Node
from triosim.compile.loops import Lowering, Names
from triosim.workload import Block, Op


@dataclass(frozen=True, kw_only=True)
class Program:
    """A block's loops and calls in order.

    `outputs` are what the block hands on: its result and all gradients; `given` the gradients that
    come from outside; `free` is memory that lives anyway (parameters and tables). `calls` are the
    workload's operators by the names of nodes that are calls.
    """

    forward: tuple[Node, ...]
    backward: tuple[Node, ...]
    buffers: dict[str, Buffer]
    outputs: frozenset[str]
    given: frozenset[str]
    free: frozenset[str]
    calls: dict[str, Op]


def lower(block: Block, backend: str, *, templates: bool = False) -> Program:
    """The loops and calls of a block, as they are for a backend.

    `templates`: products are generated too, as with max-autotune, and can take neighbours in.
    """
    names = Names()
    for value in block.parameters:
        names.of(value, value.path)
    if block.entry is not None:
        names.of(block.entry, "entry")
    names.of(block.exit_gradient, "exit gradient")
    calls: dict[str, Op] = {}
    nodes: dict[str, list[Node]] = {"forward": [], "backward": []}
    for number, op in enumerate(block.ops):
        made = Lowering(op, number, names, templates=templates, one_pass=backend == "triton").nodes
        nodes[op.phase] += made
        calls |= {node.name: op for node in made if not node.loops}
    given = (block.exit, block.entry_gradient, block.tied_gradient, *block.gradients)
    outputs = {names.of(v) for v in given if v is not None}
    free = {names.of(v) for v in block.parameters} | names.tables
    return Program(
        forward=tuple(nodes["forward"]),
        backward=tuple(nodes["backward"]),
        buffers=names.buffers,
        outputs=frozenset(outputs),
        given=frozenset(names.gradients),
        free=frozenset(free),
        calls=calls,
    )
