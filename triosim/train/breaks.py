"""Graph breaks: where torch.compile's graph of a layer ends and Python runs until the next begins.

Kernels of two graphs are not fused, each CUDA graph is replayed on its own, and the CPU takes what
`triosim.compile.LaunchCosts` says for a break and for calling the next graph; in backward the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from triosim.errors import ConfigError
from triosim.train.costs import Costs
from triosim.train.network import Wires
from triosim.train.passes import PassWriter
from triosim.workload import Block


@dataclass(frozen=True, kw_only=True, slots=True)
class GraphBreak:
    """Between two graphs of a pass."""

    def write(self, writer: PassWriter, costs: Costs, wires: Wires) -> None:
        writer.resume(costs.resume_s)


def break_paths(graph_breaks: str, blocks: Iterable[Block]) -> tuple[str, ...]:
    """Modules of a layer by their names in it, as "self_attn,mlp", as paths of its operators.

    A name must be in one of the layers' blocks; `ConfigError` lists what they have.
    """
    known: dict[str, str] = {}
    for path in sorted({op.module for block in blocks for op in block.forward}):
        layer, _, rest = path.partition("{}.")
        names = rest.split(".") if rest else []
        for i in range(len(names)):
            name = ".".join(names[: i + 1])
            known[name] = f"{layer}{{}}.{name}"
    chosen = graph_breaks.split(",")
    if not known.keys() >= set(chosen):
        legal = f"must be modules of a layer with commas, of {', '.join(sorted(known))}"
        raise ConfigError("graph_breaks", graph_breaks, legal)
    return tuple(sorted(known[name] for name in chosen))


def breaks_in(block: Block, paths: Iterable[str]) -> tuple[str, ...]:
    """Those of the paths that a block has."""
    modules = {op.module for op in block.forward}
    return tuple(p for p in paths if any(f"{m}.".startswith(f"{p}.") for m in modules))
