"""Optical circuits over a mesh of GPUs.

A circuit joins two GPUs directly, in both directions, and is one hop however many mesh links it
passes. It must be set up before the first byte; a circuit that stands is reused. A GPU terminates
at most `CIRCUITS_PER_GPU`; one more takes the place of the one that it has not used for longest.
Wavelengths on shared mesh links are not modelled here: circuits never contend.
"""

from __future__ import annotations

from collections.abc import Iterable

CIRCUITS_PER_GPU = 8

Circuit = tuple[int, int]


class CircuitSwitch:
    """The circuits that stand, from the least to the most recently used."""

    def __init__(self, setup_s: float, standing: Iterable[Circuit] = ()) -> None:
        self._setup_s = setup_s
        self._ready_at: dict[Circuit, float] = {}
        for circuit in standing:
            self.require([circuit], now=-setup_s)

    @property
    def standing(self) -> list[Circuit]:
        return list(self._ready_at)

    def require(self, circuits: Iterable[Circuit], now: float) -> float:
        """Seconds until all of `circuits` stand; they are set up at the same time."""
        wait = 0.0
        for pair in circuits:
            circuit = min(pair), max(pair)
            ready = self._ready_at.pop(circuit, None)
            if ready is None:
                for end in circuit:
                    self._make_room(end)
                ready = now + self._setup_s
            self._ready_at[circuit] = ready
            wait = max(wait, ready - now)
        return wait

    def _make_room(self, gpu: int) -> None:
        own = [circuit for circuit in self._ready_at if gpu in circuit]
        if len(own) >= CIRCUITS_PER_GPU:
            del self._ready_at[own[0]]


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
