"""Max-min fair sharing of links.

Every flow crosses one or more links, with a weight on each: the share of its own rate that it puts
there (1 on its heaviest link). All rates rise together until a link is full; the flows that cross
it keep their rate and the others rise on (progressive filling). The result is the max-min fair
allocation: no flow can gain without taking from one that has no more than itself.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from numbers import Real
from typing import TypeVar

from triosim.errors import ConfigError

L = TypeVar("L", bound=Hashable)
F = TypeVar("F", bound=Hashable)

MAX_NAMES = 8  # of links, in a sentence


def fair_rates(
    capacities: Mapping[L, float], flows: Mapping[F, Mapping[L, float]]
) -> dict[F, float]:
    """The rate of each flow, in the unit of the capacities, on its heaviest link.

    A flow that crosses no link has an infinite rate.
    """
    rates: dict[F, float] = {f: float("inf") for f, weights in flows.items() if not weights}
    left = {link: float(capacity) for link, capacity in capacities.items()}
    active = {f: weights for f, weights in flows.items() if weights}
    level = 0.0
    while active:
        demand: dict[L, float] = {}
        for weights in active.values():
            for link, weight in weights.items():
                demand[link] = demand.get(link, 0.0) + weight
        step, full = min(
            ((max(left[link], 0.0) / weight, link) for link, weight in demand.items()),
            key=lambda item: item[0],
        )
        level += step
        for link, weight in demand.items():
            left[link] -= step * weight
        saturated = {full} | {link for link in demand if left[link] <= 1e-12 * capacities[link]}
        for f in [f for f, weights in active.items() if not saturated.isdisjoint(weights)]:
            rates[f] = level
            del active[f]
    return rates


def share(links: Mapping[L, float], flows: Mapping[F, Sequence[L]]) -> dict[F, float]:
    """Fair rates of flows that each use all of their links alike.

    Example: `share(links={"L1": 1, "L2": 2}, flows={"A": ["L1"], "B": ["L1", "L2"],
    "C": ["L2"]})` gives A and B 0.5 and C 1.5. A flow without links has an infinite rate.

    Raises `ConfigError` on field "links" or "flows".
    """
    _check_links(links)
    _check_flows(flows, links)
    return fair_rates(links, {flow: dict.fromkeys(route, 1.0) for flow, route in flows.items()})


def _check_links(links: object) -> None:
    if not isinstance(links, Mapping):
        raise ConfigError("links", links, 'must map links to capacities, as in {"L1": 100}')
    for link, capacity in links.items():
        number = isinstance(capacity, Real) and not isinstance(capacity, bool)
        if not (number and 0 < capacity < math.inf):
            raise ConfigError(
                "links", f"{link}: {capacity}", "the capacity must be a number above 0"
            )


def _check_flows(flows: object, links: Mapping[L, float]) -> None:
    if not isinstance(flows, Mapping):
        raise ConfigError("flows", flows, 'must map flows to their links, as in {"A": ["L1"]}')
    for flow, route in flows.items():
        if isinstance(route, (str, bytes)) or not isinstance(route, Sequence):
            given: object = route
            legal = 'must be a list of links, as in ["L1", "L2"]'
            raise ConfigError("flows", f"{flow}: {given}", legal)
        for link in route:
            if not isinstance(link, Hashable) or link not in links:
                known = [*map(str, links)]
                there = ", ".join(known[:MAX_NAMES]) + ", ..." * (len(known) > MAX_NAMES)
                problem = f"no such link; there are {there or 'none'}"
                raise ConfigError("flows", f"{flow}: {link}", problem)
