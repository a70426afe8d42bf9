"""The messages of each algorithm: which chunks pass between which ranks in which step.

Ranks are 0 .. n-1, and arrays are cut into equal chunks. `steps` turns these plans into scripts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from triosim.errors import ConfigError
from triosim.network.collectives.halving_doubling import fold
from triosim.network.collectives.tree import double_tree_edges

SWITCH = -1
MAX_CHUNKS = 4096


@dataclass(frozen=True, slots=True)
class Message:
    """`chunks` go from `source` to `target`, which adds them to its own if `reduces`.

    Source or target is `SWITCH` where a switch adds up.
    """

    source: int
    target: int
    chunks: tuple[int, ...]
    reduces: bool = False


Messages = list[Message]


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """Steps inwards (reduce-scatter or reduce) and outwards (all-gather or broadcast).

    The steps outwards begin `overlap` steps before the end of those inwards.
    """

    chunks: int
    inward: list[Messages]
    outward: list[Messages]
    overlap: int = 0

    def steps(self, op: str) -> list[Messages]:
        if op in ("reduce-scatter", "reduce"):
            return self.inward
        if op != "all-reduce":
            return self.outward
        late: list[Messages] = [[] for _ in range(len(self.inward) - self.overlap)]
        return _together([self.inward, late + self.outward])


def plan(
    op: str,
    algorithm: str,
    ranks: int,
    *,
    hosts: Sequence[int] | None,
    shape: Sequence[int] | None,
    pieces: int,
) -> Plan:
    """The plan of a legal combination; see `steps.script` for the settings."""
    if algorithm == "torus":
        return torus(ranks, tuple(shape or (ranks,)))
    if algorithm in ("hierarchical", "hierarchical-pipelined"):
        return hierarchical(ranks, tuple(hosts or (ranks,)))
    if algorithm == "in-network":
        return in_network(op, ranks)
    if op == "all-to-all":
        return (ring_all_to_all if algorithm == "ring" else direct_all_to_all)(ranks)
    if op in ("broadcast", "reduce", "send") or algorithm in ("tree", "double-binary-tree"):
        return rooted(algorithm, ranks, pieces)
    shards = {
        "ring": ring,
        "bidirectional-ring": bidirectional_ring,
        "halving-doubling": halving_doubling,
        "direct": direct,
    }
    return shards[algorithm](ranks)


def _together(parts: Iterable[list[Messages]]) -> list[Messages]:
    """Several lists of steps at the same time."""
    steps = zip_longest(*parts, fillvalue=())
    return [[message for messages in step for message in messages] for step in steps]


def _around(ring: Sequence[int], blocks: Sequence[tuple[int, ...]]) -> Plan:
    """Block b of chunks ends at the b-th rank of the ring."""
    n = len(ring)
    hops = [(i, ring[i], ring[(i + 1) % n]) for i in range(n)]
    return Plan(
        chunks=sum(map(len, blocks)),
        inward=[[Message(a, b, blocks[(i - s - 1) % n], True) for i, a, b in hops]
                for s in range(n - 1)],
        outward=[[Message(a, b, blocks[(i - s) % n]) for i, a, b in hops] for s in range(n - 1)],
    )  # fmt: skip


def _side_by_side(plans: Sequence[Plan]) -> Plan:
    return Plan(
        chunks=sum(plan.chunks for plan in plans),
        inward=_together([plan.inward for plan in plans]),
        outward=_together([plan.outward for plan in plans]),
    )


def _nested(levels: Sequence[Plan], chunks: int) -> Plan:
    """Levels from the inside out, and back."""
    return Plan(
        chunks=chunks,
        inward=[step for level in levels for step in level.inward],
        outward=[step for level in reversed(levels) for step in level.outward],
    )


def ring(n: int) -> Plan:
    return _around(range(n), [(c,) for c in range(n)])


def bidirectional_ring(n: int) -> Plan:
    there = _around(range(n), [(c,) for c in range(n)])
    back = _around(range(n)[::-1], [(n + c,) for c in range(n)[::-1]])
    return _side_by_side([there, back])


def halving_doubling(n: int) -> Plan:
    survivors, extras, partners = (positions.tolist() for positions in fold(n))
    q = len(survivors)
    inward, outward = [], []
    for bit in (1 << k for k in range(q.bit_length() - 1)):
        mask = 2 * bit - 1
        # What place v is responsible for after this exchange.
        kept = [tuple(c for c in range(q) if c & mask == v & mask) for v in range(q)]
        pairs = [(v, v ^ bit) for v in range(q)]
        inward.append([Message(survivors[v], survivors[w], kept[w], True) for v, w in pairs])
        outward.append([Message(survivors[v], survivors[w], kept[v]) for v, w in pairs])
    outward.reverse()
    if extras:
        all_chunks = tuple(range(q))
        pairs = list(zip(extras, partners, strict=True))
        inward.insert(0, [Message(extra, partner, all_chunks, True) for extra, partner in pairs])
        outward.append([Message(partner, extra, all_chunks) for extra, partner in pairs])
    return Plan(chunks=q, inward=inward, outward=outward)


def direct(n: int) -> Plan:
    pairs = [[(i, (i + k) % n) for i in range(n)] for k in range(1, n)]
    return Plan(
        chunks=n,
        inward=[[Message(i, peer, (peer,), True) for i, peer in step] for step in pairs],
        outward=[[Message(i, peer, (i,)) for i, peer in step] for step in pairs],
    )


def torus(n: int, shape: tuple[int, ...]) -> Plan:
    if min(shape) < 1 or math.prod(shape) != n:
        raise ConfigError("shape", shape, f"must multiply to {n} ranks")
    place = list(np.ndindex(*shape))
    levels = []
    for axis in reversed(range(len(shape))):
        rings: dict[tuple[int, ...], list[int]] = {}
        for rank, at in enumerate(place):
            rings.setdefault((*at[:axis], *at[axis + 1 :]), []).append(rank)
        # What the axes before have left: the chunks of places with the same later coordinates.
        blocks = [
            [
                tuple(c for c, at in enumerate(place) if at[axis:] == (k, *across[axis:]))
                for k in range(shape[axis])
            ]
            for across in rings
        ]
        levels.append(_side_by_side(list(map(_around, rings.values(), blocks))))
    return _nested(levels, n)


def hierarchical(n: int, hosts: tuple[int, ...]) -> Plan:
    if min(hosts) < 1 or sum(hosts) != n:
        raise ConfigError("hosts", hosts, f"must add up to {n} ranks")
    intervals, count = math.lcm(*hosts), len(hosts)
    if intervals * count > MAX_CHUNKS:
        raise ConfigError("hosts", hosts, "cut the array into too many different parts to list")
    first = [sum(hosts[:h]) for h in range(count)]
    inside = [
        _around(
            range(start, start + size),
            [
                tuple(range(j * intervals // size * count, (j + 1) * intervals // size * count))
                for j in range(size)
            ],
        )
        for start, size in zip(first, hosts, strict=True)
    ]
    between = [
        _around(
            [start + e * size // intervals for start, size in zip(first, hosts, strict=True)],
            [(e * count + h,) for h in range(count)],
        )
        for e in range(intervals)
    ]
    return _nested([_side_by_side(inside), _side_by_side(between)], intervals * count)


def in_network(op: str, n: int) -> Plan:
    """Up to the switch and back; an all-reduce, broadcast or reduce is one chunk."""
    ranks = range(n)
    if op in ("reduce-scatter", "all-gather"):
        others = [tuple(c for c in ranks if c != r) for r in ranks]
        up = [Message(r, SWITCH, others[r], True) for r in ranks]
        down = [Message(SWITCH, r, (r,), True) for r in ranks]
        collect = [Message(r, SWITCH, (r,)) for r in ranks]
        spread = [Message(SWITCH, r, others[r]) for r in ranks]
        return Plan(chunks=n, inward=[up, down], outward=[collect, spread])
    up = [Message(r, SWITCH, (0,), True) for r in ranks]
    down = [Message(SWITCH, r, (0,)) for r in ranks]
    if op == "all-reduce":
        return Plan(chunks=1, inward=[up], outward=[down])
    return Plan(chunks=1, inward=[up, down[:1]], outward=[up[:1], down])


def rooted(algorithm: str, n: int, pieces: int) -> Plan:
    """Everything starts or ends at rank 0."""
    if algorithm == "ring":
        return _streams([{v: v - 1 for v in range(1, n)}], pieces)
    if algorithm == "double-binary-tree":
        child, parent = (nodes.tolist() for nodes in double_tree_edges(n))
        edges = list(zip(child, parent, strict=True))
        return _streams([dict(edges[: n - 1]), dict(edges[n - 1 :])], pieces)
    if algorithm == "tree":
        distances = [1 << k for k in range((n - 1).bit_length())]
        levels = [[(v, v - d) for v in range(d, n, 2 * d)] for d in distances]
    else:
        levels = [[(v, 0)] for v in range(1, n)]
    return Plan(
        chunks=1,
        inward=[[Message(low, high, (0,), True) for low, high in level] for level in levels],
        outward=[[Message(high, low, (0,)) for low, high in level] for level in reversed(levels)],
    )


def _streams(trees: Sequence[Mapping[int, int]], pieces: int) -> Plan:
    """Each tree (parents by child) carries its part of the array in `pieces` chunks."""
    inward: list[Messages] = []
    outward: list[Messages] = []
    depths = [{child: _depth(tree, child) for child in tree} for tree in trees]
    levels = max((depth for tree in depths for depth in tree.values()), default=0)
    for step in range(levels + pieces - 1 if levels else 0):
        up, down = [], []
        for k, tree in enumerate(trees):
            for child, parent in tree.items():
                depth = depths[k][child]
                if 0 <= (piece := step - (levels - depth)) < pieces:
                    up.append(Message(child, parent, (k * pieces + piece,), True))
                if 0 <= (piece := step - (depth - 1)) < pieces:
                    down.append(Message(parent, child, (k * pieces + piece,)))
        inward.append(up)
        outward.append(down)
    return Plan(
        chunks=len(trees) * pieces, inward=inward, outward=outward, overlap=max(pieces - 1, 0)
    )


def _depth(tree: Mapping[int, int], node: int) -> int:
    return 1 + _depth(tree, tree[node]) if node in tree else 0


def direct_all_to_all(n: int) -> Plan:
    outward = [
        [Message(i, (i + k) % n, (i * n + (i + k) % n,)) for i in range(n)] for k in range(1, n)
    ]
    return Plan(chunks=n * n, inward=[], outward=outward)


def ring_all_to_all(n: int) -> Plan:
    """The shorter way round; what goes to the opposite rank is cut in halves, one each way."""
    halves = 2 - n % 2
    outward: list[Messages] = []
    for hop in range(1, n // 2 + 1):
        messages = []
        for source in range(n):
            for distance in range(hop, n // 2 + 1):
                for way in (1, -1):
                    first = (source * n + (source + way * distance) % n) * halves
                    chunks = range(first, first + halves)
                    if 2 * distance == n:
                        chunks = chunks[:1] if way == 1 else chunks[1:]
                    at = source + way * (hop - 1)
                    messages.append(Message(at % n, (at + way) % n, tuple(chunks)))
        outward.append(messages)
    return Plan(chunks=n * n * halves, inward=[], outward=outward)
