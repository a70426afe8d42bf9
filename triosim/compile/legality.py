"""Whether two groups may run as one kernel, and if not, why not: the checks of Inductor 2.13.

Shared rules first, then those of a backend: "cpp" writes loops for a CPU, "triton" kernels for a
GPU. Left out: trying other loop orders after nothing else fuses, tilings in Triton, streams.
"""

from __future__ import annotations

import re
from math import prod

from triosim.compile.graph import Access, OperatorGraph
from triosim.compile.group import Group
from triosim.compile.score import shared_bytes
from triosim.errors import ConfigError

BACKENDS = ("triton", "cpp")
LEAST_SHARED_BYTES = 10
MOST_NODES = 64
MOST_SIBLINGS_CPP = 16
FARTHEST_SIBLINGS = 64
# Memory that could have been reused outweighs traffic saved by this factor before it counts.
REUSE_OUTWEIGHS = 32
# What a product takes in before it may read this many times what it wrote.
BEFORE_PRODUCT_READS = 1.1
# Reductions along rows and along columns pay in one pass only on large tensors with long columns.
MIXED_LEAST_ELEMENTS, MIXED_LEAST_ROWS, MIXED_MOST_COLUMNS = 5 * 2**20, 4096, 16384
MIXED_ROWS_PER_COLUMN, MIXED_MOST_READS = 2, 10

SAME = "already one kernel"
CLOSED = "a library call takes nothing in"
BACKWARDS = "the second runs before the first"
NOTHING_SHARED = "no shared data"
TOO_LITTLE = "too few shared bytes"
TOO_LARGE = "too many operators"
TOO_FAR = "too far apart"
OTHER_SPACE = "other iteration space"
OTHER_ORDER = "one writes and the other reads in another order"
BETWEEN = "another operator runs between them"
MEMORY = "the peak of memory would grow"
BEFORE_MIXED = "nothing is put in front of sums along rows and columns in one pass"
CYCLE = "cycle"
OUTER_LAST = "outer loops are shared only when nothing else fuses"
TEMPLATE = "a product takes only element-wise operators in"
NOT_BEFORE = "a product takes in before it only what nobody else reads and what saves reads"
TOO_MANY_READS = "too many tensors read"


