"""When tensors come into a rank's memory and leave it.

The order of operators on a rank is fixed, so residency can be planned before anything runs. Fetches
come in the order of first use, each as early as memory allows: after the first operator from which
on it fits all the way to its use. Where even the tensors in use do not fit, the one that is needed
last is evicted (Belady's rule): dropped if remote memory has the same content, else stored there
first; it is fetched again for its next use.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush
from weakref import WeakKeyDictionary

import numpy as np

from triosim.errors import Infeasible
from triosim.parallel.work import Key, Work

_Rank = tuple[int, int, tuple[int, int]]  # -next use, -bytes, -key

MAX_BYTES = 2**62  # sums stay within 64 bits

# Plans live as long as the work they are for: the same step is simulated again and again while a
# user moves sliders that do not touch memory.
_PLANS: WeakKeyDictionary[Work, dict[tuple[int, bool], Residency]] = WeakKeyDictionary()


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrival:
    """An instance that must be there before slot `slot` and may come once slot `gate` has ended.

    `gate` -1: from the start. `stores`: how many of the plan's stores must have ended before.
    """

    key: Key
    slot: int
    gate: int
    stores: int = 0
    again: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Store:
    """An eviction with write-back: after slot `after`, before slot `before`."""

    key: Key
    after: int
    before: int


@dataclass(kw_only=True, slots=True)
class Residency:
    """The plan of one rank. `frees[k]` leave memory when slot k ends; stored ones when stored.

    `blocking_sends`: memory is so tight that a rank waits for its sends to end before it goes on.
    """

    arrivals: list[Arrival]
    initial: list[Key] = field(default_factory=list)
    stores: list[Store] = field(default_factory=list)
    frees: dict[int, list[Key]] = field(default_factory=dict)
    dropped: int = 0
    blocking_sends: bool = False


def plan_residency(
    work: Work, capacity_bytes: int, *, resident: bool, sent: tuple[Key, ...] = ()
) -> Residency:
    """Plan one rank's memory.

    With `resident`, what exists before the step is in memory already and stays. `sent` are the
    instances that other ranks are waiting for: they stay until their transfer has ended.

    Raises `Infeasible` where one operator's own tensors exceed the capacity.
    """
    plans = _PLANS.setdefault(work, {})
    key = (capacity_bytes, resident)
    if key not in plans:
        plans[key] = _plan(work, capacity_bytes, resident, sent)
    return plans[key]


def _plan(work: Work, capacity_bytes: int, resident: bool, sent: tuple[Key, ...]) -> Residency:
    total = sum(item.bytes for item in work.instances.values())
    if total > MAX_BYTES:
        raise Infeasible(
            f"One step touches {total:,} bytes on a GPU, more than 2^62; use a smaller batch."
        )
    planner = _Planner(work, capacity_bytes, resident, frozenset(sent))
    held = planner.profile(early=True)
    if held.max(initial=0) <= capacity_bytes:
        return planner.unhurried()
    return planner.tight(blocking_sends=bool(sent))


class _Planner:
    def __init__(
        self, work: Work, capacity_bytes: int, resident: bool, sent: frozenset[Key]
    ) -> None:
        self.work = work
        self.capacity = capacity_bytes
        self.sent = sent  # leaves with its transfer, not with its last use
        self.count = len(work.slots)
        self.permanent = {
            key for key, item in work.instances.items() if resident and item.arrives == "fetch"
        }
        self.arriving = sorted(
            (item.uses[0], order, key)
            for order, (key, item) in enumerate(work.instances.items())
            if item.arrives and key not in self.permanent
        )

    def profile(self, *, early: bool) -> np.ndarray:
        """Bytes in memory while each slot runs.

        With `early` an upper bound: every arrival is there from the start and what is sent stays.
        """
        change = np.zeros(self.count + 1, dtype=np.int64)
        for key, item in self.work.instances.items():
            permanent = key in self.permanent
            first = 0 if permanent or (early and item.arrives) else item.uses[0]
            stays = permanent or (early and key in self.sent)
            last = self.count if stays else item.uses[-1] + 1
            change[first] += item.bytes
            change[last] -= item.bytes
        return np.cumsum(change)[:-1]

    def unhurried(self) -> Residency:
        """Everything fits at once."""
        frees: dict[int, list[Key]] = {}
        for key, item in self.work.instances.items():
            if key not in self.permanent and key not in self.sent:
                frees.setdefault(item.uses[-1], []).append(key)
        return Residency(
            arrivals=[Arrival(key=key, slot=slot, gate=-1) for slot, _, key in self.arriving],
            initial=list(self.permanent),
            frees=frees,
        )

    def tight(self, *, blocking_sends: bool) -> Residency:
        used = self.profile(early=False)
        plan = Residency(arrivals=[], blocking_sends=blocking_sends)
        live = set(self.permanent)
        idle = [self._rank(key, 0) for key in live]
        heapify(idle)
        for i, slot in enumerate(self.work.slots):
            needed = {*slot.uses, *slot.creates}
            live |= needed
            while used[i] > self.capacity:
                key = self._victim(i, live, needed, idle)
                live.remove(key)
                self._evict(key, i, used, plan)
            for key in needed:
                if key not in self.permanent and self.work.instances[key].uses[-1] == i:
                    live.remove(key)
                    if key not in self.sent:
                        plan.frees.setdefault(i, []).append(key)
                else:
                    heappush(idle, self._rank(key, i + 1))
        plan.initial = list(self.permanent)
        self._schedule(used, plan)
        return plan

    def _rank(self, key: Key, slot: int) -> _Rank:
        """Lowest for what is evicted first: what is needed last; of equals, the largest."""
        return -self._next_use(key, slot), -self.work.instances[key].bytes, (-key[0], -key[1])

    def _victim(self, slot: int, live: set[Key], needed: set[Key], idle: list[_Rank]) -> Key:
        """Take the next one off the heap `idle`, passing over entries that no longer hold."""
        while idle:
            rank = heappop(idle)
            key = (-rank[2][0], -rank[2][1])
            if key in live and key not in needed and rank == self._rank(key, slot):
                return key
        size = sum(self.work.instances[key].bytes for key in needed)
        operator = self.work.trace.operators[self.work.slots[slot].run.operator]
        raise Infeasible(
            f"Operator {operator.id} ({operator.name}) needs {size:,} bytes in memory at once "
            f"and a GPU has {self.capacity:,}; raise the memory capacity or use a smaller "
            "batch."
        )

    def _next_use(self, key: Key, slot: int) -> int:
        uses = self.work.instances[key].uses
        position = bisect_left(uses, slot)
        return uses[position] if position < len(uses) else self.count

    def _evict(
        self,
        key: Key,
        slot: int,
        used: np.ndarray,
        plan: Residency,
    ) -> None:
        item = self.work.instances[key]
        next_use = self._next_use(key, slot)
        used[slot:next_use] -= item.bytes
        position = bisect_left(item.uses, slot)
        if position == 0:
            # Never here before its first use: it comes and goes like what is not resident.
            self.permanent.discard(key)
            used[item.uses[-1] + 1 :] -= item.bytes
        elif item.dirty:
            plan.stores.append(Store(key=key, after=item.uses[position - 1], before=slot))
        else:
            plan.frees.setdefault(slot - 1, []).append(key)
            plan.dropped += 1
        if next_use < self.count:
            plan.arrivals.append(Arrival(key=key, slot=next_use, gate=slot - 1, again=position > 0))

    def _schedule(self, used: np.ndarray, plan: Residency) -> None:
        """Let every arrival come as early as it fits, in the order of use.

        Before, the gate of an arrival only says since when its memory has been free.
        """
        first = [Arrival(key=key, slot=slot, gate=-1) for slot, _, key in self.arriving]
        wanted = sorted([*plan.arrivals, *first], key=lambda arrival: arrival.slot)
        plan.arrivals = []
        stored = [store.before for store in plan.stores]  # ascending
        gate = -1
        for arrival in wanted:
            size = self.work.instances[arrival.key].bytes
            gate = max(gate, arrival.gate)
            full = np.flatnonzero(used[gate + 1 : arrival.slot] + size > self.capacity)
            if len(full):
                gate += 1 + int(full[-1])
            gate = min(gate, arrival.slot - 1)
            used[gate + 1 : arrival.slot] += size
            stores = bisect_right(stored, gate + 1)
            plan.arrivals.append(replace(arrival, gate=gate, stores=stores))
