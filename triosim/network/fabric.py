"""The network in motion: transfers that are under way, and when each ends.

A transfer first gets its optical circuits, if it needs any, and holds them to its end. Each of its
parts in turn waits out its latency, then moves its bytes at its max-min fair rate. Rates change
only where a part that shares a link starts or ends, so only that neighbourhood is computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import simpy
from numpy.typing import NDArray

from triosim.network.clock import Alarm, after
from triosim.network.links import Link, Load
from triosim.network.optical import CircuitSwitch
from triosim.network.sharing import fair_rates

Floats = NDArray[np.float64]
Done = Callable[[], object]


class Shape:
    """What a load asks of links: `weights` are shares of its bytes on the heaviest one."""

    __slots__ = ("heaviest", "load", "weights")

    def __init__(self, load: Load) -> None:
        self.load = load
        self.heaviest = max((size for _, size in load.bytes_by_link), default=0.0)
        self.weights = {link: size / self.heaviest for link, size in load.bytes_by_link if size > 0}


class Flow:
    """A transfer under way: one part after the other, then the call `done`.

    Of the part that moves, `left` is the share of its bytes that has not arrived yet; while `rate`
    is 0 the part waits out its latency, which ends at `since`.
    """

    __slots__ = ("alarm", "done", "left", "rate", "rest", "shape", "since")

    def __init__(self, shape: Shape, done: Done) -> None:
        self.shape = shape
        self.rest = shape.load.then
        self.done = done
        self.left = 1.0
        self.rate = 0.0
        self.since = 0.0
        self.alarm: Alarm | None = None

    @property
    def phase(self) -> int:
        """Which part is under way, and whether it moves."""
        return 2 * len(self.rest) + (self.rate > 0)

    def left_s(self, now: float) -> float:
        """Until the latency is over, or until the part has arrived if nothing changes."""
        if not self.rate:
            return self.since - now
        return self.left * self.shape.heaviest / self.rate - (now - self.since)


@dataclass(frozen=True, kw_only=True, eq=False)
class Stretch:
    """A stretch of time that repeats: from `first_s` to `last_s`, then again at each `begins_s` but
    the last, which is the end. `stepped` and `carried_bytes` are a fabric's records at `first_s`.
    """

    first_s: float
    last_s: float
    begins_s: Floats
    stepped: Sequence[int]
    carried_bytes: Sequence[float]

    @property
    def times(self) -> int:
        return len(self.begins_s) - 1

    def at(self, times_s: Floats) -> Floats:
        """Instants of the stretch in each repetition: shape (repetitions, instants).

        What coincides in the stretch still does: its end is exactly the next one's beginning.
        """
        begins, ends = self.begins_s[:-1, None], self.begins_s[1:, None]
        again = np.minimum(begins + (times_s - self.first_s), ends)
        return np.where(times_s == self.last_s, ends, again)


class Fabric:
    """Shares `links` among the transfers that are under way.

    `carried_bytes` records what each link carried; `steps` when its load changed and to what, in
    turn, of which the last change of an instant counts. The clock of `steps` is ahead of SimPy's by
    `ahead_s`.
    """

    def __init__(
        self, env: simpy.Environment, links: Sequence[Link], circuits: CircuitSwitch | None = None
    ) -> None:
        self._env = env
        self._capacity = [link.bytes_per_s for link in links]
        self._circuits = circuits
        self._flows_on: list[dict[Flow, None]] = [{} for _ in links]
        self._shapes: dict[int, Shape] = {}
        self._rates: dict[tuple[Shape, ...], list[float]] = {}
        self.ahead_s = 0.0
        self.steps: list[list[float]] = [[] for _ in links]
        self.carried_bytes = [0.0] * len(links)

    @property
    def peak_bytes_per_s(self) -> list[float]:
        """The highest load of each link."""
        return [float(step_function(steps)[1].max(initial=0.0)) for steps in self.steps]

    def usage(self) -> list[tuple[Floats, Floats]]:
        """`step_function` of each link."""
        return [step_function(steps) for steps in self.steps]

    def transfer(self, load: Load) -> simpy.Event:
        """Start a transfer now; the event fires when the last byte of its last part has arrived.

        Raises `Infeasible` where its circuits can never stand together.
        """
        done = self._env.event()
        self.send(load, done.succeed)
        return done

    def send(self, load: Load, done: Done) -> Flow:
        """The same with a call instead of an event."""
        flow = Flow(self._shape(load), done)
        switch = self._circuits
        circuits = _circuits(load) if switch is not None else ()
        if switch is None or not circuits:
            self._begin(flow)
        else:

            def give_back() -> None:
                switch.release(circuits, self._env.now)
                done()

            flow.done = give_back
            switch.acquire(circuits, self._env.now, lambda wait_s: self._begin(flow, wait_s))
        return flow

    def repeat(self, stretch: Stretch) -> None:
        """Record what a stretch up to now moves when it is repeated."""
        for link, begin in enumerate(stretch.stepped):
            time_s, bytes_per_s = np.array(self.steps[link][begin:]).reshape(-1, 2).T
            again = stretch.at(time_s)
            steps = np.stack((again, np.broadcast_to(bytes_per_s, again.shape)), axis=-1)
            self.steps[link] += steps.ravel().tolist()
            moved = self.carried_bytes[link] - stretch.carried_bytes[link]
            self.carried_bytes[link] += stretch.times * moved

    def _shape(self, load: Load) -> Shape:
        """Known by the object: a program's transfers share their loads."""
        shape = self._shapes.get(id(load))
        if shape is None:
            shape = self._shapes[id(load)] = Shape(load)
        return shape

    def _begin(self, flow: Flow, wait_s: float = 0.0) -> None:
        delay_s = flow.shape.load.latency_s + wait_s
        flow.rate = 0.0
        flow.since = self._env.now + delay_s
        if not flow.shape.weights:
            flow.alarm = after(self._env, delay_s, lambda _: self._deliver(flow))
        elif delay_s > 0:
            flow.alarm = after(self._env, delay_s, lambda _: self._enter(flow))
        else:
            self._enter(flow)

    def _enter(self, flow: Flow) -> None:
        now = self._env.now
        flow.left, flow.since, flow.alarm = 1.0, now, None
        alone = True
        weights = flow.shape.weights
        for link in weights:
            flows = self._flows_on[link]
            if flows:
                alone = False
            flows[flow] = None
        if alone:
            # NOTE: most transfers never share; skipping the search for neighbours halves their cost
            (rate,) = self._fair((flow.shape,))
            self._set_rate(flow, rate)
            now += self.ahead_s
            for link, weight in weights.items():
                self.steps[link] += (now, weight * rate)
        else:
            self._reshare(flow)

    def _leave(self, flow: Flow) -> None:
        now = self._env.now + self.ahead_s
        shared = False
        heaviest = flow.shape.heaviest
        for link, weight in flow.shape.weights.items():
            self.carried_bytes[link] += weight * heaviest
            flows = self._flows_on[link]
            del flows[flow]
            if flows:
                shared = True
            else:
                self.steps[link] += (now, 0.0)
        if shared:
            self._reshare(*self._neighbours(flow))
        self._deliver(flow)

    def _deliver(self, flow: Flow) -> None:
        if flow.rest:
            flow.shape, flow.rest = self._shape(flow.rest[0]), flow.rest[1:]
            self._begin(flow)
        else:
            flow.done()

    def _neighbours(self, *flows: Flow) -> dict[Flow, None]:
        on = self._flows_on
        return {other: None for f in flows for link in f.shape.weights for other in on[link]}

    def _reshare(self, *seeds: Flow) -> None:
        """New rates for every flow that shares links with the seeds, through any chain."""
        component: dict[Flow, None] = dict.fromkeys(seeds)
        fresh = component
        while fresh:
            fresh = {f: None for f in self._neighbours(*fresh) if f not in component}
            component.update(fresh)
        used: dict[int, float] = {}
        rates = self._fair(tuple(flow.shape for flow in component))
        for flow, rate in zip(component, rates, strict=True):
            for link, weight in flow.shape.weights.items():
                used[link] = used.get(link, 0.0) + weight * rate
            self._set_rate(flow, rate)
        now = self._env.now + self.ahead_s
        for link, total in used.items():
            self.steps[link] += (now, total)

    def _fair(self, shapes: tuple[Shape, ...]) -> list[float]:
        """Rates of flows of these shapes, worked out once: a step moves the same time and again."""
        rates = self._rates.get(shapes)
        if rates is None:
            found = fair_rates(
                {link: self._capacity[link] for shape in shapes for link in shape.weights},
                {i: shape.weights for i, shape in enumerate(shapes)},
            )
            rates = self._rates[shapes] = [found[i] for i in range(len(shapes))]
        return rates

    def _set_rate(self, flow: Flow, rate: float) -> None:
        """Book what has arrived at the old rate and come back when the rest has, at the new one."""
        now, heaviest = self._env.now, flow.shape.heaviest
        flow.left = max(0.0, flow.left - flow.rate / heaviest * (now - flow.since))
        flow.since = now
        flow.rate = rate
        if flow.alarm is not None:
            flow.alarm.cancel()
        flow.alarm = after(self._env, flow.left * heaviest / rate, lambda _: self._leave(flow))


def step_function(steps: Sequence[float]) -> tuple[Floats, Floats]:
    """What a link carried when: arrays `time_s` and `bytes_per_s` of the same length.

    `bytes_per_s[i]` holds from `time_s[i]` to `time_s[i + 1]`, the last one, 0 when all transfers
    have ended, from then on. Empty for a link that carried nothing.
    """
    time_s, bytes_per_s = np.array(steps, dtype=np.float64).reshape(-1, 2).T
    changes = np.append(time_s[1:] > time_s[:-1], True)[: len(time_s)]
    return time_s[changes], bytes_per_s[changes]


def _circuits(load: Load) -> Sequence[tuple[int, int]]:
    """All that the parts of a transfer need."""
    more = [
        pair for part in load.then if part.circuits is not load.circuits for pair in part.circuits
    ]
    return (*load.circuits, *more) if more else load.circuits
