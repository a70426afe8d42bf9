"""The operator graph that fusion works on: loops over elements, and what they read and write.

A node is what Inductor's scheduler sees: one loop nest, or one call of a library. Indices are
opaque: two accesses are the same where buffer, index, loop sizes and bytes are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from triosim.errors import ConfigError

# Loops are pointwise or reductions. A template is a loop nest made for one product, which can take
# neighbours in; an extern call is closed; a nop only names memory that others write.
KINDS = ("pointwise", "reduction", "template", "extern", "nop")


@dataclass(frozen=True, kw_only=True, slots=True)
class Buffer:
    """Memory of one tensor."""

    bytes: int
    element_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Access:
    """How a loop nest addresses one buffer.

    `index` as a function of the loops ("c0 + 64*c1"), `sizes` are the loops' sizes, loops merged
    where they can be; `bytes` is what the addressed elements hold, each once.
    """

    buffer: str
    index: str
    sizes: tuple[int, ...]
    bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """One loop nest or call. `space` are its outer loops, `reduced` those of a reduction.

    `shape` is the result's shape before loops were merged, by default `space`. `members` are the
    operators computed in it; `heavy`: an exponential, a logarithm or the like is among them;
    `random`: it draws numbers; `sums`: as a reduction it adds or multiplies (no maximum). `whole`
    are results and length of the reduction of which this is the first of two stages.
    """

    name: str
    kind: str
    reads: tuple[Access, ...] = ()
    writes: tuple[Access, ...]
    space: tuple[int, ...] = ()
    reduced: tuple[int, ...] = ()
    shape: tuple[int, ...] = ()
    flops: float = 0.0
    members: tuple[str, ...] = ()
    module: str = ""
    heavy: bool = False
    random: bool = False
    sums: bool = True
    whole: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ConfigError("kind", self.kind, f"must be {', '.join(KINDS[:-1])} or {KINDS[-1]}")

    @property
    def loops(self) -> bool:
        """Whether the node is a loop nest that Inductor writes itself."""
        return self.kind in ("pointwise", "reduction")

    @property
    def closed(self) -> bool:
        """Whether nothing can be fused with it."""
        return self.kind in ("extern", "nop")

    @property
    def numel(self) -> int:
        return prod(self.space)

    @property
    def reduced_numel(self) -> int:
        return prod(self.reduced)


@dataclass(frozen=True, kw_only=True)
class OperatorGraph:
    """Nodes in an order of execution; `outputs` are the buffers that live on.

    Raises `ConfigError` where a name is used twice or a buffer is read before it is written.
    """

    nodes: tuple[Node, ...]
    buffers: Mapping[str, Buffer]
    outputs: frozenset[str] = field(default_factory=frozenset)

    def __post_init__(self) -> None:
        names: set[str] = set()
        for node in self.nodes:
            if node.name in names:
                raise ConfigError("nodes", node.name, "this name is used twice")
            names.add(node.name)
        position = {name: i for i, name in enumerate(self.writer)}
        written: set[str] = set()
        for node in self.nodes:
            for access in (*node.reads, *node.writes):
                if access.buffer not in self.buffers:
                    raise ConfigError(
                        "buffers", access.buffer, f"{node.name} uses it, but it has no size"
                    )
            for access in node.reads:
                if access.buffer in position and access.buffer not in written:
                    raise ConfigError(
                        "nodes", node.name, f"reads {access.buffer} before it is written"
                    )
            for access in node.writes:
                if access.buffer in written:
                    raise ConfigError("nodes", node.name, f"writes {access.buffer} a second time")
                written.add(access.buffer)

    @cached_property
    def writer(self) -> dict[str, str]:
        """The node that writes each buffer; inputs have none."""
        return {access.buffer: node.name for node in self.nodes for access in node.writes}

    @cached_property
    def readers(self) -> dict[str, frozenset[str]]:
        """The nodes that read each buffer."""
        found: dict[str, set[str]] = {}
        for node in self.nodes:
            for access in node.reads:
                found.setdefault(access.buffer, set()).add(node.name)
        return {buffer: frozenset(names) for buffer, names in found.items()}

    @cached_property
    def order(self) -> dict[str, int]:
        return {node.name: i for i, node in enumerate(self.nodes)}

    @cached_property
    def ancestors(self) -> dict[str, frozenset[str]]:
        """The nodes that must run before each."""
        found: dict[str, frozenset[str]] = {}
        for node in self.nodes:
            before: set[str] = set()
            for access in node.reads:
                source = self.writer.get(access.buffer)
                if source is not None:
                    before.add(source)
                    before |= found[source]
            found[node.name] = frozenset(before)
        return found
