"""What a layer keeps for backward under each recompute mode, and which operators run again.

"full" keeps the layer's input and runs all of forward again, as Korthikanti et al. count it.
"selective-op" follows torchtitan's default policy: the outputs of attention, of every second
product and of reduce-scatters are kept; what backward needs besides is computed again, no more.
"attention" runs the operators between the products around attention's core again.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from triosim.train.ran import Ran, Run
from triosim.train.scenario import layer_period
from triosim.workload import Op
from triosim.workload.tape import Storage

NOTHING, ALL, SOME, CORE = "none", "full", "selective-op", "attention"
_CORE_NAMES = ("aten::matmul", "aten::scaled_dot_product_attention")


def mode_of(recompute: str, part: str, layer: int) -> str:
    """What a scenario's `recompute` means for one part; only layers are computed again."""
    if part not in ("dense", "moe", "traced"):
        return NOTHING
    period = layer_period(recompute)
    if period:
        return ALL if layer % period == 0 else NOTHING
    return recompute


@dataclass(frozen=True, eq=False)
class Kept:
    """One part under one mode: `again` are the forward operators that run before backward does."""

    run: Run
    mode: str

    @cached_property
    def forward(self) -> tuple[Op, ...]:
        return tuple(ran.op for ran in self.run.forward)

    @cached_property
    def backward(self) -> tuple[Op, ...]:
        return tuple(ran.op for ran in self.run.backward)

    @cached_property
    def again(self) -> tuple[Op, ...]:
        if self.mode == NOTHING:
            return ()
        if self.mode == ALL:
            return self.forward
        if self.mode == CORE:
            return tuple(op for op in self._core if not op.collective)
        return self._needed

    @cached_property
    def bytes(self) -> int:
        """What one micro-batch keeps from forward to backward."""
        run = self.run
        if self.mode == NOTHING:
            return run.saved_bytes
        entry = 0 if run.block.entry is None else run.block.entry.bytes
        if self.mode == ALL:
            return entry
        if self.mode == CORE:
            return run.saved_bytes - self._inside
        sizes = {v.storage: v.bytes for op in self._kept_results for v in op.kernel.writes}
        return entry + sum(sizes.values())

    @cached_property
    def work_bytes(self) -> int:
        """The most that a backward pass needs beside what is kept and the parameters' gradients.

        What is computed again, whole, and the gradients of activations while they live.
        """
        again = max(0, self.run.saved_bytes - self.bytes)
        return again + _peak(self.run.backward, self.run.elsewhere)

    @cached_property
    def forward_bytes(self) -> int:
        """The most that a forward pass needs beside what is kept."""
        kept = {storage for ran in self.run.backward for storage in ran.reads}
        return _peak(self.run.forward, self.run.elsewhere | kept)

    @cached_property
    def _saved(self) -> list[Op]:
        """Operators whose results torchtitan's policy keeps."""
        saved, products = [], 0
        for op in self.forward:
            if op.kind == "gemm":
                products += 1
                if products % 2:
                    saved.append(op)
            elif op.kind == "attention" or op.collective == "reduce_scatter":
                saved.append(op)
        return saved

    @property
    def _kept_results(self) -> list[Op]:
        """Of a compiled part only what backward, or what runs again before it, reads.

        Eager's policy keeps every result that it names, that of a layer's last product too.
        """
        if not self.run.compiled:
            return self._saved
        again = {id(op) for op in self._needed}
        read = {s for ran in self.run.forward if id(ran.op) in again for s in ran.reads}
        read.update(s for ran in self.run.backward for s in ran.reads)
        used = {id(ran.op) for ran in self.run.forward if not read.isdisjoint(ran.writes)}
        return [op for op in self._saved if id(op) in used]

    @cached_property
    def _needed(self) -> tuple[Op, ...]:
        """Walk back from what backward reads; what is kept or was there before ends the walk."""
        wanted = {storage for ran in self.run.backward for storage in ran.reads}
        kept = {id(op) for op in self._saved}
        again: list[Op] = []
        for ran in reversed(self.run.forward):
            if id(ran.op) in kept or wanted.isdisjoint(ran.writes):
                continue
            again.append(ran.op)
            wanted.update(ran.reads)
        return tuple(reversed(again))

    @cached_property
    def _core(self) -> tuple[Op, ...]:
        """From the product of queries and keys to that with the values."""
        forward = self.forward
        named = [i for i, op in enumerate(forward) if op.name in _CORE_NAMES]
        return forward[named[0] : named[-1] + 1] if named else ()

    @property
    def _inside(self) -> int:
        """Kept bytes of the core that it can make again: not its operands, not its result."""
        if not self._core:
            return 0
        made = {v.storage for op in self._core for v in op.kernel.writes}
        outside = {
            v.storage: v.storage.bytes
            for op in self._core
            for v in op.kernel.reads
            if v.storage not in made and v.kind in ("output", "grad_output")
        }
        # A fused kernel writes its result and sums of rows; its result is the next product's input.
        result = self._core[-1].kernel.writes[0]
        kept = sum(outside.values()) + (result.bytes if self._core[-1].kind == "attention" else 0)
        return max(0, sum(op.saved_bytes for op in self._core) - kept)


def _peak(order: Sequence[Ran], elsewhere: Set[Storage]) -> int:
    """The most memory alive at once that a pass makes and gives back, by liveness of storages.

    Kept activations, parameters and the parameters' gradients are counted `elsewhere`.
    """
    made: dict[Storage, int] = {}
    last: dict[Storage, int] = {}
    for i, ran in enumerate(order):
        for storage in ran.writes:
            if storage not in elsewhere:
                made.setdefault(storage, i)
        for storage in (*ran.reads, *ran.writes):
            last[storage] = i
    level = most = 0
    ends: dict[int, int] = {}
    starts: dict[int, int] = {}
    for storage, i in made.items():
        starts[i] = starts.get(i, 0) + storage.bytes
        ends[last[storage]] = ends.get(last[storage], 0) + storage.bytes
    for i in range(len(order)):
        level += starts.get(i, 0)
        most = max(most, level)
        level -= ends.get(i, 0)
    return most
