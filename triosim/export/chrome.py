"""The timeline in Chrome's trace-event format, for Perfetto and chrome://tracing.

A process is a rank, a thread a stream; times are microseconds, to a nanosecond, from the start of
the step: one clock for every rank. All ranks are written where that takes at most `MAX_SPANS`
spans; else one of each class of identical ranks, whose process name says how many it stands for.
Counters hold the memory in use; flow arrows join the two ends of a send.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from triosim.result import Result

MAX_SPANS = 200_000  # 40 MB; Perfetto takes a few seconds to open that

Event = dict[str, Any]
Ranks = Sequence[tuple[int, int]]
"""Ranks with their classes."""


def chrome_trace(result: Result) -> str:
    """The trace as JSON text."""
    ranks = written_ranks(result)
    events = [
        *_names(result, ranks),
        *_spans(result, ranks),
        *_flows(result, ranks),
        *_memory(result, ranks),
    ]
    return json.dumps(
        {
            "displayTimeUnit": "ms",
            "otherData": {"scenario": result.scenario.to_dict()},
            "traceEvents": events,
        },
        allow_nan=False,
    )


def written_ranks(result: Result, most_spans: int = MAX_SPANS) -> Ranks:
    """All ranks in order, each with its class; above `most_spans` spans one rank of each class."""
    counts = [len(result.tasks.tasks(c)) for c in range(len(result.classes))]
    spans = sum(len(k.members) * n for k, n in zip(result.classes, counts, strict=True))
    if spans > most_spans:
        return [(k.rank, c) for c, k in enumerate(result.classes)]
    return sorted((rank, c) for c, k in enumerate(result.classes) for rank in k.members)


def _process(rank: int) -> int:
    """From 1 on: in Perfetto 0 is the idle process of the kernel."""
    return rank + 1


def _names(result: Result, ranks: Ranks) -> Iterator[Event]:
    for rank, c in ranks:
        others = len(result.classes[c].members) - 1 if len(ranks) < result.scenario.gpus else 0
        same = f" (and {others} identical)" if others else ""
        yield _meta("process_name", rank, 0, {"name": f"GPU {rank}{same}"})
        yield _meta("process_sort_index", rank, 0, {"sort_index": rank})
        for thread, stream in enumerate(result.tasks.program.streams):
            if stream.rank_class == c:
                yield _meta(
                    "thread_name", rank, _thread(result, rank, thread), {"name": stream.name}
                )


def _meta(kind: str, rank: int, thread: int, arguments: Mapping[str, Any]) -> Event:
    return {"ph": "M", "name": kind, "pid": _process(rank), "tid": thread, "args": arguments}


def _thread(result: Result, rank: int, stream: int) -> int:
    """Threads of different processes have different numbers, as on one machine."""
    return rank * len(result.tasks.program.streams) + stream + 1


def _spans(result: Result, ranks: Ranks) -> Iterator[Event]:
    timeline = result.tasks
    program = timeline.program
    # Whole nanoseconds: Perfetto drops what overlaps by less, as sums of fractions would.
    start_ns = np.rint(timeline.start_s * 1e9).astype(np.int64).tolist()
    end_ns = np.rint(timeline.end_s * 1e9).astype(np.int64).tolist()
    for rank, c in ranks:
        for task in timeline.tasks(c).tolist():
            cause = timeline.critical[task]
            arguments: dict[str, Any] = {"waited_for": program.name[cause] if cause >= 0 else ""}
            if program.transfer[task] >= 0:
                arguments["bytes"] = program.bytes[task]
            yield {
                "ph": "X",
                "name": program.name[task],
                "cat": program.phase[task],
                "pid": _process(rank),
                "tid": _thread(result, rank, program.stream[task]),
                "ts": start_ns[task] / 1e3,
                "dur": (end_ns[task] - start_ns[task]) / 1e3,
                "args": arguments,
            }


def _flows(result: Result, ranks: Ranks) -> Iterator[Event]:
    """Each rank of a class sends to the one at its place in the other class."""
    timeline = result.tasks
    program = timeline.program
    written: list[list[int]] = [[] for _ in result.classes]
    for rank, c in ranks:
        written[c].append(rank)
    number = 0
    for ends in program.ends:
        if len(ends) != 2 or program.phase[ends[0]] != "send":
            continue
        members = [written[timeline.class_list[task]] for task in ends]
        for pair in zip(*members, strict=False):
            number += 1
            for kind, task, rank in zip("sf", ends, pair, strict=True):
                yield {
                    "ph": kind,
                    "bp": "e",
                    "id": number,
                    "name": "send",
                    "cat": "send",
                    "pid": _process(rank),
                    "tid": _thread(result, rank, program.stream[task]),
                    "ts": round(float(timeline.start_s[task]) * 1e9) / 1e3,
                }


def _memory(result: Result, ranks: Ranks) -> Iterator[Event]:
    for rank, c in ranks:
        curve = result.memory[c]
        levels = {name: values.tolist() for name, values in curve.bytes_by_category.items()}
        for i, time_s in enumerate(curve.time_s.tolist()):
            yield {
                "ph": "C",
                "name": "memory in use (bytes)",
                "pid": _process(rank),
                "ts": time_s * 1e6,
                "args": {name: values[i] for name, values in levels.items()},
            }
