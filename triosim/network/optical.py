"""Optical circuits over a mesh of GPUs.

A circuit joins two GPUs directly, in both directions, and is one hop however many mesh links it
passes. It is set up before the first byte and then stands until its place is needed: one of the
`CIRCUITS_PER_GPU` that a GPU terminates, or a wavelength on a mesh link. Wavelengths are counted
per mesh link: a circuit may change from one to another on its way (no wavelength continuity).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush
from itertools import count

import numpy as np

from triosim.errors import Infeasible, counted
from triosim.network.mesh import Mesh, Pair

CIRCUITS_PER_GPU = 8

# What a circuit occupies: a GPU's termination, or a wavelength on a mesh link in one direction.
Place = int | Pair


class _Circuit:
    """Standing where `ready_at` is a time. `sets` are those that it is part of."""

    __slots__ = ("pair", "places", "ready_at", "sets")

    def __init__(self, pair: Pair, places: tuple[Place, ...]) -> None:
        self.pair = pair
        self.places = places
        self.ready_at: float | None = None
        self.sets: list[_Set] = []

    @property
    def busy(self) -> bool:
        return any(wanted.holders for wanted in self.sets)

    @property
    def used(self) -> int:
        return max(wanted.used for wanted in self.sets)


class _Set:
    """Circuits that are asked for together; `ready_at` is a time where all of them stand.

    `circuits`, and by place `at`, stay empty as long as the switch knows no other set.
    """

    __slots__ = ("at", "circuits", "holders", "pairs", "ready_at", "used")

    def __init__(self, pairs: tuple[Pair, ...]) -> None:
        self.pairs = pairs
        self.circuits: list[_Circuit] = []
        self.at: dict[Place, list[_Circuit]] = {}
        self.holders = 0
        self.ready_at: float | None = None
        self.used = 0


Granted = Callable[[float], None]
Claims = dict[Place, set[_Circuit]]


class CircuitSwitch:
    """Which circuits stand, which are busy, and who waits for a place.

    All circuits of a request are granted at once. A circuit that somebody holds is busy and stays;
    an idle one gives up its place, the one unused for longest first. Its place is free `teardown_s`
    later; a circuit stands `setup_s` after all of its places are free. Requests are first come,
    first served: one may go if its circuits fit, wherever they pass, beside those that are busy and
    those that earlier requests wait for.
    """

    def __init__(
        self,
        setup_s: float,
        *,
        teardown_s: float = 0.0,
        mesh: Mesh | None = None,
        standing: Iterable[Pair] = (),
    ) -> None:
        self._setup_s = setup_s
        self._teardown_s = teardown_s
        self._mesh = mesh if mesh is not None and mesh.wavelengths is not None else None
        self._circuits: dict[Pair, _Circuit] = {}
        self._sets: dict[tuple[Pair, ...], _Set] = {}
        self._seen: dict[int, tuple[Sequence[Pair], _Set]] = {}
        self._through: dict[Place, dict[_Circuit, None]] = {}
        self._freed_at: dict[Place, list[float]] = {}
        self._waiting: list[tuple[_Set, Granted]] = []
        self._claims: Claims = {}
        self._clock = count(1)
        for pair in standing:
            self.acquire([pair], -setup_s, lambda _: None)
            self.release([pair], 0.0)

    @property
    def standing(self) -> list[Pair]:
        """Pairs of GPUs, the smaller number first."""
        for known in self._sets.values():
            self._unfold(known)
        return [pair for pair, c in self._circuits.items() if c.ready_at is not None]

    def acquire(self, circuits: Sequence[Pair], now: float, granted: Granted) -> None:
        """Ask for circuits: `granted(wait_s)` is called when they are held, now or later.

        All of them stand `wait_s` after that call. Raises `Infeasible` where they could never stand
        together.
        """
        wanted = self._set_of(circuits)
        if self._fits(wanted, self._claims):
            self._grant(wanted, now, granted)
        else:
            self._wait(wanted, granted)

    def release(self, circuits: Sequence[Pair], now: float) -> None:
        """Give back what `acquire` granted; requests that it lets through are granted."""
        idle = self._set_of(circuits)
        idle.holders -= 1
        idle.used = next(self._clock)
        if idle.holders or not self._waiting:
            return
        waiting, self._waiting, self._claims = self._waiting, [], {}
        for wanted, granted in waiting:
            if self._fits(wanted, self._claims):
                self._grant(wanted, now, granted)
            else:
                self._wait(wanted, granted)

    def _wait(self, wanted: _Set, granted: Granted) -> None:
        self._waiting.append((wanted, granted))
        for place, own in wanted.at.items():
            self._claims.setdefault(place, set()).update(own)

    def _fits(self, wanted: _Set, claims: Claims) -> bool:
        """Whether the circuits have a place beside the busy ones and the claims."""
        if wanted.ready_at is not None and not claims:
            return True
        for place, own in wanted.at.items():
            rivals = {c for c in self._through.get(place, ()) if c.busy}
            if len(rivals.union(own, claims.get(place, ()))) > self._limit(place):
                return False
        return True

    def _grant(self, wanted: _Set, now: float, granted: Granted) -> None:
        wanted.holders += 1  # before the set-up, so that none of its own makes room for another
        if wanted.ready_at is None:
            ready = (self._set_up(circuit, now) for circuit in wanted.circuits)
            wanted.ready_at = max(ready, default=now + self._setup_s)
        granted(max(0.0, wanted.ready_at - now))

    def _set_up(self, circuit: _Circuit, now: float) -> float:
        if circuit.ready_at is None:
            free_at = max(self._take(place, circuit, now) for place in circuit.places)
            circuit.ready_at = max(now, free_at) + self._setup_s
        return circuit.ready_at

    def _take(self, place: Place, circuit: _Circuit, now: float) -> float:
        """Occupy a place; the time from which it is free."""
        through = self._through.setdefault(place, {})
        if len(through) == self._limit(place):
            idle = (other for other in through if not other.busy)
            self._tear_down(min(idle, key=lambda other: other.used), now)
        freed_at = self._freed_at.get(place, [])
        never_used = self._limit(place) - len(through) - len(freed_at)
        through[circuit] = None
        return now if never_used > 0 else heappop(freed_at)

    def _tear_down(self, circuit: _Circuit, now: float) -> None:
        circuit.ready_at = None
        for wanted in circuit.sets:
            wanted.ready_at = None
        for place in circuit.places:
            del self._through[place][circuit]
            heappush(self._freed_at.setdefault(place, []), now + self._teardown_s)

    def _limit(self, place: Place) -> int:
        if isinstance(place, int):
            return CIRCUITS_PER_GPU
        assert self._mesh is not None
        assert self._mesh.wavelengths is not None
        return self._mesh.wavelengths

    def _set_of(self, circuits: Sequence[Pair]) -> _Set:
        """Known by the object that names them: comparing 16,384 circuits each time takes long."""
        seen = self._seen.get(id(circuits))
        if seen is None:
            pairs = tuple(dict.fromkeys((min(pair), max(pair)) for pair in circuits))
            if pairs not in self._sets:
                if len(pairs) > 1:
                    self._check(pairs)
                self._sets[pairs] = _Set(pairs)
                # NOTE: one set alone has no rivals; not unfolding the ring of 16,384 GPUs, the only
                # set of an all-reduce, takes 15 ms in place of 250.
                if len(self._sets) > 1:
                    self._unfold(next(iter(self._sets.values())))
                    self._unfold(self._sets[pairs])
            # Kept with the object, whose number would otherwise be given to another.
            seen = self._seen[id(circuits)] = circuits, self._sets[pairs]
        return seen[1]

    def _unfold(self, known: _Set) -> None:
        """Make a set's circuits; where they stand already, so far alone, they take their places."""
        if known.circuits:
            return
        known.circuits = [self._circuit(pair) for pair in known.pairs]
        for circuit in known.circuits:
            circuit.sets.append(known)
            for place in circuit.places:
                known.at.setdefault(place, []).append(circuit)
                if known.ready_at is not None:
                    self._through.setdefault(place, {})[circuit] = None
            if known.ready_at is not None:
                circuit.ready_at = known.ready_at

    def _circuit(self, pair: Pair) -> _Circuit:
        if pair not in self._circuits:
            places: tuple[Place, ...] = pair
            if self._mesh is not None:
                places = (*pair, *self._mesh.route(*pair), *self._mesh.route(*pair[::-1]))
            self._circuits[pair] = _Circuit(pair, places)
        return self._circuits[pair]

    def _check(self, pairs: tuple[Pair, ...]) -> None:
        """Raise `Infeasible` where the circuits can never stand together."""
        ends, at_end = np.unique(np.array(pairs), return_counts=True)
        if at_end.max() > CIRCUITS_PER_GPU:
            raise Infeasible(
                f"A transfer needs {at_end.max()} circuits at once at GPU {ends[at_end.argmax()]}, "
                f"which terminates at most {CIRCUITS_PER_GPU}."
            )
        if self._mesh is None:
            return
        needed, link = self._mesh.fullest_link(pairs)
        limit = self._limit(link)
        if needed > limit:
            raise Infeasible(
                f"A transfer needs {needed} circuits at once on the mesh link from GPU {link[0]} "
                f"to GPU {link[1]}, which has {counted(limit, 'wavelength')}; raise the "
                f"wavelengths to {needed}."
            )


