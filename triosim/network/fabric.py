"""The network in motion: transfers that are under way, and when each ends.

A transfer first gets its optical circuits, if it needs any, and holds them to its end. Each of its
parts in turn waits out its latency, then moves its bytes at its max-min fair rate. Rates change
only where a part that shares a link starts or ends, so only that neighbourhood is computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import simpy
from numpy.typing import NDArray

from triosim.network.links import Link, Load
from triosim.network.optical import CircuitSwitch
from triosim.network.sharing import fair_rates

Floats = NDArray[np.float64]


class Flow:
    """One part of a transfer under way; `rest` follow it, then the event `done` fires.

    `left` is the share of its bytes that has not arrived yet.
    """

    __slots__ = ("done", "heaviest", "left", "rate", "rest", "since", "version", "weights")

    def __init__(self, load: Load, rest: tuple[Load, ...], done: simpy.Event) -> None:
        self.heaviest = max((size for _, size in load.bytes_by_link), default=0.0)
        self.weights = {link: size / self.heaviest for link, size in load.bytes_by_link if size > 0}
        self.rest = rest
        self.done = done
        self.left = 1.0
        self.rate = 0.0
        self.since = 0.0
        self.version = 0


class Fabric:
    """Shares `links` among the transfers that are under way.

    `carried_bytes` records what each link carried; `steps` when its load changed and to what, in
    turn, of which the last change of an instant counts.
    """

    def __init__(
        self, env: simpy.Environment, links: Sequence[Link], circuits: CircuitSwitch | None = None
    ) -> None:
        self._env = env
        self._capacity = [link.bytes_per_s for link in links]
        self._circuits = circuits
        self._flows_on: list[dict[Flow, None]] = [{} for _ in links]
        self.steps: list[list[float]] = [[] for _ in links]
        self.carried_bytes = [0.0] * len(links)

    @property
    def peak_bytes_per_s(self) -> list[float]:
        """The highest load of each link."""
        return [
            max(
                (b for t, b, end in zip(k[::2], k[1::2], k[2::2], strict=False) if end > t),
                default=0.0,
            )
            for k in self.steps
        ]

    def usage(self) -> list[tuple[Floats, Floats]]:
        """`step_function` of each link."""
        return [step_function(steps) for steps in self.steps]

    def transfer(self, load: Load) -> simpy.Event:
        """Start a transfer now; the event fires when the last byte of its last part has arrived.

        Raises `Infeasible` where its circuits can never stand together.
        """
        done = self._env.event()
        switch = self._circuits
        circuits = _circuits(load) if switch is not None else ()
        if switch is None or not circuits:
            self._begin(load, load.then, done)
        else:
            done.callbacks.append(lambda _: switch.release(circuits, self._env.now))
            switch.acquire(
                circuits, self._env.now, lambda wait_s: self._begin(load, load.then, done, wait_s)
            )
        return done

    def _begin(
        self, load: Load, rest: tuple[Load, ...], done: simpy.Event, wait_s: float = 0.0
    ) -> None:
        flow = Flow(load, rest, done)
        delay = load.latency_s + wait_s
        if not flow.weights:
            self._after(delay, lambda _: self._deliver(flow))
        elif delay > 0:
            self._after(delay, lambda _: self._enter(flow))
        else:
            self._enter(flow)

    def _after(self, delay: float, call: Callable[[Any], None]) -> None:
        self._env.timeout(delay).callbacks.append(call)

    def _enter(self, flow: Flow) -> None:
        flow.since = self._env.now
        alone = True
        for link in flow.weights:
            flows = self._flows_on[link]
            alone = alone and not flows
            flows[flow] = None
        if alone:
            # NOTE: most transfers never share; skipping the search for neighbours halves their cost
            rate = min(self._capacity[k] / w for k, w in flow.weights.items())
            self._set_rate(flow, rate)
            for link, weight in flow.weights.items():
                self.steps[link].extend((flow.since, weight * rate))
        else:
            self._reshare(flow)

    def _leave(self, flow: Flow, version: int) -> None:
        if version != flow.version:
            return  # its rate has changed since; a later timeout is the right one
        now = self._env.now
        shared = False
        for link, weight in flow.weights.items():
            self.carried_bytes[link] += weight * flow.heaviest
            flows = self._flows_on[link]
            del flows[flow]
            if flows:
                shared = True
            else:
                self.steps[link].extend((now, 0.0))
        if shared:
            self._reshare(*self._neighbours(flow))
        self._deliver(flow)

    def _deliver(self, flow: Flow) -> None:
        if flow.rest:
            self._begin(flow.rest[0], flow.rest[1:], flow.done)
        else:
            flow.done.succeed()

    def _neighbours(self, *flows: Flow) -> dict[Flow, None]:
        return {other: None for f in flows for link in f.weights for other in self._flows_on[link]}

    def _reshare(self, *seeds: Flow) -> None:
        """New rates for every flow that shares links with the seeds, through any chain."""
        component: dict[Flow, None] = dict.fromkeys(seeds)
        fresh = component
        while fresh:
            fresh = {f: None for f in self._neighbours(*fresh) if f not in component}
            component = {**component, **fresh}
        links = {link for flow in component for link in flow.weights}
        rates = fair_rates(
            {link: self._capacity[link] for link in links},
            {flow: flow.weights for flow in component},
        )
        used = dict.fromkeys(links, 0.0)
        for flow, rate in rates.items():
            for link, weight in flow.weights.items():
                used[link] += weight * rate
            self._set_rate(flow, rate)
        now = self._env.now
        for link, total in used.items():
            self.steps[link].extend((now, total))

    def _set_rate(self, flow: Flow, rate: float) -> None:
        """Book what has arrived at the old rate and come back when the rest has, at the new one."""
        now = self._env.now
        flow.left = max(0.0, flow.left - flow.rate / flow.heaviest * (now - flow.since))
        flow.since = now
        flow.rate = rate
        flow.version = version = flow.version + 1
        self._after(flow.left * flow.heaviest / rate, lambda _: self._leave(flow, version))


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
