"""The work of one rank: its operators in order, and the memory that each needs.

A *slot* is one operator run: operator and copy (the micro-batch or accumulated batch). An
*instance* is a buffer of the trace for one copy; parameters and optimizer state exist once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from triosim.trace.memory import Buffer, Memory, Origin, Role, find_memory
from triosim.trace.model import Trace
from triosim.trace.partners import find_partners

Key = tuple[int, int]  # buffer, copy


@dataclass(frozen=True, slots=True)
class Run:
    """One operator to run: for which copy, how long, and on which share of the trace's batch."""

    operator: int
    copy: int
    duration_s: float
    batch_share: float = 1.0


@dataclass(slots=True)
class Instance:
    """A buffer in this rank's memory. `arrives`: "fetch" (remote memory), "recv" (another rank)
    or "" (made here)."""

    bytes: int
    category: str
    arrives: str = ""
    dirty: bool = True
    uses: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Slot:
    run: Run
    uses: list[Key]
    creates: list[Key]


@dataclass(slots=True)
class Work:
    """Slots in the order of execution and every instance that they touch."""

    trace: Trace
    slots: list[Slot]
    instances: dict[Key, Instance]

    def name(self, slot: int) -> str:
        return self.trace.operators[self.slots[slot].run.operator].name


def lay_out(
    trace: Trace,
    runs: Iterable[Run],
    *,
    shards: Mapping[int, float] | None = None,
    holds: Callable[[Run, Buffer], bool] | None = None,
) -> Work:
    """The work that a sequence of runs makes.

    `shards` gives the share of a buffer that this rank holds (default: all of it); `holds` says
    which of the buffers that a run touches are this rank's at all.
    """
    memory = find_memory(trace)
    saved = _saved_by(trace, memory)
    work = Work(trace, [], {})
    first_copy: dict[int, int] = {}
    for run in runs:
        k = len(work.slots)
        uses: dict[Key, None] = {}
        creates: dict[Key, None] = {}
        for b in memory.creates[run.operator]:
            _touch(work, memory.buffers[b], run, k, creates, "", shards, holds)
        for b in saved.get(run.operator, ()):
            _touch(work, memory.buffers[b], run, k, creates, "", shards, holds)
        for b in memory.uses[run.operator]:
            buffer = memory.buffers[b]
            arrives = "fetch" if buffer.origin is Origin.EXISTING else "recv"
            _touch(work, buffer, run, k, uses, arrives, shards, holds)
        for key in [key for key in creates if memory.buffers[key[0]].role is Role.GRADIENTS]:
            # Accumulation: later copies are added to the first one, which the optimizer reads.
            original = (key[0], first_copy.setdefault(*key))
            if original != key:
                uses[original] = None
                work.instances[original].uses.append(k)
        work.slots.append(Slot(run, list(uses), list(creates)))
    return work


def _saved_by(trace: Trace, memory: Memory) -> dict[int, list[int]]:
    """Buffers that only backward names, under the forward operator that must have made them."""
    partners = find_partners(trace)
    saved: dict[int, list[int]] = {}
    for buffer in memory.buffers:
        if buffer.origin is Origin.SAVED:
            reader = buffer.uses[0]
            saved.setdefault(partners.get(reader, reader), []).append(buffer.index)
    return saved


def _touch(
    work: Work,
    buffer: Buffer,
    run: Run,
    slot: int,
    touched: dict[Key, None],
    arrives: str,
    shards: Mapping[int, float] | None,
    holds: Callable[[Run, Buffer], bool] | None,
) -> None:
    if buffer.bytes == 0 or (holds is not None and not holds(run, buffer)):
        return
    per_copy = buffer.scales or (
        buffer.role is Role.GRADIENTS and work.trace.operators[run.operator].phase != "optimizer"
    )
    key = (buffer.index, run.copy if per_copy else 0)
    instance = work.instances.get(key)
    if instance is None:
        share = run.batch_share if buffer.scales else 1.0
        if shards is not None:
            share *= shards.get(buffer.index, 1.0)
        instance = work.instances[key] = Instance(
            bytes=round(buffer.bytes * share),
            category=str(buffer.role),
            arrives=arrives,
            dirty=buffer.dirty or buffer.origin is not Origin.EXISTING,
        )
    touched[key] = None
    if not instance.uses or instance.uses[-1] != slot:
        instance.uses.append(slot)
