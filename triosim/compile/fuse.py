"""The greedy loop: list pairs, rank them, take the best that stay legal, start again.

As Inductor 2.13 does: only groups that use a common buffer are paired; at most 64 pairs forward in
the list of a buffer's users; the order is `Score`'s; at most ten rounds. Every pair of every round
is kept with what became of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from triosim.compile.graph import Node, OperatorGraph
from triosim.compile.group import Group
from triosim.compile.legality import CYCLE, OUTER_LAST, Rules
from triosim.compile.score import Score

ROUNDS = 10
PAIRS_PER_USER = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """One pair in one round; names of the nodes on both sides, in order.

    `category`: "after product", "before product", "mixed order", "alike" or "mixed kinds"; `chain`
    says that the second needs the first's result. `rank` counts from 1 among the round's legal
    pairs, None for those refused at once. `refusal` is "" where the pair was taken.
    """

    round: int
    first: tuple[str, ...]
    second: tuple[str, ...]
    category: str
    chain: bool
    shared_bytes: int
    distance: int
    rank: int | None = None
    taken: bool = False
    refusal: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fusion:
    """What came out: `groups` of nodes in an order of execution, and the whole history."""

    graph: OperatorGraph
    backend: str
    groups: tuple[tuple[Node, ...], ...]
    history: tuple[Candidate, ...]

    @property
    def rounds(self) -> int:
        return max((c.round for c in self.history), default=0)


def fuse(graph: OperatorGraph, backend: str = "triton") -> Fusion:
    """Groups of nodes that run as one kernel each."""
    rules = Rules(graph, backend)
    groups = [Group(graph, [node]) for node in graph.nodes]
    history: list[Candidate] = []
    for number in range(1, ROUNDS + 1):
        before = len(groups)
        groups = _round(rules, groups, number, history)
        if len(groups) in (before, 1):
            break
    return Fusion(
        graph=graph, backend=backend, groups=tuple(g.nodes for g in groups), history=tuple(history)
    )


def _round(rules: Rules, groups: list[Group], number: int, history: list[Candidate]) -> list[Group]:
    """One pass over all pairs; what is taken changes what the later ones stand for."""
    legal = []
    for a, b in _pairs(groups):
        refused = rules.refusal(a, b)
        if refused and b.is_template and not rules.refusal(b, a):
            legal.append((b, a))
        elif refused:
            history.append(_candidate(rules, a, b, number, refusal=refused))
        else:
            legal.append((a, b))
    now = legal
    if any(not rules.later(a, b) for a, b in legal):
        now = [pair for pair in legal if not rules.later(*pair)]
        history += [
            _candidate(rules, a, b, number, refusal=OUTER_LAST)
            for a, b in legal if rules.later(a, b)
        ]  # fmt: skip
    scores = {pair: Score.of(*pair, rules.saved_bytes(*pair)) for pair in now}
    now.sort(key=scores.__getitem__, reverse=True)
    home = {name: group for group in groups for name in group.names}
    for rank, (a, b) in enumerate(now, start=1):
        first, second = home[a.nodes[0].name], home[b.nodes[0].name]
        refused = rules.refusal(first, second) or (
            CYCLE if makes_cycle(home, first, second) else ""
        )
        entry = _candidate(rules, a, b, number, refusal=refused)
        history.append(replace(entry, rank=rank, taken=not refused))
        if not refused:
            both = rules.fuse(first, second)
            home.update(dict.fromkeys(both.names, both))
    return in_order(list(dict.fromkeys(home[node.name] for node in rules.graph.nodes)))


def _pairs(groups: list[Group]) -> list[tuple[Group, Group]]:
    """Groups that use a common buffer, each pair once."""
    users: dict[str, list[Group]] = {}
    for group in groups:
        if not group.closed:
            for name in group.used:
                users.setdefault(name, []).append(group)
    pairs: dict[tuple[Group, Group], None] = {}
    for found in users.values():
        for i, a in enumerate(found):
            pairs.update(dict.fromkeys((a, b) for b in found[i + 1 : i + 1 + PAIRS_PER_USER]))
    return list(pairs)


def makes_cycle(home: dict[str, Group], a: Group, b: Group) -> bool:
    """Whether a third group would have to run after one of the two and before the other."""
    return _passes_through(home, a, b) or _passes_through(home, b, a)


def _passes_through(home: dict[str, Group], start: Group, end: Group) -> bool:
    """Whether a way back from `end` over other groups leads to `start`."""
    before = {home[end.graph.writer[x.buffer]] for x in end.sources} - {start, end}
    seen: set[Group] = set()
    while before:
        group = before.pop()
        seen.add(group)
        for access in group.sources:
            source = home[group.graph.writer[access.buffer]]
            if source is start:
                return True
            if source not in seen and source is not end:
                before.add(source)
    return False


def in_order(groups: list[Group]) -> list[Group]:
    """Sorted by their first node, but every group after those it reads from."""
    writer = {name: group for group in groups for name in group.written}
    done: dict[Group, None] = {}
    seen: set[Group] = set()

    def visit(group: Group) -> None:
        stack = [(group, iter(_sources(group, writer)))]
        seen.add(group)
        while stack:
            current, rest = stack[-1]
            following = next((g for g in rest if g not in seen), None)
            if following is None:
                done[current] = None
                stack.pop()
            else:
                seen.add(following)
                stack.append((following, iter(_sources(following, writer))))

    for group in sorted(groups, key=lambda g: g.first):
        if group not in seen:
            visit(group)
    return list(done)


def _sources(group: Group, writer: dict[str, Group]) -> list[Group]:
    return [writer[name] for name in sorted({a.buffer for a in group.sources})]


def _candidate(rules: Rules, a: Group, b: Group, number: int, *, refusal: str) -> Candidate:
    if a.is_template:
        category = "after product"
    elif b.is_template:
        category = "before product"
    elif rules.mixed_order(a, b):
        category = "mixed order"
    else:
        category = "alike" if a.is_reduction == b.is_reduction else "mixed kinds"
    return Candidate(
        round=number,
        first=tuple(n.name for n in a.nodes),
        second=tuple(n.name for n in b.nodes),
        category=category,
        chain=b.depends_on(a),
        shared_bytes=rules.saved_bytes(a, b),
        distance=a.distance(b),
        refusal=refusal,
    )
