"""One file a rank in the form that Holistic Trace Analysis (`hta`) reads: PyTorch's, kernels only.

    from hta.trace_analysis import TraceAnalysis
    TraceAnalysis(trace_dir=folder).get_temporal_breakdown()

That library tells kinds of kernels by their names, so transfers are called as NCCL's kernels and
copies from and to remote memory as memcpys. Times are whole microseconds, to which it would round
down itself: a start and an end are each off by half of one at most. It counts from a rank's first
kernel to its last, so waiting before and after is in none of its classes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from triosim.engine.program import COPY_ENGINE_PHASES
from triosim.export.chrome import Event, written_ranks
from triosim.export.files import write_folder
from triosim.export.spans import COMPUTE, Span, spans_of
from triosim.result import Result

FIRST_STREAM = 7  # where PyTorch's own kernels run on CUDA; the others follow
# Computations whose names would be taken for something else.
_MISREAD = re.compile(
    r"nccl|hccl|Memcpy|Memset|dma|Sync|Stream Wait|LaunchKernel|collective_sub"
    r"|^(hip|runFunction|job_exe|packet|pe_exe|cpum_exe)"
)


def write_hta(result: Result, folder: str | Path) -> list[Path]:
    """Write the files into a new or empty folder; returns their paths."""
    return write_folder("hta", folder, hta_traces(result))


def hta_traces(result: Result) -> Iterator[tuple[str, str]]:
    """Names and texts of the files.

    All ranks, or one of each class where all of them have more spans than `chrome.MAX_SPANS`.
    """
    spans = [spans_of(result, c) for c in range(len(result.classes))]
    ranks = written_ranks(result)
    for rank, c in ranks:
        text = json.dumps(
            {
                "schemaVersion": 1,
                "distributedInfo": {
                    "backend": "nccl",
                    "rank": rank,
                    "world_size": result.scenario.gpus,
                },
                "displayTimeUnit": "ms",
                "traceEvents": list(_events(rank, spans[c])),
            },
            allow_nan=False,
        )
        yield f"rank_{rank}.json", text


def _events(rank: int, spans: list[Span]) -> Iterator[Event]:
    streams: dict[str, int] = {COMPUTE: FIRST_STREAM}
    for span in spans:
        streams.setdefault(span.stream, FIRST_STREAM + len(streams))
    yield _meta(rank, 0, "process_name", f"GPU {rank}")
    for name, stream in streams.items():
        yield _meta(rank, stream, "thread_name", name)
    for number, span in enumerate(spans, 1):
        start_us, end_us = round(span.start_s * 1e6), round(span.end_s * 1e6)
        stream = streams[span.stream]
        arguments: dict[str, Any] = {"device": rank, "stream": stream, "correlation": number}
        yield {
            "ph": "X",
            "cat": "gpu_memcpy" if span.phase in COPY_ENGINE_PHASES else "kernel",
            "name": _name(span),
            "pid": rank,
            "tid": stream,
            "ts": start_us,
            "dur": end_us - start_us,
            "args": arguments,
        }


def _meta(rank: int, stream: int, kind: str, name: str) -> Event:
    return {"ph": "M", "ts": 0, "name": kind, "pid": rank, "tid": stream, "args": {"name": name}}


def _name(span: Span) -> str:
    if span.phase in COPY_ENGINE_PHASES:
        way = "HtoD" if span.phase == "fetch" else "DtoH"
        return f"Memcpy {way} ({span.name})"
    if not span.computes:
        return f"ncclDevKernel_{span.phase.title().replace('-', '')} ({span.name})"
    return f"{span.phase} kernel" if _MISREAD.search(span.name) else span.name
