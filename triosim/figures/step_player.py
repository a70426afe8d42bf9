"""A collective step by step as plain values: who sends what to whom, and who holds what then.

The page's player shows them; nothing here depends on how.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from triosim.network.collectives.plans import SWITCH, Message
from triosim.network.collectives.steps import Script, replay
from triosim.network.topology.base import Ints

MAX_LISTED = 6
ADDING = ("all-reduce", "reduce-scatter", "reduce")


def step_player(script: Script) -> dict[str, Any]:
    """Everything that a player needs, for JSON.

    `held[s][r][c]` says after s steps what rank r has of column c: of a reduction how many ranks'
    data are added up in the chunk, else 1 for a chunk that is there. `whole` is what a finished
    cell has. In an all-to-all the columns are the ranks that data come from: 1 once all that a
    rank sends to r is there. `steps[s]` has the messages of step s and a sentence on them.
    """
    columns = script.ranks if script.operation == "all-to-all" else script.chunks
    held = [_held(script, taken) for taken in range(len(script.steps) + 1)]
    return {
        "operation": script.operation,
        "ranks": script.ranks,
        "columns": columns,
        "column": "from rank" if script.operation == "all-to-all" else "chunk",
        "whole": script.ranks if script.operation in ADDING else 1,
        "share": script.chunk_share,
        "switch": any(SWITCH in (m.source, m.target) for s in script.steps for m in s.messages),
        "held": [state.tolist() for state in held],
        "steps": [
            {
                "text": step_text(script, number),
                "messages": [_message(script, message) for message in step.messages],
            }
            for number, step in enumerate(script.steps)
        ],
    }


def _held(script: Script, taken: int) -> Ints:
    contents = replay(script, taken)
    if script.operation != "all-to-all":
        return np.asarray(contents.sum(axis=2, dtype=np.int64))
    n = script.ranks
    pieces = script.chunks // (n * n)
    there = contents.any(axis=2).reshape(n, n, n, pieces)  # rank, from, to, piece
    own = np.arange(n)
    return np.asarray(there[own, :, own].all(axis=2), dtype=np.int64)


def _message(script: Script, message: Message) -> dict[str, Any]:
    return {
        "from": message.source,
        "to": message.target,
        "chunks": chunk_text(script, message.chunks),
        "adds": _adds(message),
        "text": message_text(script, message),
    }


def step_text(script: Script, number: int) -> str:
    """A sentence on a whole step."""
    messages = script.steps[number].messages
    if len(messages) == 1:
        return message_text(script, messages[0]).capitalize() + "."
    adding = sum(map(_adds, messages))
    does = "adds it to its own" if adding == len(messages) else "keeps it"
    if 0 < adding < len(messages):
        does = f"adds it ({adding} messages) or keeps it"
    sizes = {len(message.chunks) for message in messages}
    each = _count(min(sizes)) if len(sizes) == 1 else f"{min(sizes)} to {max(sizes)} chunks"
    return f"{len(messages)} messages of {each} each; every receiver {does}."


def _adds(message: Message) -> bool:
    """Whether something is added up where it arrives; from a switch comes a finished sum."""
    return message.reduces and message.source != SWITCH


def _count(chunks: int) -> str:
    return "one chunk" if chunks == 1 else f"{chunks} chunks"


def message_text(script: Script, message: Message) -> str:
    """One message in words: "rank 3 sends chunk 2 to rank 4, which adds it"."""
    source, target = (_name(end) for end in (message.source, message.target))
    many = len(message.chunks) > 1
    what = f"{'chunks' if many else 'chunk'} {chunk_text(script, message.chunks)}"
    it = "them" if many else "it"
    if message.target == SWITCH:
        does = f"adds {it} up" if message.reduces else f"passes {it} on"
    else:
        does = f"adds {it}" if _adds(message) else f"keeps {it}"
    return f"{source} sends {what} to {target}, which {does}"


def _name(rank: int) -> str:
    return "the switch" if rank == SWITCH else f"rank {rank}"


def chunk_text(script: Script, chunks: Sequence[int]) -> str:
    """Chunk numbers, ranges drawn together; of an all-to-all as from>to."""
    if script.operation == "all-to-all":
        n = script.ranks
        pieces = script.chunks // (n * n)
        pairs = dict.fromkeys(divmod(chunk // pieces, n) for chunk in chunks)
        names = [f"{source}\u2192{target}" for source, target in pairs]
    else:
        names = _ranges(chunks)
    if len(names) > MAX_LISTED:
        names = [*names[: MAX_LISTED - 1], f"... ({len(chunks)} in all)"]
    return ", ".join(names)


def _ranges(numbers: Sequence[int]) -> list[str]:
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][-1] + 1:
            found[-1].append(number)
        else:
            found.append([number])
    return [f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in found]
