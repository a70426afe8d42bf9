"""The loops and calls of one operator of the workload.

Norms, softmax and losses are taken apart into their reductions and element-wise steps, as torch's
decompositions do, with sums in float32; products, attention, scatters and communications stay
calls. Dimensions that an operator only permutes count as lying in the result's order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod

from triosim.compile.graph import Access, Buffer, Node
from triosim.hardware.kinds import bare_name
from triosim.workload import Op
from triosim.workload.tape import FP32_BYTES, Storage, Value

# Operators with an exponential, a logarithm or the like per element.
_HEAVY = (
    "silu", "silu_", "sigmoid", "tanh", "exp", "log", "softmax", "log_softmax", "swi_glu", "swiglu",
    "cross_entropy_loss",
)  # fmt: skip
_HEAVY_BACKWARD = ("silu", "swi_glu", "log_softmax")
# Complex numbers are left to torch.
_LEFT = ("complex_mul",)
_CALLS = ("gemm", "attention", "conv", "pool", "optimizer", "conv_direct", "conv_weight",
          "pool_backward")  # fmt: skip


@dataclass
class Names:
    """Buffers by their memory. Memory written again gets a new name: nodes never overwrite."""

    buffers: dict[str, Buffer] = field(default_factory=dict)
    current: dict[Storage, str] = field(default_factory=dict)
    tables: set[str] = field(default_factory=set)
    gradients: set[str] = field(default_factory=set)
    parts: dict[int, tuple[Value, str]] = field(default_factory=dict)

    def of(self, value: Value, wish: str = "") -> str:
        name = self.current.get(value.storage)
        if name is None:
            name = wish or (value.path or f"{value.kind} {len(self.current)}")
            if value.path or value.kind in ("cos", "sin", "attn_mask", "inv_freq"):
                self.tables.add(name)
            if value.kind == "grad_output":
                self.gradients.add(name)
            self._add(value, name)
        return name

    def write(self, value: Value, wish: str) -> str:
        """A new name for what the value's memory holds from now on."""
        self._add(value, wish)
        return wish

    def _add(self, value: Value, name: str) -> None:
        self.current[value.storage] = name
        size = max(value.storage.bytes, value.bytes)
        self.buffers[name] = Buffer(bytes=size, element_bytes=value.element_bytes)

    def part(self, value: Value) -> str:
        """A name for a view of a part of some memory; the view is kept so that its id stays."""
        known = self.parts.setdefault(id(value), (value, f"part {len(self.parts) + 1}"))
        return known[1]


