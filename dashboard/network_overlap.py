"""Two collectives on one network, the second one later: when each ends, and what links carry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dashboard.network_groups import Members, groups_of
from dashboard.network_study import Network
from triosim.engine.executor import execute
from triosim.engine.program import Program, RankClass
from triosim.figures.network_overlap import Span, Usage
from triosim.figures.text import bytes_text, share_text, time_text
from triosim.network.cluster import Cluster
from triosim.network.links import Link, Load
from triosim.network.sharing import fair_rates

ALONE, TOGETHER = "alone", "together"
NAMES = ("first", "second")
SMALL = 1e-9


@dataclass(frozen=True, kw_only=True, slots=True)
class Wish:
    """A collective that someone wants to run."""

    operation: str
    size_bytes: float
    members: Members


@dataclass(frozen=True, kw_only=True, eq=False)
class Overlap:
    """Both collectives: `spans` alone and together, and the links that both use, those first that
    both fill for longest."""

    spans: Sequence[Span]
    shared: Sequence[Usage]
    algorithms: tuple[str, str]

    def span(self, which: int, row: str) -> Span:
        return next(s for s in self.spans if s.which == which and s.row.startswith(row))


def overlap(network: Network, wishes: tuple[Wish, Wish], offset_s: float) -> Overlap:
    """Run them alone and together; groups act with all their siblings.

    Raises `ConfigError` or `Infeasible`.
    """
    topology = network.build()
    cluster = Cluster(topology, protocol=False)
    pending = []
    for wish in wishes:
        groups, _ = groups_of(wish.members, topology, wish.operation)
        pending.append(cluster.collective(wish.operation, groups, wish.size_bytes))
    links, loads = cluster.settle(pending, first=0)
    starts = (0.0, offset_s)
    spans: list[Span] = []
    for which in (0, 1):
        (end,) = _ends(links, [loads[which]], [starts[which]])
        row = f"{ALONE}: {NAMES[which]}"
        spans.append(Span(which=which, row=row, start_s=starts[which], end_s=end))
    both = _ends(links, loads, starts)
    spans += [
        Span(which=k, row=f"{TOGETHER}: {NAMES[k]}", start_s=starts[k], end_s=both[k])
        for k in (0, 1)
    ]
    return Overlap(
        spans=spans,
        shared=_shared(links, loads, starts),
        algorithms=(pending[0].planned.algorithm, pending[1].planned.algorithm),
    )


def _ends(links: Sequence[Link], loads: Sequence[Load], starts: Sequence[float]) -> list[float]:
    """When each load has arrived, from the engine."""
    program = Program(links=list(links))
    everyone = program.add_class(RankClass(members=[0]))
    tasks = []
    for which, (load, start) in enumerate(zip(loads, starts, strict=True)):
        waits: list[int] = []
        if start > 0:
            waits.append(program.compute(everyone, "offset", "forward", start))
        ends = [(everyone, f"communication {which}", "all-reduce")]
        tasks += program.communicate(ends, NAMES[which], "overlap", 0.0, load, [waits])
    timeline = execute(program)
    return [float(timeline.end_s[task]) for task in tasks]


@dataclass
class _Run:
    """A load on its way: `parts` still to come, the first of them with `left` of its bytes."""

    parts: list[Load]
    at: float
    moving: bool = False
    left: float = 1.0
    weights: Mapping[int, float] = field(default_factory=dict)
    heaviest: float = 0.0


def _shared(links: Sequence[Link], loads: Sequence[Load], starts: Sequence[float]) -> list[Usage]:
    """The rates of both on every link that both use, from the same max-min sharing."""
    used = [{k for part in load.parts for k, b in part.bytes_by_link if b > 0} for load in loads]
    both = used[0] & used[1]
    steps = rates_over_time(links, loads, starts)
    found = [
        Usage(
            name=links[k].name,
            bytes_per_s=links[k].bytes_per_s,
            steps=[(a, b, (rates[0].get(k, 0.0), rates[1].get(k, 0.0))) for a, b, rates in steps],
        )
        for k in both
    ]
    return sorted(found, key=lambda usage: (-full_s(usage), -_busy_s(usage)))


def full_s(usage: Usage) -> float:
    """How long both move over the link and fill it."""
    return sum(step[1] - step[0] for step in usage.steps if _is_full(step, usage.bytes_per_s))


def _is_full(step: tuple[float, float, tuple[float, float]], bytes_per_s: float) -> bool:
    return min(step[2]) > 0 and sum(step[2]) >= bytes_per_s * (1 - 1e-6)


def _busy_s(usage: Usage) -> float:
    return sum((b - a) * sum(rates) for a, b, rates in usage.steps) / usage.bytes_per_s


Rates = tuple[dict[int, float], dict[int, float]]


def rates_over_time(
    links: Sequence[Link], loads: Sequence[Load], starts: Sequence[float]
) -> list[tuple[float, float, Rates]]:
    """Intervals of constant rates: (from, to, bytes/s of each load on each link).

    Progressive filling over the parts of both loads; a part waits for its latency, then moves.
    """
    runs = [
        _Run(list(load.parts), start + load.latency_s)
        for load, start in zip(loads, starts, strict=True)
    ]
    now, found = 0.0, []
    capacity = {k: link.bytes_per_s for k, link in enumerate(links)}
    while any(run.parts for run in runs):
        for run in runs:
            if run.parts and not run.moving and run.at <= now * (1 + SMALL):
                _enter(run)
        moving = {i: run.weights for i, run in enumerate(runs) if run.moving}
        rates = fair_rates(capacity, moving)
        ends = [now + runs[i].left * runs[i].heaviest / rate for i, rate in rates.items()]
        ends += [run.at for run in runs if run.parts and not run.moving]
        if not ends:  # parts without bytes were all that was left
            break
        then = max(now, min(ends))
        on_links: Rates = ({}, {})
        for i, rate in rates.items():
            on_links[i].update({k: w * rate for k, w in runs[i].weights.items()})
            runs[i].left -= (then - now) * rate / max(runs[i].heaviest, SMALL)
        if then > now:
            found.append((now, then, on_links))
        now = then
        for i in rates:
            if runs[i].left <= SMALL:
                _leave(runs[i], now)
    return found


def _enter(run: _Run) -> None:
    part = run.parts[0]
    run.heaviest = max((size for _, size in part.bytes_by_link), default=0.0)
    if run.heaviest == 0:
        _leave(run, run.at)
        return
    run.weights = {k: size / run.heaviest for k, size in part.bytes_by_link if size > 0}
    run.moving, run.left = True, 1.0


def _leave(run: _Run, now: float) -> None:
    run.parts.pop(0)
    run.moving = False
    if run.parts:
        run.at = now + run.parts[0].latency_s


def verdict(result: Overlap) -> str:
    """Who was in whose way, in a sentence."""
    late = []
    for which in (0, 1):
        alone, together = result.span(which, ALONE), result.span(which, TOGETHER)
        lost = together.end_s - alone.end_s
        if lost > 1e-6 * (alone.end_s - alone.start_s):
            more = share_text(lost, alone.end_s - alone.start_s)
            late.append(f"the {NAMES[which]} ends {time_text(lost * 1e3)} later ({more} longer)")
    if not result.shared:
        return "They share no link, so neither is in the other's way."
    if not late:
        return "They share links, but neither ends later than alone."
    where = result.shared[0]
    full = [step for step in where.steps if _is_full(step, where.bytes_per_s)]
    if not full:
        return f"Together, {' and '.join(late)}."
    _, _, rates = max(full, key=lambda step: step[1] - step[0])
    return (
        f"Together, {' and '.join(late)}. For {time_text(full_s(where) * 1e3)} both fill "
        f"{where.name}: the first mostly has {bytes_text(rates[0])}/s of it, the second "
        f"{bytes_text(rates[1])}/s."
    )
