"""An algorithm's phases laid on a topology: shares of the array on each link, and latency.

Everything is per byte of the array until `Pattern.time_s` is asked about a size, so one pattern
serves all sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from triosim.network.collectives.moves import Exchange, Move, Phase, Sends
from triosim.network.topology.base import Floats, Ints, Topology

# NOTE: glibc gives arrays from 128 KB on back to the system at once, so that each new one pays for
# fresh pages: a third of the time on a torus of 16,384 GPUs. Freeing a larger one raises that limit
# to its size (mallopt(3), M_MMAP_THRESHOLD), and up to 32 MB are kept.
np.empty(2**21)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class PhaseLoad:
    """`share[i]` of the array passes link `links[i]`, after `latency_s` in `steps` steps.

    `seconds_per_byte` is the time of its fullest link for each byte of the array. `moves` are what
    makes the phase up; `pipelined` ones feed each other.
    """

    links: Ints
    share: Floats
    latency_s: float
    steps: int
    seconds_per_byte: float
    moves: tuple[Move, ...]
    pipelined: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class Pattern:
    """One collective on one topology, for any size; phases follow each other.

    `sent_share` is what one rank sends, as a share of the array, on average over ranks.
    """

    phases: tuple[PhaseLoad, ...]
    sent_share: float
    links: int

    @property
    def steps(self) -> int:
        return sum(phase.steps for phase in self.phases)

    @property
    def latency_s(self) -> float:
        return sum(phase.latency_s for phase in self.phases)

    @cached_property
    def seconds_per_byte(self) -> float:
        return sum(phase.seconds_per_byte for phase in self.phases)

    def time_s(self, size_bytes: float) -> float:
        """The time on an otherwise idle network whose links have no protocol costs."""
        return self.latency_s + size_bytes * self.seconds_per_byte

    def shares(self) -> Floats:
        """The share of the array on each link of the topology, over all phases."""
        total = np.zeros(self.links)
        for phase in self.phases:
            total[phase.links] += phase.share
        return total


def lay(phases: Sequence[Phase], topology: Topology, ranks: int) -> Pattern:
    """The phases of an algorithm over that many ranks in all, as loads on the topology's links."""
    # The way back of an all-reduce often repeats phases of the way there: laid once.
    runs = _runs(topology)
    different = {id(phase): phase for phase in phases}
    laid = {key: _lay_phase(phase, topology, runs) for key, phase in different.items()}
    loads = [load for phase in phases if (load := laid[id(phase)]) is not None]
    sent = sum(_sent(move) for phase in phases for move in phase.moves)
    return Pattern(
        phases=tuple(_merged(loads)),
        sent_share=sent / max(ranks, 1),
        links=len(topology.capacity_bytes_per_s),
    )


def _lay_phase(phase: Phase, topology: Topology, runs: Ints) -> PhaseLoad | None:
    total: Floats | None = None
    latencies: list[float] = []
    steps: list[int] = []
    for move in phase.moves:
        share, latency_s = _lay_move(move, topology)
        total = share if total is None else total + share
        if move.steps:
            latencies.append(move.steps * latency_s)
            steps.append(move.steps)
    if not steps:
        return None
    assert total is not None  # `steps` has an entry for it
    links = np.flatnonzero(total != 0.0)  # NOTE: on truth values four times as fast
    capacity = topology.capacity_bytes_per_s
    # NOTE: of links of one capacity the fullest is the busiest: a tenth of the divisions' time.
    fullest = np.maximum.reduceat(total, runs)
    used = fullest != 0.0  # a dead link has no capacity, and nothing goes over it
    return PhaseLoad(
        links=links,
        share=total[links],
        latency_s=sum(latencies) if phase.pipelined else max(latencies),
        steps=sum(steps) if phase.pipelined else max(steps),
        seconds_per_byte=float((fullest[used] / capacity[runs[used]]).max(initial=0.0)),
        moves=phase.moves,
        pipelined=phase.pipelined,
    )


def _runs(topology: Topology) -> Ints:
    """The first of neighbouring links of equal capacity."""
    return np.flatnonzero(np.diff(topology.capacity_bytes_per_s, prepend=np.nan))


def _lay_move(move: Move, topology: Topology) -> tuple[Floats, float]:
    """Shares on every link, and the latency of one step."""
    if isinstance(move, Sends):
        share = np.broadcast_to(np.asarray(move.share, dtype=np.float64), move.source.shape)
        source, target = move.source.ravel(), move.target.ravel()
        loads = topology.traffic(source, target, share.ravel())
        latency = topology.latency_s(source, target)
        return loads, float(latency.max(initial=0.0))
    if isinstance(move, Exchange):
        return topology.exchange(move.groups, move.share), topology.diameter_s(move.groups)
    reduction = move.reduction
    return move.up * reduction.up + move.down * reduction.down, reduction.latency_s


def _sent(move: Move) -> float:
    """What all ranks together send."""
    if isinstance(move, Sends):
        moving = move.source != move.target
        if isinstance(move.share, float):  # NOTE: a tenth of the time of adding them up
            return move.share * int(np.count_nonzero(moving))
        return float((np.broadcast_to(move.share, move.source.shape) * moving).sum())
    if isinstance(move, Exchange):
        return move.share * float(move.groups.size * (move.groups.shape[1] - 1))
    return move.up * float(move.groups.size)


def _merged(loads: Sequence[PhaseLoad]) -> list[PhaseLoad]:
    """Neighbouring phases that load the same links in proportion are one.

    Alone and beside other traffic they take as long together as one after the other. Where several
    moves share a phase they stay apart, so that each phase's latency remains that of its moves.
    """
    merged: list[PhaseLoad] = []
    for load in loads:
        if merged and _proportional(merged[-1], load):
            before = merged.pop()
            load = PhaseLoad(
                links=load.links,
                share=before.share + load.share,
                latency_s=before.latency_s + load.latency_s,
                steps=before.steps + load.steps,
                seconds_per_byte=before.seconds_per_byte + load.seconds_per_byte,
                moves=before.moves + load.moves,
                pipelined=True,
            )
        merged.append(load)
    return merged


def _proportional(one: PhaseLoad, other: PhaseLoad) -> bool:
    alike = len(one.links) == len(other.links) and np.array_equal(one.links, other.links)
    if not alike or not (_in_a_row(one) and _in_a_row(other)):
        return False
    if not len(one.links):
        return True
    ratio = one.share / other.share
    return bool(ratio.max() - ratio.min() <= 1e-12 * ratio.max())


def _in_a_row(load: PhaseLoad) -> bool:
    """Whether its moves follow each other, so that their latencies add up."""
    return load.pipelined or len(load.moves) == 1