class Lowering:
    """The `nodes` of one operator's kernel.

    `templates`: products are generated too. `one_pass`: mean and variance are found together.
    """

    def __init__(
        self, op: Op, number: int, names: Names, *, templates: bool, one_pass: bool
    ) -> None:
        self.op, self.kernel, self.names = op, op.kernel, names
        bare = bare_name(op.name)
        self.bare = bare if op.phase == "forward" else f"{bare}_backward"
        self.title = f"{self.bare}_{number}"
        self.one_pass = one_pass
        self.heavy = bare in (_HEAVY if op.phase == "forward" else _HEAVY_BACKWARD)
        self.nodes: list[Node] = []
        self._lower(templates)
        share = self.kernel.work.flops / max(1, len(self.nodes))
        self.nodes = [replace(node, flops=share) for node in self.nodes]

    def _lower(self, templates: bool) -> None:
        kernel = self.kernel
        reads, writes, kind = kernel.reads, kernel.writes, kernel.work.kind
        largest = max((v.numel for v in reads), default=0)
        if kernel.collective or kind in _CALLS:
            self._call("template" if templates and kind == "gemm" else "extern")
        elif self.bare.removesuffix("_backward") in _LEFT:
            self._call("extern")
        elif kind == "embedding":
            look_up = self.op.phase == "forward" and len(reads) == 2
            if look_up and self.op.name.endswith(("embedding", "index_select")):
                self._look_up()
            else:
                self._call("extern")
        elif kind == "norm":
            (self._norm if self.op.phase == "forward" else self._norm_backward)()
        elif kind == "reduction" and len(writes) == 1 and writes[0].numel < largest:
            self._reduction()
        elif kind == "reduction" and len(writes) == 1 and largest == writes[0].numel:
            (self._softmax if self.op.phase == "forward" else self._softmax_backward)()
        elif kind == "reduction" and len(writes) > 1:
            self._call("extern")
        elif self.bare == "silu_backward":
            self._silu_backward()
        else:
            self._pointwise_all()

    def _call(self, kind: str) -> None:
        """A call reads and writes memory as it likes."""
        kernel = self.kernel
        # A gather for backward makes its tensor anew from a shard that is kept outside.
        sources = () if kernel.part == "regather" else kernel.reads
        reads = tuple(self._whole(v, self.names.of(v)) for v in sources)
        writes = tuple(self._whole(v, name) for v, name in self._written())
        space = kernel.writes[0].shape if kernel.writes else ()
        self._add("", kind, reads, writes, space=(prod(space),), shape=space)

    def _written(self) -> list[tuple[Value, str]]:
        wish = f"{self.title} result"
        return [
            (value, self.names.write(value, wish if i == 0 else f"{wish} {i + 1}"))
            for i, value in enumerate(self.kernel.writes)
        ]

    @staticmethod
    def _whole(value: Value, name: str) -> Access:
        return Access(buffer=name, index="all", sizes=(value.numel,), bytes=value.bytes)

    def _look_up(self) -> None:
        table, indices = self.kernel.reads
        out = self.kernel.writes[0]
        rows = Access(
            buffer=self.names.of(table), index=f"[{self.names.of(indices)}]", sizes=out.shape,
            bytes=out.numel * table.element_bytes,
        )  # fmt: skip
        self._loops("", (rows, *self._reads((indices,), out.shape)), out)

    def _pointwise_all(self) -> None:
        """One loop nest per result; a mask is drawn first and then read."""
        kernel = self.kernel
        masks = [v for v in kernel.writes if v.kind == "mask" and len(kernel.writes) > 1]
        for mask in masks:
            self._loops(" mask", (), mask, random=True)
        for i, out in enumerate(v for v in kernel.writes if v not in masks):
            suffix = f" {i + 1}" if i else ""
            self._loops(suffix, self._reads((*kernel.reads, *masks), out.shape), out)

    def _silu_backward(self) -> None:
        """With s = sigmoid(x): the slope's 1 + x (1 - s), then gradient times s times that."""
        (g, x), (out,) = self.kernel.reads, self.kernel.writes
        outer, inner = self._reads((g, x), out.shape)
        size = out.numel * FP32_BYTES
        made: list[Access] = []
        for title in (" sigmoid", " slope"):
            name = self._scratch(title, out.numel)
            self._pointwise(title, (inner, *made), name, out, FP32_BYTES)
            made.append(Access(buffer=name, index="c0", sizes=(out.numel,), bytes=size))
            self.heavy = False
        self._loops("", (outer, *made), out)

    def _loops(
        self, suffix: str, reads: Sequence[Access], out: Value, *, random: bool = False
    ) -> None:
        name = self.names.write(out, f"{self.title}{suffix} result")
        self._pointwise(suffix, reads, name, out, out.element_bytes, random=random)

    def _pointwise(
        self, suffix: str, reads: Sequence[Access], name: str, out: Value, element_bytes: int,
        *, random: bool = False,
    ) -> None:  # fmt: skip
        shape, size = tuple(size for size in out.shape if size > 1), out.numel * element_bytes
        write = Access(buffer=name, index="c0", sizes=(out.numel,), bytes=size)
        self._add(suffix, "pointwise", reads, (write,), space=shape, shape=shape, random=random)

    def _reduce(
        self, suffix: str, values: Sequence[Value | Access], rows: int, columns: int,
        out: Value | None = None, *, across: bool = False, sums: bool = True,
    ) -> Access:  # fmt: skip
        """Along the rows, or `across` them, into `out` or float32; returns how loops read it."""
        reads = tuple(
            v if isinstance(v, Access) else self._access(v, (rows, columns), across=across)
            for v in values
        )
        count, length = (columns, rows) if across else (rows, columns)
        if out is None:
            name, size = self._scratch(suffix, count), count * FP32_BYTES
        else:
            name, size = self.names.write(out, f"{self.title}{suffix} result"), out.bytes
        write = Access(buffer=name, index="c0", sizes=(count,), bytes=size)
        space = (count,) if count > 1 else ()
        self._add(
            suffix, "reduction", reads, (write,), space=space, reduced=(length,), shape=space,
            sums=sums,
        )  # fmt: skip
        return write

    def _reduction(self) -> None:
        """A sum over the last dimension, over all others, over some in the middle, or over all."""
        out = self.kernel.writes[0]
        big = max(self.kernel.reads, key=lambda v: v.numel)
        across = out.numel == big.shape[-1] and out.shape[-1:] == big.shape[-1:]
        ratio = big.numel // max(1, out.numel)
        rows, columns = (ratio, out.numel) if across else (out.numel, ratio)
        self._reduce("", self.kernel.reads, rows, columns, out, across=across)

    def _softmax(self) -> None:
        """Maximum, exponentials, their sum, quotient."""
        (source,), (out,) = self.kernel.reads, self.kernel.writes
        rows, columns = source.numel // source.shape[-1], source.shape[-1]
        x = self._access(source, (rows, columns))
        top = self._reduce(" max", (x,), rows, columns, sums=False)
        power = self._scratch(" exp", out.numel)
        self._pointwise(" exp", (x, top), power, out, FP32_BYTES)
        raised = Access(buffer=power, index="c0", sizes=(out.numel,), bytes=out.numel * FP32_BYTES)
        total = self._reduce(" sum", (raised,), rows, columns)
        self._loops("", (raised, total), out)

    def _softmax_backward(self) -> None:
        """A sum per row of what is read, then the gradient."""
        out = self.kernel.writes[0]
        rows, columns = out.numel // max(1, out.shape[-1]), out.shape[-1]
        reads = self._reads(self.kernel.reads, (rows, columns))
        total = self._reduce(" sum", reads, rows, columns)
        self._loops("", (*reads, total), out)

    def _norm(self) -> None:
        """Mean (of a layer norm) and variance per row, then the result.

        A GPU finds both in one pass (Welford); a CPU needs the mean first.
        """
        x, *weights = self.kernel.reads
        out, *stats = self.kernel.writes
        rows, columns = x.numel // x.shape[-1], x.shape[-1]
        source, *rest = self._reads((x, *weights), (rows, columns))
        known: list[Access] = []
        for stat in stats:
            before = () if self.one_pass else tuple(known)
            total = self._reduce(f" {stat.kind} sum", (source, *before), rows, columns)
            self._loops(f" {stat.kind}", (total,), stat)
            exact = stat.element_bytes >= FP32_BYTES
            known.append(self._access(stat, (rows, columns)) if exact else total)
        self._loops("", (source, *known, *rest), out)

    def _norm_backward(self) -> None:
        """One or two sums per row, the gradient, then sums over rows for weight and bias."""
        g, x, *others = self.kernel.reads
        back, *gradients = self.kernel.writes
        rows, columns = x.numel // x.shape[-1], x.shape[-1]
        stats = [v for v in others if v.kind in ("mean", "rstd")]
        scaled = (g, *(v for v in others if v.kind == "weight"))
        every = (*scaled, x, *stats)
        sums = [
            self._reduce(f" sum {i}", values, rows, columns)
            for i, values in enumerate((every, scaled)[: len(stats)], start=1)
        ]
        self._loops("", (*self._reads(every, (rows, columns)), *sums), back)
        for out, values in zip(gradients, ((g, x, *stats), (g,)), strict=False):
            title = f" {'weight' if len(values) > 1 else 'bias'}"
            if out.element_bytes >= FP32_BYTES:
                self._reduce(title, values, rows, columns, out, across=True)
            else:  # summed up in float32
                total = self._reduce(f"{title} sum", values, rows, columns, across=True)
                self._loops(title, (total,), out)

    def _scratch(self, what: str, numel: int) -> str:
        name = f"{self.title}{what}"
        self.names.buffers[name] = Buffer(bytes=numel * FP32_BYTES, element_bytes=FP32_BYTES)
        return name

    def _reads(self, values: Sequence[Value], shape: Sequence[int]) -> tuple[Access, ...]:
        return tuple(self._access(v, shape) for v in values)

    def _access(self, value: Value, shape: Sequence[int], *, across: bool = False) -> Access:
        """How loops over `shape` (`across`: over its transposed) read a tensor."""
        name, count = self.names.of(value), value.numel
        columns = shape[-1] if shape else 1
        rows = prod(shape) // max(1, columns)
        whole = value.bytes >= self.names.buffers[name].bytes
        index = "c0"
        sizes: tuple[int, ...] = (count,)
        if count == 1:
            index, sizes = "0", ()
        elif count == rows * columns and not whole:
            index = self.names.part(value)
        elif count == rows * columns:
            index, sizes = (
                ("c0", (count,)) if not across else (f"c0 + {columns}*c1", (columns, rows))
            )
        elif count == rows and (value.shape[-1] == 1 or count != columns):
            index, sizes = ("c0", (rows,)) if not across else ("c1", (columns, rows))
        elif count == columns:
            index, sizes = ("c1", (rows, columns)) if not across else ("c0", (columns,))
        else:
            index, sizes = f"{value.shape} in {tuple(shape)}", tuple(shape)
        return Access(buffer=name, index=index, sizes=sizes, bytes=value.bytes)

    def _add(
        self, suffix: str, kind: str, reads: Sequence[Access], writes: Sequence[Access],
        *, space: tuple[int, ...], reduced: tuple[int, ...] = (), shape: tuple[int, ...] = (),
        random: bool = False, sums: bool = True,
    ) -> None:  # fmt: skip
        self.nodes.append(
            Node(
                name=f"{self.title}{suffix}",
                kind=kind,
                reads=tuple(dict.fromkeys(reads)),
                writes=tuple(writes),
                space=space,
                reduced=reduced,
                shape=shape,
                members=(f"{self.title}{suffix}",),
                module=self.op.module,
                heavy=self.heavy and kind == "pointwise",
                random=random,
                sums=sums,
            )
        )
