"""The network in motion: transfers that are under way, and when each ends.

A transfer first waits out its set-up (optical circuits that do not stand yet) and its latency, then
moves its bytes at its max-min fair rate. Rates change only where a transfer that shares a link
starts or ends, so only that neighbourhood is computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
        flow = Flow(load, done)
        delay = load.latency_s
        if self._circuits is not None and load.circuits:
            delay += self._circuits.require(load.circuits, self._env.now)
        if not flow.weights:
            self._after(delay, lambda _: self._deliver(flow))
        elif delay > 0:
            self._after(delay, lambda _: self._enter(flow))
        else:
            self._enter(flow)
        return done

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
            self._set_rate(flow, min(self._capacity[k] / w for k, w in flow.weights.items()))
            for link, weight in flow.weights.items():
                self._note_peak(link, weight * flow.rate)
        else:
            self._reshare(flow)

    def _leave(self, flow: Flow, version: int) -> None:
        if version != flow.version:
            return  # its rate has changed since; a later timeout is the right one
        shared = False
        for link, weight in flow.weights.items():
            self.carried_bytes[link] += weight * flow.heaviest
            flows = self._flows_on[link]
            del flows[flow]
            shared = shared or bool(flows)
        if shared:
            self._reshare(*self._neighbours(flow))
        self._deliver(flow)

    def _deliver(self, flow: Flow) -> None:
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
        for link, total in used.items():
            self._note_peak(link, total)

    def _set_rate(self, flow: Flow, rate: float) -> None:
        """Book what has arrived at the old rate and come back when the rest has, at the new one."""
        now = self._env.now
        flow.left = max(0.0, flow.left - flow.rate / flow.heaviest * (now - flow.since))
        flow.since = now
        flow.rate = rate
        flow.version = version = flow.version + 1
        self._after(flow.left * flow.heaviest / rate, lambda _: self._leave(flow, version))

    def _note_peak(self, link: int, bytes_per_s: float) -> None:
        if bytes_per_s > self.peak_bytes_per_s[link]:
            self.peak_bytes_per_s[link] = bytes_per_s