class Rules:
    """The checks on one graph for one backend."""

    def __init__(self, graph: OperatorGraph, backend: str) -> None:
        if backend not in BACKENDS:
            raise ConfigError("backend", backend, "must be triton or cpp")
        self.graph = graph
        self.cpp = backend == "cpp"

    def refusal(self, a: Group, b: Group, *, mixed: bool = True) -> str:
        """Why the two cannot be fused, "" if they can. `mixed`: orders of reduction may differ."""
        if a is b:
            return SAME
        if a.form == "mixed order":
            return self._into_mixed(a, b)
        if a.closed or b.closed:
            return CLOSED
        if b.form == "mixed order":
            return BEFORE_MIXED
        if not b.names.isdisjoint(a.ancestors):
            return BACKWARDS
        if (b.is_template and (a.is_reduction or a.is_template)) or (
            a.is_template and b.is_reduction
        ):
            return TEMPLATE
        if b.is_template and not self._goes_before(a, b):
            return NOT_BEFORE
        crossed = mixed and self.mixed_order(a, b)
        saved = self.saved_bytes(a, b, mixed=mixed)
        if saved == 0:
            return NOTHING_SHARED
        if len(a.nodes) + len(b.nodes) > MOST_NODES:
            return TOO_LARGE
        if self._reusable_bytes(a, b) > REUSE_OUTWEIGHS * saved:
            return MEMORY
        if b.depends_on(a):
            return self._order(a, b) or self._vertical(a, b)
        if not crossed:
            if saved < LEAST_SHARED_BYTES:
                return TOO_LITTLE
            if a.distance(b) > FARTHEST_SIBLINGS:
                return TOO_FAR
        return self._horizontal(a, b, crossed)

    def saved_bytes(self, a: Group, b: Group, *, mixed: bool = True) -> int:
        """The pair's score; of reductions in mixed order Inductor counts elements, not bytes."""
        if mixed and self.mixed_order(a, b):
            return prod(a.reduction)
        return shared_bytes(a, b)

    def later(self, a: Group, b: Group) -> bool:
        """Whether the pair waits until no other pair is left: loop nests in shared outer loops."""
        return self.cpp and self._outer_loops(a, b)

    def fuse(self, a: Group, b: Group) -> Group:
        """The two as one."""
        nodes = (*a.nodes, *b.nodes)
        if a.form == "mixed order":
            return self._fuse_into_mixed(a, b)
        if not self.cpp:
            if self.mixed_order(a, b):
                return Group(self.graph, nodes, form="mixed order", stages=(a, b))
            return Group(self.graph, nodes)
        if not _same_loops(a, b) and _same_elements(a, b):
            longer = max(a.space, b.space, key=len)
            return Group(self.graph, nodes, space=longer)
        if self._outer_loops(a, b):
            stages = (*(a.stages or (a,)), *(b.stages or (b,)))
            depth = _outer_depth(a, b)
            return Group(self.graph, nodes, form="outer loops", stages=stages, depth=depth)
        return Group(self.graph, nodes)

    def mixed_order(self, a: Group, b: Group) -> bool:
        """Whether the two reduce one large tensor, one along its rows, one along its columns."""
        if self.cpp or not (a.is_reduction and b.is_reduction):
            return False
        if a.depends_on(b) or b.depends_on(a):
            return False
        if a.reduction != b.reduction[::-1] or a.reduction == b.reduction:
            return False
        if not self._whole(a).intersection(self._whole(b)):
            return False
        rows, columns = (a, b) if _in_memory_order(a) else (b, a)
        if not _in_memory_order(rows) or rows.split:
            return False
        count, width = rows.reduction
        large = count * width >= MIXED_LEAST_ELEMENTS and count >= MIXED_LEAST_ROWS
        narrow = width <= MIXED_MOST_COLUMNS and count >= MIXED_ROWS_PER_COLUMN * width
        return large and narrow and all(n.sums for n in columns.nodes if n.kind == "reduction")

    @staticmethod
    def _whole(group: Group) -> set[str]:
        """Buffers read in every iteration at another place."""
        size = group.numel * group.reduced_numel
        return {
            a.buffer for n in group.nodes for a in n.reads
            if prod(a.sizes) == size and _loops_in(a) == len(a.sizes)
        }  # fmt: skip

    def _into_mixed(self, a: Group, b: Group) -> str:
        """Into reductions of mixed order only what fits one of the two, and not many tensors."""
        reads = {x.buffer for n in (*a.nodes, *b.nodes) for x in n.reads}
        if len(reads) > MIXED_MOST_READS:
            return TOO_MANY_READS
        if b.form == "mixed order":
            first = self._stage_refusal(a.stages[0], b.stages[0], (a.stages[1], b.stages[1]), a)
            return first or self._stage_refusal(a.stages[1], b.stages[1], (), a)
        first = self._stage_refusal(a.stages[0], b, (a.stages[1],), a)
        return first and self._stage_refusal(a.stages[1], b, (a.stages[0],), a)

    def _stage_refusal(
        self, stage: Group, b: Group, others: tuple[Group, ...], whole: Group
    ) -> str:
        refused = self.refusal(stage, b, mixed=False)
        if refused:
            return refused
        if _in_memory_order(stage) and not _in_memory_order(b):
            return OTHER_ORDER
        for other in others:
            if other.depends_on(stage) or other.depends_on(b):
                return BETWEEN
            if stage.depends_on(other) or b.depends_on(other):
                return BETWEEN
        shared = sum(
            x.bytes // self.graph.buffers[x.buffer].element_bytes
            for x in stage.accesses & b.accesses
        )
        small = shared < prod(whole.stages[0].reduction)
        return TOO_LITTLE if b.is_reduction and small else ""

    def _fuse_into_mixed(self, a: Group, b: Group) -> Group:
        one, two = a.stages
        if b.form == "mixed order":
            stages = self.fuse(one, b.stages[0]), self.fuse(two, b.stages[1])
        elif not self._stage_refusal(one, b, (two,), a):
            stages = self.fuse(one, b), two
        else:
            stages = one, self.fuse(two, b)
        nodes = (*stages[0].nodes, *stages[1].nodes)
        return Group(self.graph, nodes, form="mixed order", stages=stages)

    def _goes_before(self, a: Group, b: Group) -> bool:
        """A product takes in an operator before it if nobody else reads the result, and if that
        does not make it read much more than the result would be."""
        last = a.nodes[-1].writes[-1].buffer
        outside = {x.buffer for n in a.nodes for x in n.writes} & self.graph.outputs
        readers = {
            name
            for n in a.nodes
            for x in n.writes
            for name in self.graph.readers.get(x.buffer, frozenset())
        }
        only = self.graph.readers.get(last, frozenset()) <= b.names
        if outside or not only or not readers <= a.names | b.names:
            return False
        read, written = (
            sum(self.graph.buffers[name].bytes for name in {x.buffer for x in accesses})
            for accesses in (a.reads, a.writes)
        )
        return read <= BEFORE_PRODUCT_READS * written

    def _reusable_bytes(self, a: Group, b: Group) -> int:
        """Elements of memory that both could have written their results into, each its own."""
        total = 0
        for bytes_, element in self._reusable(a) & self._reusable(b):
            total += bytes_ // element
        return total

    def _reusable(self, group: Group) -> set[tuple[int, int]]:
        found = set()
        for access in group.reads:
            name = access.buffer
            users = len(self.graph.readers[name]) + (name in self.graph.outputs)
            if name in self.graph.writer and users == 1:
                buffer = self.graph.buffers[name]
                found.add((buffer.bytes, buffer.element_bytes))
        return found

    def _order(self, a: Group, b: Group) -> str:
        """Every read of the second must match a write of the first or come from elsewhere."""
        for access in b.sources:
            if access.buffer in a.written:
                wrote = [w for w in a.writes if w.buffer == access.buffer]
                by_product = a.is_template or b.is_template
                if not by_product and not any(_satisfies(access, w) for w in wrote):
                    return OTHER_ORDER
            elif not a.names.isdisjoint(self.graph.ancestors[self.graph.writer[access.buffer]]):
                return BETWEEN
        return ""

    def _vertical(self, a: Group, b: Group) -> str:
        if not self.cpp:
            return self._horizontal(a, b, False)
        if a.is_template:
            return "" if a.numel == b.numel else OTHER_SPACE
        if b.is_template:
            return TEMPLATE
        fits = self._fits_cpp(a, b) and not a.is_reduction
        return "" if fits or self._outer_loops(a, b) else OTHER_SPACE

    def _horizontal(self, a: Group, b: Group, crossed: bool) -> str:
        if self.cpp:
            if a.is_template or b.is_template:
                return TEMPLATE
            if len(a.nodes) + len(b.nodes) > MOST_SIBLINGS_CPP:
                return TOO_LARGE
            return "" if self._fits_cpp(a, b) else OTHER_SPACE
        if crossed:
            return ""
        if a.is_reduction and b.is_reduction:
            fits = (a.numel, a.reduced_numel) == (b.numel, b.reduced_numel)
        elif not a.is_reduction and not b.is_reduction:
            fits = a.numel == b.numel or b.is_template
        else:
            loops, reduction = (b, a) if a.is_reduction else (a, b)
            fits = loops.numel in (reduction.numel, reduction.numel * reduction.reduced_numel)
        return "" if fits else OTHER_SPACE

    def _fits_cpp(self, a: Group, b: Group) -> bool:
        """Loops that agree one by one; a reduction's may follow on element-wise ones."""
        if "outer loops" in (a.form, b.form):
            return False
        return _same_loops(a, b) or _same_elements(a, b)

    def _outer_loops(self, a: Group, b: Group) -> bool:
        if a.is_template or b.is_template or not b.depends_on(a):
            return False
        if self._fits_cpp(a, b) and not a.is_reduction:
            return False
        return _outer_depth(a, b) >= 1


