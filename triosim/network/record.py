"""What links carried when, for all links of a fabric.

Transfers use links in bundles: a node's eight network cards, say, are all used by the same ones.
Such a bundle's changes are written once, as the number of a state; a state says what each link then
carries.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from triosim.network.links import Load

Floats = NDArray[np.float64]
IDLE = 0  # the state in which nothing is carried


class Record:
    """`bundle[link]` is a position in `steps`: instants at which a bundle's state changed and the
    state since then, in turn, of which the last change of an instant counts."""

    def __init__(self, bundle: Sequence[int]) -> None:
        self.bundle = bundle
        self.steps = [array("d") for _ in range(1 + max(bundle, default=-1))]
        self._states: list[Mapping[int, float]] = [{}]

    def add_state(self, bytes_per_s: Mapping[int, float]) -> int:
        """A state by what its links carry; other links carry nothing."""
        self._states.append(bytes_per_s)
        return len(self._states) - 1

    def usage(self, link: int) -> tuple[Floats, Floats]:
        """`step_function` of a link."""
        time_s, states = step_function(self.steps[self.bundle[link]])
        different, which = np.unique(states, return_inverse=True)
        carried = [self._states[int(state)].get(link, 0.0) for state in different.tolist()]
        return time_s, np.array(carried, dtype=np.float64)[which]

    @property
    def peak_bytes_per_s(self) -> list[float]:
        """The highest load of each link."""
        if not self.bundle:
            return []
        sizes = [len(steps) // 2 for steps in self.steps]
        bundle = np.repeat(np.arange(len(sizes)), sizes)
        time_s, state = np.concatenate([pairs(steps) for steps in self.steps], axis=1)
        lasting = np.append((np.diff(time_s) > 0) | (np.diff(bundle) > 0), True)[: len(state)]
        states: list[list[int]] = [[] for _ in self.steps]
        for pair in np.unique(bundle[lasting] * len(self._states) + state[lasting]).tolist():
            which, reached = divmod(int(pair), len(self._states))
            states[which].append(reached)
        return [
            max((self._states[reached].get(link, 0.0) for reached in states[which]), default=0.0)
            for link, which in enumerate(self.bundle)
        ]


def bundles(links: int, loads: Sequence[Load]) -> list[int]:
    """The bundle of each link if only these loads are sent: those that the same ones use.

    Each link for itself where few loads come again: telling who uses it would cost more than it
    saves.
    """
    different = {id(load): load for load in loads}
    if 2 * len(different) > len(loads):
        return list(range(links))
    users: list[list[int]] = [[] for _ in range(links)]
    parts = {id(part): part for load in different.values() for part in (load, *load.then)}
    for number, part in enumerate(parts.values()):
        for link, size in part.bytes_by_link:
            if size > 0:
                users[link].append(number)
    found: dict[tuple[int, ...], int] = {}
    return [found.setdefault(tuple(own), len(found)) for own in users]


def step_function(steps: array[float]) -> tuple[Floats, Floats]:
    """Instants and values in turn as arrays of the same length, without what lasts no time.

    Value i holds from instant i to the next one, the last one, 0 when all transfers have ended,
    from then on. Empty for a link that carried nothing.
    """
    time_s, values = pairs(steps)
    changes = np.append(time_s[1:] > time_s[:-1], True)[: len(time_s)]
    return time_s[changes], values[changes]


def pairs(steps: array[float]) -> Floats:
    """Instants, and values beside them."""
    return np.array(steps, dtype=np.float64).reshape(-1, 2).T
