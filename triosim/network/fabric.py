"""The network in motion: transfers that are under way, and when each ends.

A transfer first gets its optical circuits, if it needs any, and holds them to its end. Each of its
parts in turn waits out its latency, then moves its bytes at its max-min fair rate. Rates change
only where a part that shares a link starts or ends, so only that neighbourhood is computed again.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, repeat
from typing import NamedTuple

import numpy as np
import simpy
from numpy.typing import NDArray

from triosim.network.clock import Alarm, after
from triosim.network.links import Link, Load
from triosim.network.optical import CircuitSwitch
from triosim.network.record import IDLE, Record, bundles, pairs
from triosim.network.sharing import fair_rates

Floats = NDArray[np.float64]
Done = Callable[[], object]


class Shape:
    """What a load asks of links: `weights` are shares of its bytes on the heaviest one.

    `flows` and `steps` are a fabric's, of each bundle of links that it uses. It has arrived `sent`
    times.
    """

    __slots__ = ("alone", "flows", "heaviest", "load", "sent", "steps", "weights")

    def __init__(self, load: Load, flows: Sequence[dict[Flow, None]], record: Record) -> None:
        self.load = load
        self.heaviest = max((size for _, size in load.bytes_by_link), default=0.0)
        self.weights = {link: size / self.heaviest for link, size in load.bytes_by_link if size > 0}
        used = dict.fromkeys(record.bundle[link] for link in self.weights)
        self.flows = [flows[bundle] for bundle in used]
        self.steps = [record.steps[bundle] for bundle in used]
        self.sent = 0
        self.alone: Shared | None = None
        """Its rate where nothing else moves on its links."""


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
    the last, which is the end. `stepped` and `sent` are what a fabric had `recorded` at `first_s`.
    """

    first_s: float
    last_s: float
    begins_s: Floats
    stepped: Sequence[int]
    sent: Sequence[int]

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


class Shared(NamedTuple):
    """Rates of flows that share links, and the states of the bundles that they use."""

    rates: list[float]
    states: list[tuple[array[float], int]]


