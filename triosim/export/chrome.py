"""The timeline in Chrome's trace-event format, for Perfetto and chrome://tracing.

A process is a rank, a thread a stream; times are microseconds. One representative of each class of
identical ranks is written; its process name says how many it stands for. Counters hold the memory
in use; flow arrows join the two ends of a send.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from triosim.result import Result

Event = dict[str, Any]


def chrome_trace(result: Result) -> str:
    """The trace as JSON text."""
    events = [
        *_names(result),
        *_spans(result),
        *_flows(result),
        *_memory(result),
    ]
    return json.dumps(
        {
            "displayTimeUnit": "ms",
            "otherData": {"scenario": result.scenario.to_dict()},
            "traceEvents": events,
        },
        allow_nan=False,
    )


def _names(result: Result) -> Iterator[Event]:
    for c, rank_class in enumerate(result.classes):
        members = len(rank_class.members)
        same = f" (and {members - 1} identical)" if members > 1 else ""
        yield _meta("process_name", rank_class.rank, 0, f"GPU {rank_class.rank}{same}")
        for thread, stream in enumerate(result.tasks.program.streams):
            if stream.rank_class == c:
                yield _meta("thread_name", rank_class.rank, thread, stream.name)


def _meta(kind: str, process: int, thread: int, name: str) -> Event:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}


def _spans(result: Result) -> Iterator[Event]:
    timeline = result.tasks
    program = timeline.program
    start_us, end_us = (timeline.start_s * 1e6).tolist(), (timeline.end_s * 1e6).tolist()
    for task, stream in enumerate(program.stream):
        rank_class = result.classes[program.streams[stream].rank_class]
        cause = timeline.critical[task]
        arguments: dict[str, Any] = {"waited_for": program.name[cause] if cause >= 0 else ""}
        if program.transfer[task] >= 0:
            arguments["bytes"] = program.bytes[task]
        yield {
            "ph": "X",
            "name": program.name[task],
            "cat": program.phase[task],
            "pid": rank_class.rank,
            "tid": stream,
            "ts": start_us[task],
            "dur": end_us[task] - start_us[task],
            "args": arguments,
        }


def _flows(result: Result) -> Iterator[Event]:
    timeline = result.tasks
    program = timeline.program
    for number, ends in enumerate(program.ends):
        if len(ends) == 2 and program.phase[ends[0]] == "send":
            for kind, task in (("s", ends[0]), ("f", ends[1])):
                yield {
                    "ph": kind,
                    "bp": "e",
                    "id": number,
                    "name": "send",
                    "cat": "send",
                    "pid": result.classes[int(timeline.rank_class[task])].rank,
                    "tid": program.stream[task],
                    "ts": float(timeline.start_s[task]) * 1e6,
                }


def _memory(result: Result) -> Iterator[Event]:
    for rank_class, curve in zip(result.classes, result.memory, strict=True):
        levels = {name: values.tolist() for name, values in curve.bytes_by_category.items()}
        for i, time_s in enumerate(curve.time_s.tolist()):
            yield {
                "ph": "C",
                "name": "memory in use (bytes)",
                "pid": rank_class.rank,
                "ts": time_s * 1e6,
                "args": {name: values[i] for name, values in levels.items()},
            }