def _same_loops(a: Group, b: Group) -> bool:
    if a.space == b.space and a.reduced == b.reduced:
        return True
    return a.reduced == () and a.space == b.space + b.reduced


def _same_elements(a: Group, b: Group) -> bool:
    """Element-wise results of one shape, of which one has its loops merged into one."""
    if a.reduced or b.reduced or a.numel != b.numel or 1 not in (len(a.space), len(b.space)):
        return False
    merged, other = (a, b) if len(a.space) < len(b.space) else (b, a)
    shapes = {node.shape or node.space for node in other.nodes}
    node = merged.single
    return node is not None and shapes == {node.shape or node.space}


def _outer_depth(a: Group, b: Group) -> int:
    """How many outer loops two loop nests can share, 0 for none."""
    first = a.stages[-1] if a.form == "outer loops" else a
    second = b.stages[0] if b.form == "outer loops" else b
    if not first.space and not second.space and first.reduced and second.reduced:
        return 0
    if a.form == b.form == "outer loops":
        return a.depth if a.depth == b.depth else 0
    depth = min(len(first.space), len(second.space))
    if depth < 1 or first.space[:depth] != second.space[:depth]:
        return 0
    known = {g.depth for g in (a, b) if g.form == "outer loops"}
    return depth if known <= {depth} else 0


def _satisfies(read: Access, write: Access) -> bool:
    """The read takes in each iteration what that iteration has written."""
    return read.index == write.index and read.sizes[: len(write.sizes)] == write.sizes


def _loops_in(access: Access) -> int:
    """How many of the loops the address depends on."""
    return sum(f"c{i}" in access.index for i in range(len(access.sizes)))


def _in_memory_order(group: Group) -> bool:
    """Whether the innermost loop steps over every tensor by one element, or stays where it is."""
    return all(_innermost_step(access) in (0, 1) for n in group.nodes for access in n.reads)


def _innermost_step(access: Access) -> int:
    """The factor of the last loop in "4096*c0 + c1 + 8"; 1 where the index is of another form."""
    last = f"c{len(access.sizes) - 1}"
    found = re.search(rf"(?:(\d+)\*)?\b{last}\b(?![*(])", access.index)
    return int(found[1] or 1) if found else int(last in access.index)
