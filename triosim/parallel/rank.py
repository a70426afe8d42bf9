"""Writes one rank class's compute stream, its fetches and its evictions into a program."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from triosim.engine.program import Program, RankClass
from triosim.network.links import Link, Load
from triosim.parallel.residency import Arrival, Residency
from triosim.parallel.work import Key, Work


class RankWriter:
    """Emits slots one after the other; what has to arrive first is emitted before them.

    `task[k]` is the task of slot k once emitted.
    """

    def __init__(
        self,
        program: Program,
        rank_class: RankClass,
        work: Work,
        plan: Residency,
        remote_bytes_per_s: float,
    ) -> None:
        self.program = program
        self.work = work
        self.plan = plan
        self.rank_class = program.add_class(rank_class)
        self.speed = rank_class.speed
        self.task: list[int] = []
        self._remote = [
            program.add_link(
                Link(
                    name=f"remote memory {direction} GPU {rank_class.rank}",
                    bytes_per_s=remote_bytes_per_s,
                    source=ends[0],
                    target=ends[1],
                    members=len(rank_class.members),
                )
            )
            for direction, ends in (
                ("to", (-1, rank_class.rank)),
                ("from", (rank_class.rank, -1)),
            )
        ]
        self._arrivals = iter(plan.arrivals)
        self._next_arrival = next(self._arrivals, None)
        self._stores = iter(plan.stores)
        self._next_store = next(self._stores, None)
        self._store_tasks: list[int] = []
        self._needed: dict[int, list[int]] = {}
        self._held_back: dict[Key, list[int]] = {}
        self._loads: dict[tuple[int, int], Load] = {}
        for provenance, seconds in work.provenance_s.items():
            program.add_computing(self.rank_class, provenance, seconds / self.speed)
        for key in plan.initial:
            item = work.instances[key]
            program.resident[self.rank_class].append((item.category, item.bytes))

    def compute(self, waits: Iterable[int] = ()) -> int:
        """Emit the next slot; `waits` are tasks beside its own arrivals."""
        k = len(self.task)
        slot = self.work.slots[k]
        self._emit_stores(k)
        self._emit_arrivals(k)
        operator = self.work.trace.operators[slot.run.operator]
        waits = [*waits, *self._needed.pop(k, ())]
        task = self.program.compute(
            self.rank_class,
            operator.name,
            operator.phase,
            slot.run.duration_s / self.speed,
            waits,
        )
        self.task.append(task)
        for key in slot.creates:
            self._allocate(task, key)
        for key in self.plan.frees.get(k, ()):
            self.free(task, key)
        return task

    def received(self, task: int, keys: Sequence[Key]) -> None:
        """A transfer from another rank brings these instances: memory, and when there is room."""
        for key in keys:
            self._allocate(task, key)
            for other in self._held_back.get(key, ()):
                self.program.wait(task, other)

    def free(self, task: int, key: Key) -> None:
        item = self.work.instances[key]
        self.program.free(task, item.category, item.bytes)

    def _allocate(self, task: int, key: Key) -> None:
        item = self.work.instances[key]
        self.program.allocate(task, item.category, item.bytes)

    def _emit_stores(self, k: int) -> None:
        while self._next_store is not None and self._next_store.before <= k:
            store = self._next_store
            item = self.work.instances[store.key]
            (task,) = self.program.communicate(
                [(self.rank_class, "store", "store")],
                f"store {item.category}",
                item.category,
                item.bytes,
                self._load(self._remote[1], item.bytes),
                [[self.task[store.after]]],
            )
            self.free(task, store.key)
            self._store_tasks.append(task)
            self._needed.setdefault(k, []).append(task)
            self._next_store = next(self._stores, None)

    def _emit_arrivals(self, k: int) -> None:
        while self._next_arrival is not None and self._next_arrival.gate < k:
            arrival = self._next_arrival
            item = self.work.instances[arrival.key]
            waits = [self.task[arrival.gate]] if arrival.gate >= 0 else []
            waits += self._store_tasks[max(0, arrival.stores - 1) : arrival.stores]
            if item.arrives == "recv" and not arrival.again:
                self._held_back[arrival.key] = waits
            else:
                self._emit_fetch(arrival, waits)
            self._next_arrival = next(self._arrivals, None)

    def _emit_fetch(self, arrival: Arrival, waits: list[int]) -> None:
        item = self.work.instances[arrival.key]
        (task,) = self.program.communicate(
            [(self.rank_class, "fetch", "fetch")],
            f"fetch {item.category}" + (" again" if arrival.again else ""),
            item.category,
            item.bytes,
            self._load(self._remote[0], item.bytes),
            [waits],
        )
        self._allocate(task, arrival.key)
        self._needed.setdefault(arrival.slot, []).append(task)

    def _load(self, link: int, size_bytes: int) -> Load:
        """Tensors of one size are one load: few objects travel between processes."""
        found = self._loads.get((link, size_bytes))
        if found is None:
            found = self._loads[link, size_bytes] = Load(
                bytes_by_link=((link, size_bytes),), latency_s=0.0, sent_bytes=0.0
            )
        return found
