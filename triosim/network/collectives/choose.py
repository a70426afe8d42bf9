"""Which algorithms there are, and which one is the cheapest for a size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from triosim.errors import ConfigError
from triosim.network.collectives.direct import direct
from triosim.network.collectives.halving_doubling import halving_doubling
from triosim.network.collectives.hierarchical import hierarchical, hierarchical_pipelined
from triosim.network.collectives.in_network import in_network
from triosim.network.collectives.moves import OPERATIONS, Algorithm, Phase
from triosim.network.collectives.pattern import Pattern, lay
from triosim.network.collectives.ring import bidirectional_ring, ring
from triosim.network.collectives.torus import torus
from triosim.network.collectives.tree import double_binary_tree, tree
from triosim.network.topology.base import Floats, Ints, Topology

_SHARDS = ("all-reduce", "reduce-scatter", "all-gather")
_ROOTED = ("broadcast", "reduce")


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """An algorithm, what it does in one line, and the operations that it can do."""

    algorithm: Algorithm
    about: str
    operations: tuple[str, ...]


ALGORITHMS: Mapping[str, Entry] = {
    "ring": Entry(
        algorithm=ring,
        about="each rank sends to the next one: the fewest bytes, a latency for every rank",
        operations=(*_SHARDS, "all-to-all", *_ROOTED),
    ),
    "bidirectional-ring": Entry(
        algorithm=bidirectional_ring,
        about="half of the array around the ring in each direction",
        operations=_SHARDS,
    ),
    "tree": Entry(
        algorithm=tree,
        about="the whole array up and down a binomial tree: few steps, many bytes",
        operations=("all-reduce", *_ROOTED),
    ),
    "double-binary-tree": Entry(
        algorithm=double_binary_tree,
        about="chunks of each half of the array up and down a tree of its own",
        operations=("all-reduce", *_ROOTED),
    ),
    "halving-doubling": Entry(
        algorithm=halving_doubling,
        about="partners at doubling distances exchange half of what is left; at other counts than "
        "powers of two the extra ranks hold no shard between reduce-scatter and all-gather, so "
        "that auto leaves these two out",
        operations=_SHARDS,
    ),
    "direct": Entry(
        algorithm=direct,
        about="one message to each peer",
        operations=OPERATIONS,
    ),
    "hierarchical": Entry(
        algorithm=hierarchical,
        about="rings inside each host, then between hosts, and back",
        operations=_SHARDS,
    ),
    "hierarchical-pipelined": Entry(
        algorithm=hierarchical_pipelined,
        about="the same in chunks, so that all tiers are busy at once",
        operations=_SHARDS,
    ),
    "torus": Entry(
        algorithm=torus,
        about="a ring along each dimension of a grid, one after the other",
        operations=_SHARDS,
    ),
    "in-network": Entry(
        algorithm=in_network,
        about="switches add up what passes and send one result to all",
        operations=(*_SHARDS, *_ROOTED),
    ),
}


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Choice:
    """The cheapest algorithm; `times_s` has every one that the ranks and the network allow."""

    algorithm: str
    pattern: Pattern
    time_s: float
    times_s: Mapping[str, float]
    why: str


def algorithms_for(op: str) -> list[str]:
    """The names of the algorithms for an operation."""
    if op not in OPERATIONS:
        raise ConfigError("operation", op, f"must be one of {', '.join(OPERATIONS)}")
    return [name for name, entry in ALGORITHMS.items() if op in entry.operations]


def compared(op: str, ranks: int) -> list[str]:
    """The names of the algorithms that "auto" compares: those that do the whole operation.

    Halving and doubling folds other counts than powers of two, which leaves some ranks without the
    shard that a reduce-scatter is to give and an all-gather to take.
    """
    names = algorithms_for(op)
    if op in ("reduce-scatter", "all-gather") and ranks & (ranks - 1):
        names.remove("halving-doubling")
    return names


def check_algorithm(op: str, algorithm: str, ranks: int) -> None:
    """Raise ConfigError where an algorithm cannot do an operation among so many ranks."""
    names = algorithms_for(op)
    if algorithm not in names:
        raise ConfigError("algorithm", algorithm, f"{op} can use {', '.join(names)}")
    if op == "send" and ranks != 2:
        raise ConfigError("ranks", ranks, "a send joins two of them")


def phases(op: str, algorithm: str, groups: Ints, topology: Topology) -> list[Phase]:
    """What an algorithm sends for an operation inside each group (one row of ranks each).

    The first rank of a group is the root of a broadcast or reduce and the sender of a send. Raises
    ConfigError where the algorithm cannot do that, there or at all.
    """
    check_algorithm(op, algorithm, groups.shape[1])
    run = ALGORITHMS[algorithm].algorithm
    return run(op, groups, topology) if groups.shape[1] > 1 else []


def lay_out(op: str, algorithm: str, groups: Ints, topology: Topology) -> Pattern:
    """The loads and latency of a collective inside all of the groups at the same time."""
    return lay(phases(op, algorithm, groups, topology), topology, groups.size)


def candidates(op: str, groups: Ints, topology: Topology) -> dict[str, Pattern]:
    """The pattern of every algorithm that the operation, the ranks and the network allow."""
    names = compared(op, groups.shape[1])
    tried = {name: attempt(op, name, groups, topology) for name in names}
    return {name: pattern for name, pattern in tried.items() if pattern is not None}


def attempt(op: str, algorithm: str, groups: Ints, topology: Topology) -> Pattern | None:
    """`lay_out`; None where the ranks or the network do not allow the algorithm."""
    try:
        return lay_out(op, algorithm, groups, topology)
    except ConfigError as problem:
        if problem.field != "algorithm":
            raise
        return None


def choose(
    op: str,
    groups: Ints,
    topology: Topology,
    size_bytes: float,
    time_of: Callable[[Pattern, float], float] = Pattern.time_s,
) -> Choice:
    """The algorithm with the least `time_of(pattern, size_bytes)`, in seconds."""
    return cheapest(candidates(op, groups, topology), size_bytes, time_of)


def cheapest(
    patterns: Mapping[str, Pattern],
    size_bytes: float,
    time_of: Callable[[Pattern, float], float] = Pattern.time_s,
) -> Choice:
    """Of the patterns, the fastest for that size; of equally fast ones the first."""
    times = {name: time_of(pattern, size_bytes) for name, pattern in patterns.items()}
    best = min(times, key=lambda name: _rounded(times[name]))
    return Choice(
        algorithm=best,
        pattern=patterns[best],
        time_s=times[best],
        times_s=times,
        why=_why(best, patterns, times, lambda name: time_of(patterns[name], 0.0)),
    )


def _rounded(seconds: float) -> float:
    """Sums of the same terms in another order must tie."""
    return float(f"{seconds:.12g}")


def _why(
    best: str,
    patterns: Mapping[str, Pattern],
    times: Mapping[str, float],
    latency_s: Callable[[str], float],
) -> str:
    """One sentence: the winner against the next one.

    A time is latency plus what grows with the size, so that what the winner gains is the sum of
    what it gains in both: at least one is a reason.
    """
    won = f"{best}, {_duration(times[best])}"
    others = [name for name in times if name != best]
    if not others:
        return f"{won}: compared with no other."
    second = min(others, key=lambda name: _rounded(times[name]))
    if _rounded(times[second]) == _rounded(times[best]):
        return f"{won}: as fast as {second}."
    sooner_s = latency_s(second) - latency_s(best)
    gains_s = {
        _moving(patterns[best], patterns[second]): times[second] - times[best] - sooner_s,
        "less latency": sooner_s,
    }
    least_s = min(1e-9 * times[best], max(gains_s.values()))
    reasons = [reason for reason, gain_s in gains_s.items() if 0 < gain_s >= least_s]
    return f"{won}: {' and '.join(reasons)} than {second} ({_duration(times[second])})."


def _moving(one: Pattern, other: Pattern) -> str:
    """Why bytes take less time in one pattern than in another, if they do."""
    if not one.seconds_per_byte < other.seconds_per_byte * (1 - 1e-12):
        return "less protocol cost of each byte"
    if len(one.phases) == 1 < len(other.phases) and _alike(one.shares(), other.shares()):
        return "less time with all tiers busy at once"
    return f"less time on {'its fullest link' if len(one.phases) == 1 else 'its fullest links'}"


def _alike(one: Floats, other: Floats) -> bool:
    return bool(np.allclose(one, other, rtol=1e-9, atol=0.0))


def _duration(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 1 or unit == "us":
            break
    value = seconds * scale
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"
