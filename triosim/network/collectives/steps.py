"""Algorithms step by step, chunk by chunk: what pictures show, and what `replay` proves right.

The vectorised algorithms say how many bytes pass between which ranks; here is what the bytes are.
Ranks are 0 .. n-1, and arrays are cut into equal chunks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from triosim.errors import ConfigError, SimulationError
from triosim.network.collectives.choose import check_algorithm
from triosim.network.collectives.plans import Message, plan

MAX_RANKS = 64


@dataclass(frozen=True, slots=True)
class Step:
    """Messages that travel at the same time: each carries what its source had before the step."""

    messages: tuple[Message, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Script:
    """A collective from start to end. Each chunk is `chunk_share` of the array.

    In an all-to-all every rank has an array of its own, and the chunks of all arrays are numbered:
    sorted by the rank where they start, then by the rank that they are for.
    """

    operation: str
    ranks: int
    chunks: int
    chunk_share: float
    steps: tuple[Step, ...]


def script(
    op: str,
    algorithm: str,
    ranks: int,
    *,
    hosts: Sequence[int] | None = None,
    shape: Sequence[int] | None = None,
    pieces: int = 4,
) -> Script:
    """The steps of a collective among up to 64 ranks.

    `hosts` are the ranks in each host for the hierarchical algorithms (one host by default), listed
    level after level, pipelined or not; `shape` the sides of the grid for the torus (a ring by
    default); `pieces` the chunks of a pipelined tree or chain.
    """
    check_algorithm(op, algorithm, ranks)
    if not 1 <= ranks <= MAX_RANKS:
        raise ConfigError("ranks", ranks, f"steps are listed for 1 to {MAX_RANKS}")
    if not 1 <= pieces <= MAX_RANKS:
        raise ConfigError("pieces", pieces, f"must be 1 to {MAX_RANKS}")
    planned = plan(op, algorithm, ranks, hosts=hosts, shape=shape, pieces=pieces)
    taken = planned.steps(op) if ranks > 1 else []
    return Script(
        operation=op,
        ranks=ranks,
        chunks=planned.chunks,
        chunk_share=(ranks if op == "all-to-all" else 1) / planned.chunks,
        steps=tuple(_step(messages) for messages in taken),
    )


def replay(script: Script, steps: int | None = None) -> npt.NDArray[np.int16]:
    """Carry out the steps (all by default): who then holds whose data.

    Entry [r, c, k] counts how often the data of rank k are contained in chunk c at rank r; a sum
    over all ranks is a row of ones. The chunks of an all-gather start at their first senders.
    Raises SimulationError where a rank sends what it does not have.
    """
    n = script.ranks
    held = np.zeros((n + 1, script.chunks, n), dtype=np.int16)  # the last entry is the switch
    rank = np.arange(n)
    if script.operation in ("all-reduce", "reduce-scatter", "reduce"):
        held[rank, :, rank] = 1
    elif script.operation == "all-gather":
        for chunk, home in _homes(script).items():
            held[home, chunk, home] = 1
    elif script.operation == "all-to-all":
        source = np.arange(script.chunks) // (script.chunks // n)
        held[source, np.arange(script.chunks), source] = 1
    else:
        held[0, :, 0] = 1
    for step in script.steps[:steps]:
        loads = [held[message.source, list(message.chunks)] for message in step.messages]
        for message, load in zip(step.messages, loads, strict=True):
            if not load.any(axis=1).all():
                raise SimulationError(f"{message} sends chunks that rank {message.source} lacks")
            before = held[message.target, list(message.chunks)] if message.reduces else 0
            held[message.target, list(message.chunks)] = before + load
    return held[:n]


def _homes(script: Script) -> Mapping[int, int]:
    homes = dict.fromkeys(range(script.chunks), 0) if script.ranks == 1 else {}
    for step in script.steps:
        for message in step.messages:
            for chunk in message.chunks:
                homes.setdefault(chunk, message.source)
    return homes


def _step(messages: Iterable[Message]) -> Step:
    """One message for each pair of ranks and kind."""
    joined: dict[tuple[int, int, bool], list[int]] = {}
    for m in messages:
        joined.setdefault((m.source, m.target, m.reduces), []).extend(m.chunks)
    return Step(tuple(Message(s, t, tuple(sorted(c)), r) for (s, t, r), c in joined.items()))
