"""The network in motion: transfers that are under way, and when each ends.

A transfer first waits out its set-up (optical circuits that do not stand yet) and its latency, then
moves its bytes at its max-min fair rate. Rates change only where a transfer that shares a link
starts or ends, so only that neighbourhood is computed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import simpy

from triosim.network.links import Link, Load
from triosim.network.optical import CircuitSwitch
from triosim.network.sharing import fair_rates


class Flow:
    """One transfer under way. `left` is the share of its bytes that has not arrived yet."""

    __slots__ = ("done", "heaviest", "left", "rate", "since", "version", "weights")

    def __init__(self, load: Load, done: simpy.Event) -> None:
        self.heaviest = max((size for _, size in load.bytes_by_link), default=0.0)
        self.weights = {link: size / self.heaviest for link, size in load.bytes_by_link if size > 0}
        self.done = done
        self.left = 1.0
        self.rate = 0.0
        self.since = 0.0
        self.version = 0


class Fabric:
    """Shares `links` among the transfers that are under way.

    `carried_bytes` and `peak_bytes_per_s` record, per link, what it carried and its highest load.
    """

    def __init__(
        self, env: simpy.Environment, links: Sequence[Link], circuits: CircuitSwitch | None = None
    ) -> None:
        self._env = env
        self._capacity = [link.bytes_per_s for link in links]
        self._circuits = circuits
        self._flows_on: list[dict[Flow, None]] = [{} for _ in links]
        self.carried_bytes = [0.0] * len(links)
        self.peak_bytes_per_s = [0.0] * len(links)

    def transfer(self, load: Load) -> simpy.Event:
        """Start a transfer now; the event fires when its last byte has arrived."""
        done = self._env.event()
        delay = load.latency_s
        if self._circuits is not None and load.circuits:
            delay += self._circuits.require(load.circuits, self._env.now)
        flow = Flow(load, done)
        if not flow.weights:
            self._after(delay, lambda _: done.succeed())
        elif delay > 0:
            self._after(delay, lambda _: self._enter(flow))
        else:
            self._enter(flow)
        return done

    def _after(self, delay: float, call: Any) -> None:
        timeout = self._env.timeout(delay)
        timeout.callbacks.append(call)

    def _enter(self, flow: Flow) -> None:
        flow.since = self._env.now
        for link in flow.weights:
            self._flows_on[link][flow] = None
        self._reshare(flow)

    def _leave(self, flow: Flow, version: int) -> None:
        if version != flow.version:
            return  # its rate has changed since; a later timeout is the right one
        flow.left = 0.0
        for link, weight in flow.weights.items():
            self.carried_bytes[link] += weight * flow.heaviest
            del self._flows_on[link][flow]
        neighbours = self._neighbours(flow)
        if neighbours:
            self._reshare(*neighbours)
        flow.done.succeed()

    def _neighbours(self, *flows: Flow) -> dict[Flow, None]:
        return {other: None for f in flows for link in f.weights for other in self._flows_on[link]}

    def _reshare(self, *seeds: Flow) -> None:
        """New rates for every flow that shares links with the seeds, through any chain."""
        component: dict[Flow, None] = dict.fromkeys(seeds)
        fresh = component
        while fresh:
            fresh = {f: None for f in self._neighbours(*fresh) if f not in component}
            component.update(fresh)
        rates = self._rates(component)
        now = self._env.now
        for flow, rate in rates.items():
            flow.left = max(0.0, flow.left - flow.rate / flow.heaviest * (now - flow.since))
            flow.since = now
            flow.rate = rate
            flow.version += 1
            version = flow.version
            self._after(
                flow.left * flow.heaviest / rate,
                lambda _, flow=flow, version=version: self._leave(flow, version),
            )

    def _rates(self, component: dict[Flow, None]) -> dict[Flow, float]:
        if len(component) == 1:
            (flow,) = component
            rate = min(self._capacity[link] / weight for link, weight in flow.weights.items())
            rates = {flow: rate}
        else:
            links = {link for flow in component for link in flow.weights}
            rates = fair_rates(
                {link: self._capacity[link] for link in links},
                {flow: flow.weights for flow in component},
            )
        used: dict[int, float] = {}
        for flow, rate in rates.items():
            for link, weight in flow.weights.items():
                used[link] = used.get(link, 0.0) + weight * rate
        for link, total in used.items():
            self.peak_bytes_per_s[link] = max(self.peak_bytes_per_s[link], total)
        return rates
