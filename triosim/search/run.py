"""Finds the fastest layout: bounds of all plans, then simulations from the most promising on.

A plan is left out only where its bound says that it holds more than there is, or takes longer than
what was simulated before; `triosim.search.bounds` says why that is safe.
"""

from __future__ import annotations

import heapq
import multiprocessing
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from triosim.errors import ConfigError
from triosim.hardware import load_gpu
from triosim.legal import MAX_WORKERS, number
from triosim.search.candidates import (
    Candidate,
    Layout,
    Simulated,
    Sizes,
    choices,
    look_at,
    simulate_all,
)
from triosim.search.found import (
    BEST,
    BOUNDED,
    ILLEGAL,
    NO_MEMORY,
    OVER_LIMIT,
    SLOWER,
    Ranked,
    SearchResult,
)
from triosim.search.reasons import bounded, no_memory, slower
from triosim.search.space import MICRO_BATCHES, RECOMPUTE, SCHEDULES, ZERO, Space
from triosim.train import TrainScenario
from triosim.train.scenario import MAX_GPUS, whole

GIB = 2**30
FEW = 40  # layouts that are done here sooner than processes start
ROUND = 4  # plans that a worker simulates before what is left is looked at again
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a layout may need; None: memory of the GPU, and no limit.

    Cost (in the price's currency) and energy (of the GPUs at their rated power) are of a run over
    so many `tokens`.
    """

    memory_gib: float | None = None
    cost: float | None = None
    energy_kwh: float | None = None
    days: float | None = None
    tokens: float | None = None
    gpu_hour_price: float | None = None

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, number(name, value, 0, 1e30))
        for name in ("cost", "energy_kwh", "days"):
            if getattr(self, name) is not None and not self.tokens:
                problem = "needs tokens as well, how many the run has"
                raise ConfigError(name, f"{getattr(self, name):.15g}", problem)
        if self.cost is not None and not self.gpu_hour_price:
            raise ConfigError("cost", f"{self.cost:.15g}", "needs gpu_hour_price as well")

    def most_step_s(self, base: TrainScenario, tokens_per_step: int) -> float:
        """The longest step that is allowed: all three grow with it alone."""
        if not self.tokens:
            return float("inf")
        steps = self.tokens / tokens_per_step
        hours = [float("inf")]
        if self.days is not None:
            hours.append(self.days * 24)
        if self.cost is not None:
            assert self.gpu_hour_price
            hours.append(self.cost / self.gpu_hour_price / base.gpus)
        if self.energy_kwh is not None:
            hours.append(self.energy_kwh / (load_gpu(base.gpu).power_w / 1e3) / base.gpus)
        return min(hours) * 3600 / steps


def search(
    base: TrainScenario,
    *,
    micro_batch_sizes: Sequence[int] = MICRO_BATCHES,
    recompute: Sequence[str] = RECOMPUTE,
    schedules: Sequence[str] = SCHEDULES,
    zero: Sequence[int] = ZERO,
    chunks: int = 2,
    most_cp: int | None = None,
    limits: Limits | None = None,
    top: int = 10,
    executor: Executor | None = None,
    workers: int | None = None,
    on_progress: Progress | None = None,
) -> SearchResult:
    """Rank every legal layout of a model on a number of GPUs by its step time at one global batch.

    `base` gives model, GPUs, machine, stack, precision, sequence length and global batch (by
    default as many sequences as make 4 Mi tokens). For each layout the best of the given
    micro-batch sizes, recompute modes, schedules and ZeRO stages counts. The first `top` places are
    exact; for layouts behind them a bound may stand for the simulation. `on_progress` is told
    (what, done, total). Raises `ConfigError`.
    """
    space = Space(
        base=base,
        micro_batch_sizes=micro_batch_sizes,
        recompute=recompute,
        schedules=schedules,
        zero=zero,
        chunks=chunks,
        most_cp=most_cp,
    )
    limits = limits or Limits()
    top = whole("top", top, 1, MAX_GPUS)
    if workers is not None:
        workers = whole("workers", workers, 1, MAX_WORKERS)
    capacity = load_gpu(base.gpu).memory_bytes
    most_bytes = capacity if limits.memory_gib is None else limits.memory_gib * GIB
    most_s = limits.most_step_s(space.base, space.global_batch * space.base.sequence)
    with _executor(space, executor, workers) as (pool, count):
        layouts = list(_looked_at(space, most_bytes, pool, count, on_progress))
        hunt = Hunt(layouts, most_bytes, most_s, top)
        hunt.run(pool, count, on_progress)
    return hunt.result(space)


class Hunt:
    """Simulates plans in the order of their bounds until none that is left can take a place."""

    def __init__(
        self, layouts: Sequence[Layout], most_bytes: float, most_s: float, top: int
    ) -> None:
        self.layouts = layouts
        self._most_bytes = most_bytes
        self._most_s = most_s
        self._top = top
        self._best: dict[int, tuple[float, int]] = {}  # by layout: step and index of its plan
        self.figures: dict[tuple[int, int], Simulated] = {}
        self._less_sharded = [_less_sharded(layout) for layout in layouts]
        self._queue = [
            (c.bound.seconds, i, k)
            for i, layout in enumerate(layouts)
            for k, c in enumerate(layout.candidates)
            if c.bound is not None and c.bound.seconds <= most_s
        ]
        heapq.heapify(self._queue)

    def run(self, pool: Executor | None, count: int, on_progress: Progress | None) -> None:
        total = len(self._queue)
        while batch := self._next(ROUND * count):
            scenarios = [self.layouts[i].candidates[k].scenario for i, k in batch]
            shares = [scenarios[w::count] for w in range(count)]
            if pool is None:
                answers = [simulate_all(share) for share in shares]
            else:
                answers = list(pool.map(simulate_all, shares))
            for w in range(count):
                for (i, k), answer in zip(batch[w::count], answers[w], strict=True):
                    self._note(i, k, answer)
            if on_progress is not None:
                on_progress("simulating", total - len(self._queue), total)

    def _next(self, most: int) -> list[tuple[int, int]]:
        """The most promising plans that may still matter."""
        batch: list[tuple[int, int]] = []
        later: list[tuple[float, int, int]] = []
        while self._queue and len(batch) < most:
            least_s, i, k = self._queue[0]
            if least_s >= self._threshold_s():
                self._queue.clear()
                break
            heapq.heappop(self._queue)
            if i in self._best and least_s >= self._best[i][0]:
                continue
            others = [(i, other) for other in self._less_sharded[i][k]]
            if any(other in batch for other in others):
                later.append((least_s, i, k))
            elif not any(self._fits(other) for other in others):
                batch.append((i, k))
        for one in later:
            heapq.heappush(self._queue, one)
        return batch

    def _fits(self, one: tuple[int, int]) -> bool:
        """Whether a plan was simulated and fits in memory."""
        found = self.figures.get(one)
        return found is not None and found.peak_memory_bytes <= self._most_bytes

    def _threshold_s(self) -> float:
        """The step of the last place that has to be exact."""
        if len(self._best) < self._top:
            return float("inf")
        return heapq.nsmallest(self._top, (step for step, _ in self._best.values()))[-1]

    def _note(self, i: int, k: int, answer: Simulated | str) -> None:
        if isinstance(answer, str):
            return
        self.figures[i, k] = answer
        step_s = answer.step_ms / 1e3
        fits = answer.peak_memory_bytes <= self._most_bytes
        if fits and step_s <= self._most_s and step_s < self._best.get(i, (float("inf"), 0))[0]:
            self._best[i] = step_s, k

    def result(self, space: Space) -> SearchResult:
        winner = min(self._best, key=lambda i: self._best[i], default=None)
        best = None if winner is None else self.figures[winner, self._best[winner][1]]
        ranked = [self._ranked(i, winner, best) for i in range(len(self.layouts))]
        order = [BEST, SLOWER, BOUNDED, OVER_LIMIT, NO_MEMORY, ILLEGAL]
        # Simulated and bounded ones by what they take, or take at least.
        merged = {BEST: 0, SLOWER: 1, BOUNDED: 1}

        def place(one: Ranked) -> tuple[float, ...]:
            step = one.step_ms or one.at_least_ms or one.at_least_gib or 0.0
            if one.outcome == NO_MEMORY:
                step = one.at_least_gib or 0.0
            return merged.get(one.outcome, order.index(one.outcome)), step

        return SearchResult(
            ranked=tuple(sorted(ranked, key=place)),
            plans=sum(len(layout.candidates) for layout in self.layouts),
            simulated=len(self.figures),
            exact=min(self._top, len(self._best)),
            assumptions=_assumptions(space),
        )

    def _ranked(self, i: int, winner: int | None, best: Simulated | None) -> Ranked:
        layout = self.layouts[i]
        if not layout.candidates:
            return self._made(layout, ILLEGAL, layout.problem or "", None, None)
        if i in self._best:
            k = self._best[i][1]
            chosen, figures = layout.candidates[k], self.figures[i, k]
            if i == winner:
                return self._made(layout, BEST, "the fastest that fits", chosen, figures)
            assert best is not None
            reason = slower(
                figures,
                chosen.scenario,
                best,
                across_hosts=chosen.across_hosts,
                forced=self._needs_recompute(i),
            )
            return self._made(layout, SLOWER, reason, chosen, figures)
        open_ones = [
            (c.bound.seconds, k)
            for k, c in enumerate(layout.candidates)
            if c.bound is not None
            and (i, k) not in self.figures
            and not any(self._fits((i, other)) for other in self._less_sharded[i][k])
        ]
        if open_ones:
            chosen = layout.candidates[min(open_ones)[1]]
            assert chosen.bound is not None
            if best is None or chosen.bound.seconds > self._most_s:
                reason = f"takes at least {chosen.bound.seconds:,.2f} s a step, more than allowed"
                return self._made(layout, OVER_LIMIT, reason, chosen, None)
            return self._made(layout, BOUNDED, bounded(chosen, best), chosen, None)
        return self._without_place(i, layout)

    def _needs_recompute(self, i: int) -> bool:
        """Whether a layout has plans that keep everything, and none of them fits."""
        fits = [
            c.bound is not None
            and (
                (i, k) not in self.figures
                or self.figures[i, k].peak_memory_bytes <= self._most_bytes
            )
            for k, c in enumerate(self.layouts[i].candidates)
            if c.scenario.recompute == "none"
        ]
        return bool(fits) and not any(fits)

    def _without_place(self, i: int, layout: Layout) -> Ranked:
        """All of its plans are too large or too slow."""
        run = {k: f for k in range(len(layout.candidates)) if (f := self.figures.get((i, k)))}
        fitting = [k for k, f in run.items() if f.peak_memory_bytes <= self._most_bytes]
        if fitting:
            k = min(fitting, key=lambda k: run[k].step_ms)
            reason = f"takes {run[k].step_ms / 1e3:,.2f} s a step, more than allowed"
            return self._made(layout, OVER_LIMIT, reason, layout.candidates[k], run[k])

        def needs(k: int) -> float:
            return run[k].peak_memory_bytes if k in run else layout.candidates[k].held.bytes

        k = min(range(len(layout.candidates)), key=needs)
        chosen = layout.candidates[k]
        reason = no_memory(chosen, run.get(k), self._most_bytes)
        return self._made(layout, NO_MEMORY, reason, chosen, run.get(k))

    def _made(
        self,
        layout: Layout,
        outcome: str,
        reason: str,
        chosen: Candidate | None,
        figures: Simulated | None,
    ) -> Ranked:
        bound = None if chosen is None else chosen.bound
        held = None if chosen is None else chosen.held.bytes / GIB
        return Ranked(
            sizes=layout.sizes,
            outcome=outcome,
            reason=reason,
            scenario=None if chosen is None else chosen.scenario,
            figures=figures,
            at_least_ms=bound.seconds * 1e3 if bound is not None and figures is None else None,
            at_least_gib=held if figures is None else figures.peak_memory_bytes / GIB,
        )


def _less_sharded(layout: Layout) -> list[list[int]]:
    """For each plan of a layout those that differ in a lower ZeRO stage alone.

    Where one of them fits, the plan is left out: it sends the same or more, and is never faster.
    """
    alike: dict[tuple[int, str, str], list[int]] = defaultdict(list)
    found = []
    for k, candidate in enumerate(layout.candidates):
        others = alike[choices(candidate.scenario)]
        found.append(list(others))
        others.append(k)
    return found


def _looked_at(
    space: Space,
    most_bytes: float,
    pool: Executor | None,
    count: int,
    on_progress: Progress | None,
) -> Iterator[Layout]:
    """Bounds of all layouts; those that have passes in common are looked at by one worker."""
    alike: dict[tuple[int, ...], list[Sizes]] = defaultdict(list)
    for sizes in space.layouts():
        alike[sizes["tp"], sizes["cp"], sizes["ep"]].append(sizes)
    groups = sorted(alike.values(), key=len, reverse=True)
    total, done = sum(map(len, groups)), 0
    args = ([space] * len(groups), groups, [most_bytes] * len(groups))
    for found in map(look_at, *args) if pool is None else pool.map(look_at, *args):
        yield from found
        done += len(found)
        if on_progress is not None:
            on_progress("looking at layouts", done, total)


@contextmanager
def _executor(
    space: Space, executor: Executor | None, workers: int | None
) -> Iterator[tuple[Executor | None, int]]:
    count = workers or getattr(executor, "_max_workers", None) or os.cpu_count() or 1
    if executor is not None:
        yield executor, count
    elif count == 1 or sum(1 for _ in space.layouts()) <= FEW:
        yield None, 1
    else:
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(count, mp_context=spawn) as pool:
            yield pool, count


def _assumptions(space: Space) -> tuple[str, ...]:
    base = space.base
    return (
        f"Every layout trains on the same global batch, {space.global_batch:,} sequences of "
        f"{base.sequence:,} tokens.",
        f"For each layout the best of micro-batches {_listed(space.micro_batch_sizes)}, recompute "
        f"{_listed(space.recompute)} and, in pipelines, schedules {_listed(space.schedules)}.",
        f"What dp_shard shards is tried as ZeRO stage {_listed(space.zero)} does. With tensor "
        "parallelism, sequence parallelism and a parallel loss are on; every other setting is as "
        "given.",
    )


def _listed(values: Sequence[object]) -> str:
    return ", ".join(map(str, values))
