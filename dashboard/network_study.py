"""What the page Network asks of the engine, as one value: all algorithms of one collective.

Workers import this module, so it does not know Streamlit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dashboard.network_groups import Members, groups_of
from triosim.figures.text import time_text
from triosim.network.closed_forms import bus_factor
from triosim.network.collectives import library
from triosim.network.collectives.choose import candidates, cheapest, lay_out
from triosim.network.collectives.library import Library
from triosim.network.collectives.pattern import Pattern
from triosim.network.collectives.planned import AUTO
from triosim.network.topology.base import Floats, Ints, Topology
from triosim.network.topology.describe import Description, topology_of
from triosim.network.topology.faults import degrade

CURVE = tuple(float(size) for size in np.logspace(2, 11, 55))  # bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Network:
    """A described topology for so many GPUs; `faults` are shares of bandwidth that are left."""

    description: Description
    ranks: int
    faults: tuple[tuple[str, float], ...] = ()

    def build(self) -> Topology:
        return degrade(topology_of(self.description, self.ranks), dict(self.faults))


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """One collective on one network."""

    network: Network
    operation: str
    algorithm: str
    size_bytes: float
    members: Members


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """What an algorithm costs: `latency_s` and then `seconds_per_byte` of the array."""

    latency_s: float
    seconds_per_byte: float
    steps: int

    def time_s(self, size_bytes: float) -> float:
        return self.latency_s + size_bytes * self.seconds_per_byte


@dataclass(frozen=True, kw_only=True, eq=False)
class Study:
    """The answer. `lines` has every algorithm that can do it here; `shares` are those of the chosen
    one: the share of the array on each link of the topology.

    `calibrated` is the algorithm and time with the protocol costs measured on such links (None
    where they are not known), `calibrated_curve` its (bytes, seconds).
    """

    question: Question
    algorithm: str
    why: str
    lines: Mapping[str, Line]
    shares: Floats
    busiest_link: int
    groups: Ints
    notes: tuple[str, ...]
    calibrated: tuple[str, float] | None
    calibrated_curve: tuple[tuple[float, float], ...]

    @property
    def line(self) -> Line:
        return self.lines[self.algorithm]

    @property
    def time_s(self) -> float:
        return self.line.time_s(self.question.size_bytes)

    @property
    def bytes_s(self) -> float:
        """The part of the time that grows with the size."""
        return self.line.seconds_per_byte * self.question.size_bytes

    @property
    def group_size(self) -> int:
        return int(self.groups.shape[1])

    @property
    def bus_factor(self) -> float:
        return bus_factor(self.group_size, self.question.operation)

    def algbw(self, seconds: float) -> float | None:
        """GB/s: the array over the time."""
        return self.question.size_bytes / seconds / 1e9 if seconds > 0 else None

    @property
    def link_bytes(self) -> float:
        """What passes the link that is busy longest."""
        return float(self.shares[self.busiest_link]) * self.question.size_bytes


def study(question: Question) -> Study:
    """Raises `ConfigError` or `Infeasible`."""
    topology = question.network.build()
    groups, notes = groups_of(question.members, topology, question.operation)
    patterns = candidates(question.operation, groups, topology)
    best = cheapest(patterns, question.size_bytes)
    algorithm, why = best.algorithm, best.why
    if question.algorithm != AUTO:
        algorithm = question.algorithm
        if algorithm not in patterns:  # raises the sentence that says why not
            patterns[algorithm] = lay_out(question.operation, algorithm, groups, topology)
        if algorithm != best.algorithm:
            time_ms = patterns[algorithm].time_s(question.size_bytes) * 1e3
            why = f"{algorithm} was chosen, {time_text(time_ms)}. The cheapest is {why}"
    shares = patterns[algorithm].shares()
    busy = np.divide(
        shares,
        topology.capacity_bytes_per_s,
        out=np.zeros(len(shares)),
        where=topology.capacity_bytes_per_s > 0,
    )
    calibrated = _Calibrated(question, patterns, groups, topology)
    return Study(
        question=question,
        algorithm=algorithm,
        why=why,
        lines={
            name: Line(
                latency_s=pattern.latency_s,
                seconds_per_byte=pattern.seconds_per_byte,
                steps=pattern.steps,
            )
            for name, pattern in patterns.items()
        },
        shares=shares,
        busiest_link=int(np.argmax(busy)) if len(busy) else 0,
        groups=groups,
        notes=tuple(notes),
        calibrated=calibrated.at(question.size_bytes),
        calibrated_curve=tuple(
            (size, found[1]) for size in CURVE if (found := calibrated.at(size)) is not None
        ),
    )


class _Calibrated:
    """The chosen algorithm ("auto": the library's best) with measured protocol costs."""

    def __init__(
        self, question: Question, patterns: Mapping[str, Pattern], groups: Ints, topology: Topology
    ) -> None:
        self._library = Library(topology)
        self._ranks = groups.shape[1]
        known = topology.protocol(groups) is not None
        hosts = bool(topology.units(groups[0]))
        self._patterns = {
            name: pattern
            for name, pattern in patterns.items()
            if known
            and (
                name == question.algorithm
                or (
                    question.algorithm == AUTO
                    and library.has(question.operation, name, hosts=hosts)
                )
            )
        }

    def at(self, size_bytes: float) -> tuple[str, float] | None:
        times = {}
        for name, pattern in self._patterns.items():
            cost = self._library.cost(name, pattern, self._ranks, size_bytes)
            if cost is not None and cost.protocol is not None:
                times[name] = cost.time_s(pattern, size_bytes)
        return min(times.items(), key=lambda item: item[1]) if times else None


def crossovers(lines: Mapping[str, Line]) -> list[tuple[float, str]]:
    """The algorithm that is fastest from each size on, in bytes; the first one from 0 on."""
    left = sorted(lines, key=lambda name: (lines[name].latency_s, lines[name].seconds_per_byte))
    found: list[tuple[float, str]] = [(0.0, left[0])] if left else []
    while found:
        size, name = found[-1]
        now = lines[name]
        later = [
            ((line.latency_s - now.latency_s) / (now.seconds_per_byte - line.seconds_per_byte), key)
            for key, line in lines.items()
            if line.seconds_per_byte < now.seconds_per_byte * (1 - 1e-12)
        ]
        # Less than a byte is rounding: both are equally fast for an empty message.
        later = [(at if at >= 1.0 else 0.0, key) for at, key in later]
        later = [(at, key) for at, key in later if at >= size]
        if not later:
            break
        # Where several take over at once, the one with the fewest bytes.
        found.append(min(later, key=lambda item: (item[0], lines[item[1]].seconds_per_byte)))
    return [
        entry for entry, after in zip(found, [*found[1:], (None, "")], strict=True)
        if after[0] != entry[0]
    ]  # fmt: skip
