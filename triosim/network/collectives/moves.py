"""What an algorithm sends: the vocabulary between algorithms and topologies.

An algorithm turns an operation on groups of ranks into phases that follow each other. Sizes are
shares of the full array, so that one description serves every message size. All groups (the
tensor-parallel groups of every replica, say) do the same thing at the same time and load the
network together; `groups` holds one row of ranks for each, in the order in which the algorithm
joins them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from triosim.network.topology.base import Floats, Ints, Reduction, Topology

OPERATIONS = (
    "all-reduce", "reduce-scatter", "all-gather", "all-to-all", "broadcast", "reduce", "send",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Sends:
    """`source[i]` sends `share[i]` of the array to `target[i]` in `steps` equal messages."""

    source: Ints
    target: Ints
    share: Floats | float
    steps: int = 1


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Exchange:
    """In each group every rank sends `share` of the array to every other one."""

    groups: Ints
    share: float
    steps: int = 1


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class InNetwork:
    """Switches add up or spread: `up` and `down` are shares of the array on the way there and back.

    `reduction` has the links of both ways; each rank of the groups puts `up` on the network.
    """

    groups: Ints
    reduction: Reduction
    up: float
    down: float
    steps: int = 2


Move = Sends | Exchange | InNetwork


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Phase:
    """Moves that share the network while they last; the next phase starts when all have ended.

    Each move pays its steps' latency; together they pay the longest of these. `pipelined` moves
    feed each other chunk by chunk instead: they also load the network at the same time, but a byte
    passes one after the other, so their latencies add up.
    """

    moves: tuple[Move, ...]
    pipelined: bool = False


Algorithm = Callable[[str, Ints, Topology], list[Phase]]


def there_and_back(op: str, scatter: list[Phase]) -> list[Phase]:
    """The phases of an operation whose all-gather sends what its reduce-scatter sends, backwards.

    An all-reduce is the one, then the other, so that its cost is exactly their sum. An all-to-all
    sends what a reduce-scatter sends, and adds nothing up.
    """
    gather = scatter[::-1]
    return {"all-gather": gather, "all-reduce": scatter + gather}.get(op, scatter)


def in_turn(moves: Iterable[Move]) -> list[Phase]:
    """Each move in a phase of its own."""
    return [Phase(moves=(move,)) for move in moves]