class Fabric:
    """Shares `links` among the transfers that are under way.

    `record` has what each link carried when; its clock is ahead of SimPy's by `ahead_s`. Where it
    is known, `loads` are all that will be sent.
    """

    def __init__(
        self,
        env: simpy.Environment,
        links: Sequence[Link],
        circuits: CircuitSwitch | None = None,
        loads: Sequence[Load] | None = None,
    ) -> None:
        self._env = env
        self._capacity = [link.bytes_per_s for link in links]
        self._circuits = circuits
        self.record = Record(range(len(links)) if loads is None else bundles(len(links), loads))
        self._flows_on: list[dict[Flow, None]] = [{} for _ in self.record.steps]
        self._shapes: dict[int, Shape] = {}
        self._shared: dict[tuple[Shape, ...], Shared] = {}
        self.ahead_s = 0.0

    @property
    def carried_bytes(self) -> list[float]:
        """What each link has carried."""
        carried = [0.0] * len(self._capacity)
        for shape in self._shapes.values():
            for link, weight in shape.weights.items():
                carried[link] += shape.sent * (weight * shape.heaviest)
        return carried

    @property
    def peak_bytes_per_s(self) -> list[float]:
        """The highest load of each link."""
        return self.record.peak_bytes_per_s

    @property
    def recorded(self) -> tuple[list[int], list[int]]:
        """How long the records of bundles are, and how often each shape has arrived."""
        return (list(map(len, self.record.steps)), [shape.sent for shape in self._shapes.values()])

    def usage(self) -> list[tuple[Floats, Floats]]:
        """`Record.usage` of each link."""
        return [self.record.usage(link) for link in range(len(self._capacity))]

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
        for own, begin in zip(self.record.steps, stretch.stepped, strict=True):
            time_s, state = pairs(own[begin:])
            again = stretch.at(time_s)
            own.frombytes(np.stack((again, np.broadcast_to(state, again.shape)), axis=-1).tobytes())
        new = repeat(0, len(self._shapes) - len(stretch.sent))  # shapes since the stretch began
        for shape, sent in zip(self._shapes.values(), chain(stretch.sent, new), strict=True):
            shape.sent += stretch.times * (shape.sent - sent)

    def _shape(self, load: Load) -> Shape:
        """Known by the object: a program's transfers share their loads."""
        shape = self._shapes.get(id(load))
        if shape is None:
            shape = self._shapes[id(load)] = Shape(load, self._flows_on, self.record)
        return shape

    def _begin(self, flow: Flow, wait_s: float = 0.0) -> None:
        delay_s = flow.shape.load.latency_s + wait_s
        flow.rate = 0.0
        flow.since = self._env.now + delay_s
        if not flow.shape.weights:
            flow.alarm = after(self._env, delay_s, partial(self._deliver, flow))
        elif delay_s > 0:
            flow.alarm = after(self._env, delay_s, partial(self._enter, flow))
        else:
            self._enter(flow)

    def _enter(self, flow: Flow, _alarm: object = None) -> None:
        now, shape = self._env.now, flow.shape
        flow.left, flow.since, flow.alarm = 1.0, now, None
        alone = True
        for flows in shape.flows:
            if flows:
                alone = False
            flows[flow] = None
        if not alone:
            self._reshare(flow)
            return
        # NOTE: most transfers never share; skipping the search for neighbours halves their cost
        if shape.alone is None:
            shape.alone = self._alone(shape)
        (flow.rate,), states = shape.alone
        flow.alarm = after(self._env, shape.heaviest / flow.rate, partial(self._leave, flow))
        now += self.ahead_s
        for steps, state in states:
            steps.append(now)
            steps.append(state)

    def _leave(self, flow: Flow, _alarm: object = None) -> None:
        now = self._env.now + self.ahead_s
        shared, shape = False, flow.shape
        shape.sent += 1
        for flows, steps in zip(shape.flows, shape.steps, strict=True):
            del flows[flow]
            if flows:
                shared = True
            else:
                steps.append(now)
                steps.append(IDLE)
        if shared:
            self._reshare(*self._neighbours(flow))
        self._deliver(flow)

    def _deliver(self, flow: Flow, _alarm: object = None) -> None:
        if flow.rest:
            flow.shape, flow.rest = self._shape(flow.rest[0]), flow.rest[1:]
            self._begin(flow)
        else:
            flow.done()

    def _neighbours(self, *flows: Flow) -> dict[Flow, None]:
        return {other: None for flow in flows for on in flow.shape.flows for other in on}

    def _reshare(self, *seeds: Flow) -> None:
        """New rates for every flow that shares links with the seeds, through any chain."""
        component: dict[Flow, None] = dict.fromkeys(seeds)
        fresh = component
        while fresh:
            fresh = {f: None for f in self._neighbours(*fresh) if f not in component}
            component.update(fresh)
        rates, states = self._share(tuple(flow.shape for flow in component))
        for flow, rate in zip(component, rates, strict=True):
            self._set_rate(flow, rate)
        now = self._env.now + self.ahead_s
        for steps, state in states:
            steps.append(now)
            steps.append(state)

    def _alone(self, shape: Shape) -> Shared:
        """A flow of this shape where nothing else moves on its links: one of them is full."""
        rate = min(self._capacity[link] / weight for link, weight in shape.weights.items())
        state = self.record.add_state({link: w * rate for link, w in shape.weights.items()})
        return Shared([rate], [(steps, state) for steps in shape.steps])

    def _share(self, shapes: tuple[Shape, ...]) -> Shared:
        """Flows of these shapes, worked out once: a step moves the same time and again."""
        shared = self._shared.get(shapes)
        if shared is None:
            found = fair_rates(
                {link: self._capacity[link] for shape in shapes for link in shape.weights},
                {i: shape.weights for i, shape in enumerate(shapes)},
            )
            rates = [found[i] for i in range(len(shapes))]
            used: dict[int, float] = {}
            for shape, rate in zip(shapes, rates, strict=True):
                for link, weight in shape.weights.items():
                    used[link] = used.get(link, 0.0) + weight * rate
            state = self.record.add_state(used)
            on = {id(steps): steps for shape in shapes for steps in shape.steps}
            shared = self._shared[shapes] = Shared(rates, [(own, state) for own in on.values()])
        return shared

    def _set_rate(self, flow: Flow, rate: float) -> None:
        """Book what has arrived at the old rate and come back when the rest has, at the new one."""
        now, heaviest = self._env.now, flow.shape.heaviest
        flow.left = max(0.0, flow.left - flow.rate / heaviest * (now - flow.since))
        flow.since = now
        flow.rate = rate
        if flow.alarm is not None:
            flow.alarm.cancel()
        flow.alarm = after(self._env, flow.left * heaviest / rate, partial(self._leave, flow))


def _circuits(load: Load) -> Sequence[tuple[int, int]]:
    """All that the parts of a transfer need."""
    more = [
        pair for part in load.then if part.circuits is not load.circuits for pair in part.circuits
    ]
    return (*load.circuits, *more) if more else load.circuits