def ring_order(rows: int, cols: int) -> list[int]:
    """GPUs (row-major numbers) in the order of a ring laid along a rows x cols mesh.

    Neighbours on the ring are neighbours on the mesh wherever a Hamiltonian cycle exists: both
    sides at least 2 and one of them even. Elsewhere the ring follows a snake and only the closing
    circuit passes other GPUs.
    """
    if rows % 2 and not cols % 2 and rows > 1:
        return [_transpose(gpu, rows, cols) for gpu in ring_order(cols, rows)]
    if rows % 2 or cols < 2:
        return [
            row * cols + col
            for row in range(rows)
            for col in (range(cols) if row % 2 == 0 else reversed(range(cols)))
        ]
    # An even number of rows: snake through columns 1..., come back along column 0.
    ring = [0]
    for row in range(rows):
        across = range(1, cols) if row % 2 == 0 else reversed(range(1, cols))
        ring += [row * cols + col for col in across]
    return ring + [row * cols for row in reversed(range(1, rows))]


def _transpose(gpu: int, rows: int, cols: int) -> int:
    """GPU number on the rows x cols mesh of a number counted on the cols x rows mesh."""
    col, row = divmod(gpu, rows)
    return row * cols + col


def mesh_factorisations(gpus: int) -> list[tuple[int, int]]:
    """Every rows x cols with that many GPUs, rows ascending."""
    return [(rows, gpus // rows) for rows in range(1, gpus + 1) if gpus % rows == 0]
