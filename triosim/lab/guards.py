"""What torch.compile guards: assumptions of each captured graph, checked before every call.

As torch 2.13 does it, without the guards on code, types and lengths of containers, which no change
of the lab breaks. A guard that fails has its graph captured and compiled again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from triosim.compile import Graph
from triosim.hardware.kinds import bare_name
from triosim.lab.launch_steps import Setup, compiled_layer, layer_block
from triosim.workload import Block

SAME, LONGER, FP32, EVAL, NO_GRAD = (
    "nothing", "more tokens", "float32 instead of bfloat16", "model.eval()", "torch.no_grad()",
)  # fmt: skip
# What the next call changes, and what comes of it.
CHANGES: Mapping[str, str] = {
    SAME: "Every guard holds: the compiled graphs run.",
    LONGER: "A size is not what it was. Torch compiles again and leaves this dimension open, so "
    "that other lengths need no third time.",
    FP32: "The type of activations and parameters is another one: kernels for bfloat16 cannot be "
    "used.",
    EVAL: "Where a module's forward looks at self.training, the other branch may be another graph.",
    NO_GRAD: "Without gradients there is no backward, and nothing is kept for it: other graphs.",
}
TABLES = ("cos", "sin")
TENSOR, GLOBAL, TRUE = "TENSOR_MATCH", "GLOBAL_STATE", "TRUE_MATCH"


@dataclass(frozen=True, kw_only=True, slots=True)
class Guard:
    """One assumption: `kind` is torch's name, `of` what it looks at, `holds` what must be so.

    `breaks` are the changes that it does not survive.
    """

    kind: str
    of: str
    holds: str
    breaks: frozenset[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Captured:
    """One graph of a layer's forward: operators captured, kernels made of them, and its guards."""

    operators: int
    kernels: int
    guards: tuple[Guard, ...]

    def broken(self, change: str) -> int:
        """How many guards a change breaks."""
        return sum(change in guard.breaks for guard in self.guards)


def captured(setup: Setup) -> list[Captured]:
    """The graphs of a layer's forward in order.

    Raises `ConfigError` for an unknown break.
    """
    block = layer_block(setup)
    return [
        Captured(
            operators=len(graph.operators),
            kernels=sum(kernel.launches for kernel in graph.kernels),
            guards=(_state(), *_tensors(graph, block), *_training(graph, block)),
        )
        for graph in compiled_layer(setup).forward
    ]


def _state() -> Guard:
    return Guard(
        kind=GLOBAL, of="torch",
        holds="gradients on, autocast off, deterministic algorithms off, default type",
        breaks=frozenset({NO_GRAD}),
    )  # fmt: skip


def _tensors(graph: Graph, block: Block) -> list[Guard]:
    """What the graph reads and does not make itself: activations, tables, parameters."""
    made = {access.buffer for node in graph.operators for access in node.writes}
    outside = {access.buffer for node in graph.operators for access in node.reads} - made
    parameters = {value.path: value for value in block.parameters}
    tables = {value.kind: value for op in block.forward for value in op.kernel.reads}
    assert block.entry is not None  # a layer has one
    inputs, own = [], []
    for name in sorted(outside):
        kind = name.split()[0]
        if name in parameters:
            own.append(_tensor(_short(name), parameters[name].shape, "Parameter"))
        elif kind in TABLES:
            batch, *_, tokens, width = tables[kind].shape  # the heads share it
            inputs.append(_tensor(kind, (batch, tokens, width), "Tensor", LONGER))
        else:
            # What crosses a break is as large as the layer's input.
            label = "hidden states" if name == "entry" else f"hidden states after {kind}"
            inputs.append(_tensor(label, block.entry.shape, "Tensor", LONGER))
    return [*inputs, *own]


def _tensor(of: str, shape: Sequence[int], kind: str, *breaks: str) -> Guard:
    return Guard(
        kind=TENSOR, of=of, holds=f"{kind}, bfloat16, on this GPU, of size {list(shape)}",
        breaks=frozenset({FP32, *breaks}),
    )  # fmt: skip


def _training(graph: Graph, block: Block) -> list[Guard]:
    """Modules that drop out in training ask whether they are in it."""
    here = {node.module for node in graph.operators}
    asking = {
        op.module
        for op in block.forward
        if op.kind == "attention" or bare_name(op.name) == "dropout"
    }
    return [
        Guard(
            kind=TRUE, of=f"{_short(module)}.training", holds="True", breaks=frozenset({EVAL}),
        )
        for module in sorted(here & asking)
    ]  # fmt: skip


def _short(path: str) -> str:
    """A path without that of the layer."""
    return path.partition("{}.")[2]
