"""Which tensors an operator reads and writes.

A forward operator's own node says it. A backward operator is a node of autograd that names only the
incoming gradient; what the operators inside it read and write counts, without what passes between
them. Without an execution trace the sizes come from the profiler's Input Dims.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tracer.convert.cut import Piece
from tracer.convert.graph import Node
from tracer.convert.kineto import Row
from tracer.convert.names import is_backward
from tracer.convert.tensors import FLOATS, MAX_INTEGER, TensorRef, dims_of, dtype_of
from triosim.trace import Tensor

_PRODUCTS = ("aten::addmm", "aten::mm", "aten::bmm", "aten::baddbmm", "aten::convolution")


@dataclass(frozen=True, kw_only=True, slots=True)
class Arguments:
    """What one operator reads and writes; `names` are the names of the inputs in its schema.

    `dtype` is the type that it computes in, "" where that is unknown. `synthetic`: the tensors
    have no identity, only sizes.
    """

    inputs: tuple[TensorRef, ...]
    outputs: tuple[TensorRef, ...]
    names: tuple[str, ...]
    dtype: str
    synthetic: bool = False

    @property
    def bytes(self) -> int:
        """Read and written once each, in bytes."""
        return sum(t.numel * t.element_bytes for t in (*self.inputs, *self.outputs))


def arguments(piece: Piece, nodes: Mapping[Row, Node]) -> Arguments:
    seen = list(_visible(piece, nodes))
    if not seen:
        return _from_rows(piece)
    own = nodes.get(piece.row)
    if own is not None and seen[0] is own:
        inputs, outputs = own.inputs, own.outputs
        names = _argument_names(own)
    else:
        inputs, outputs = _flow(seen)
        names = ()
    products = [n for row in piece.rows if (n := nodes.get(row)) and n.name in _PRODUCTS]
    return Arguments(
        inputs=inputs,
        outputs=outputs,
        names=tuple(names[t.argument] if t.argument < len(names) else "" for t in inputs),
        dtype=_dtype([t for node in products for t in node.inputs] or [*inputs, *outputs]),
    )


def _visible(piece: Piece, nodes: Mapping[Row, Node]) -> Iterator[Node]:
    """The outermost nodes with tensors; functions of autograd are looked through."""
    covered: set[Row] = set()
    for row in piece.rows:
        if row.parent in covered:
            covered.add(row)
            continue
        node = nodes.get(row)
        if node is not None and (node.inputs or node.outputs):
            yield node
            if not is_backward(row.name):
                covered.add(row)


def _flow(nodes: Sequence[Node]) -> tuple[tuple[TensorRef, ...], tuple[TensorRef, ...]]:
    read: dict[tuple[int, int], TensorRef] = {}
    made: dict[int, TensorRef] = {}  # by storage: the last tensor written there
    passed: set[int] = set()
    for node in nodes:
        written = {t.storage for t in node.outputs}
        for tensor in node.inputs:
            if tensor.storage not in made:
                read.setdefault((tensor.id, tensor.numel), tensor)
            elif written and tensor.storage not in written:
                passed.add(tensor.storage)
        for tensor in node.outputs:
            made[tensor.storage] = tensor
    held = {tensor.storage for tensor in read.values()}
    final = [t for storage, t in made.items() if storage not in passed] or list(made.values())
    # Views of what was read are results only where there is no other result.
    fresh = [tensor for tensor in final if tensor.storage not in held]
    return tuple(read.values()), tuple(fresh or final)


def _argument_names(node: Node) -> tuple[str, ...]:
    """aten::mm(Tensor self, Tensor mat2) -> Tensor gives self, mat2."""
    inner = node.schema[node.schema.find("(") + 1 :]
    names = []
    depth = 0
    part = ""
    for character in inner:
        if character in ",)" and depth == 0:
            words = part.split("=")[0].split()
            if words and words[0] != "*":
                names.append(words[-1])
            part = ""
            if character == ")":
                break
        else:
            depth += (character in "([") - (character in "])")
            part += character
    return tuple(names)


def _dtype(tensors: Sequence[TensorRef]) -> str:
    floats = [t for t in tensors if t.dtype in FLOATS]
    return max(floats, key=lambda t: t.numel).dtype if floats else ""


def _from_rows(piece: Piece) -> Arguments:
    covered: set[Row] = set()
    found: list[TensorRef] = []
    for row in piece.rows:
        if row.parent in covered:
            covered.add(row)
            continue
        own = sized(row)
        if own and not is_backward(row.name):
            found += own
            covered.add(row)
    return Arguments(inputs=tuple(found), outputs=(), names=(), dtype=_dtype(found), synthetic=True)


def sized(row: Row) -> list[TensorRef]:
    """The tensors of a row by its Input Dims, without identity; lists of tensors nest."""
    if not (isinstance(row.dims, list) and isinstance(row.types, list)):
        return []
    found = []
    for i, (dims, kind) in enumerate(zip(row.dims, row.types, strict=False)):
        dtype, size = dtype_of(str(kind))
        many = isinstance(dims, list) and bool(dims) and isinstance(dims[0], list)
        if not dtype and kind != "TensorList":
            continue
        if kind == "TensorList" and not many:
            continue
        for one in dims if many else [dims]:
            shape = dims_of(one)
            numel = math.prod(shape)
            if numel <= MAX_INTEGER:
                found.append(TensorRef(0, 0, numel, size, shape, dtype, "", i))
    return found


class TensorTable:
    """Gives every tensor of the trace an id that, with its elements, stands for one memory.

    Ids are addresses and used again within a step: with another storage or element size the tensor
    gets an id of its own.
    """

    def __init__(self, used: Sequence[int]) -> None:
        self._next = max((n for n in used if n < MAX_INTEGER - 2**40), default=0) + 1
        self._known: dict[tuple[int, int], tuple[int, int]] = {}
        self._renamed: dict[tuple[int, int, int, int], int] = {}
        self.renamed = 0

    def tensor(self, ref: TensorRef, kind: str, *, synthetic: bool) -> Tensor:
        number, storage = (self._fresh(), self._fresh()) if synthetic else (ref.id, ref.storage)
        memory = (storage, ref.element_bytes)
        if self._known.setdefault((number, ref.numel), memory) != memory:
            key = (number, ref.numel, *memory)
            if key not in self._renamed:
                self._renamed[key] = self._fresh()
                self.renamed += 1
            number = self._renamed[key]
        return Tensor(
            id=number, storage=storage, shape=ref.shape, numel=ref.numel,
            element_bytes=ref.element_bytes, kind=kind,
        )  # fmt: skip

    def _fresh(self) -> int:
        self._next += 1
        return self._next
