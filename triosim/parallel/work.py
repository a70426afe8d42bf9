"""The work of one rank: its operators in order, and the memory that each needs.

A *slot* is one operator run: operator and copy (the micro-batch or accumulated batch). An
*instance* is a buffer of the trace for one copy; parameters and optimizer state exist once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from triosim.trace.memory import Buffer, Origin, Role, find_memory
from triosim.trace.model import Trace
from triosim.trace.partners import find_partners
from triosim.trace.scale import times_at

Key = tuple[int, int]  # buffer, copy


@dataclass(frozen=True, slots=True)
class Run:
    """One operator to run: for which copy, how long, and on which share of the trace's batch."""

    operator: int
    copy: int
    duration_s: float
    batch_share: float = 1.0


def scaled_run(trace: Trace, operator: int, copy: int, batch_size: int, share: float = 1.0) -> Run:
    """An operator on another batch, at the time that `triosim.trace.scale` gives it there."""
    seconds = times_at(trace, batch_size)[operator]
    return Run(operator, copy, seconds * share, batch_size / trace.batch_size)


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


@dataclass(eq=False)
class Work:
    """Slots in the order of execution and every instance that they touch.

    Equality is identity: work is laid out once and shared.
    """

    trace: Trace
    slots: list[Slot]
    instances: dict[Key, Instance]

    @cached_property
    def provenance_s(self) -> dict[str, float]:
        """Seconds by where they are from: a measured time that is not the trace's own is scaled."""
        seconds: dict[str, float] = {}
        for slot in self.slots:
            operator, duration_s = self.trace.operators[slot.run.operator], slot.run.duration_s
            kind = operator.provenance
            if kind == "measured" and duration_s != operator.time_s:
                kind = "scaled"
            seconds[kind] = seconds.get(kind, 0.0) + duration_s
        return seconds

    def name(self, slot: int) -> str:
        return self.trace.operators[self.slots[slot].run.operator].name


@dataclass(frozen=True, slots=True)
class _Touch:
    """One buffer that an operator touches, as this rank sees it, whatever the copy."""

    buffer: int
    bytes: float
    category: str
    arrives: str
    dirty: bool
    scales: bool
    per_copy: bool


def lay_out(
    trace: Trace,
    runs: Iterable[Run],
    *,
    shards: Mapping[int, float] | None = None,
    holds: Callable[[int, Buffer], bool] | None = None,
) -> Work:
    """The work that a sequence of runs makes.

    `shards` gives the share of a buffer that this rank holds (default: all of it); `holds` says
    which of the buffers that an operator touches are this rank's at all.
    """
    view = _View(trace, shards or {}, holds)
    work = Work(trace, [], {})
    first_copy: dict[int, int] = {}
    for run in runs:
        k = len(work.slots)
        creates, uses = view.touches(run.operator)
        slot = Slot(run, [], [])
        work.slots.append(slot)
        for touch in (*creates, *uses):
            known = len(work.instances)
            key = _touch(work, touch, run, k)
            # What is there already is used, whatever the operator is said to do with it; what
            # nothing brings is made by the first operator that has it.
            orphan = touch.arrives == "recv" and holds is None
            made = len(work.instances) > known and (not touch.arrives or orphan)
            (slot.creates if made else slot.uses).append(key)
            if made:
                work.instances[key].arrives = ""
        for key in slot.creates:
            # Accumulation: later copies are added to the first one, which the optimizer reads.
            gradient = work.instances[key].category == Role.GRADIENTS
            if gradient and first_copy.setdefault(*key) != key[1]:
                original = (key[0], first_copy[key[0]])
                slot.uses.append(original)
                work.instances[original].uses.append(k)
    return work


def _touch(work: Work, touch: _Touch, run: Run, slot: int) -> Key:
    key = (touch.buffer, run.copy if touch.per_copy else 0)
    instance = work.instances.get(key)
    if instance is None:
        instance = work.instances[key] = Instance(
            bytes=round(touch.bytes * (run.batch_share if touch.scales else 1.0)),
            category=touch.category,
            arrives=touch.arrives,
            dirty=touch.dirty,
        )
    if not instance.uses or instance.uses[-1] != slot:
        instance.uses.append(slot)
    return key


def per_copy(buffer: Buffer) -> bool:
    """Whether every micro-batch has its own instance; the optimizer reads the first gradient."""
    return buffer.scales or buffer.role is Role.GRADIENTS


class _View:
    """The buffers of each operator that one rank has to do with, found once per operator."""

    def __init__(
        self,
        trace: Trace,
        shards: Mapping[int, float],
        holds: Callable[[int, Buffer], bool] | None,
    ) -> None:
        self._trace = trace
        self._memory = find_memory(trace)
        self._saved = _saved_by(trace)
        self._shards = shards
        self._holds = holds
        self._known: dict[int, tuple[list[_Touch], list[_Touch]]] = {}

    def touches(self, operator: int) -> tuple[list[_Touch], list[_Touch]]:
        """What an operator creates and what it uses."""
        known = self._known.get(operator)
        if known is None:
            made = [*self._memory.creates[operator], *self._saved.get(operator, ())]
            own = set(made)
            used = [b for b in self._memory.uses[operator] if b not in own]
            known = self._known[operator] = (
                self._select(operator, made, made_here=True),
                self._select(operator, used, made_here=False),
            )
        return known

    def _select(self, operator: int, buffers: list[int], *, made_here: bool) -> list[_Touch]:
        optimizer = self._trace.operators[operator].phase == "optimizer"
        chosen = []
        for buffer in (self._memory.buffers[b] for b in buffers):
            if buffer.bytes and (self._holds is None or self._holds(operator, buffer)):
                existing = buffer.origin is Origin.EXISTING
                chosen.append(
                    _Touch(
                        buffer=buffer.index,
                        bytes=buffer.bytes * self._shards.get(buffer.index, 1.0),
                        category=str(buffer.role),
                        arrives="" if made_here else "fetch" if existing else "recv",
                        dirty=buffer.dirty or not existing,
                        scales=buffer.scales,
                        per_copy=buffer.scales or (per_copy(buffer) and not optimizer),
                    )
                )
        return chosen


@lru_cache(maxsize=32)
def _saved_by(trace: Trace) -> dict[int, list[int]]:
    """Buffers that only backward names, under the forward operator that must have made them."""
    partners = find_partners(trace)
    saved: dict[int, list[int]] = {}
    for buffer in find_memory(trace).buffers:
        if buffer.origin is Origin.SAVED:
            reader = buffer.uses[0]
            saved.setdefault(partners.get(reader, reader), []).append(buffer.index)
    return saved
