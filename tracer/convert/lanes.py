"""The same step in the profiler files of several ranks, on one clock: what each computed and sent.

On a GPU the lanes are kernels: those of a communication library, and all others. On a CPU they are
operators that run in no other, and what the process group's backend ran on threads of its own.

Processes of one host share a clock. Those of several hosts do not, but a collective ends on all its
ranks at once: where the ranks ran the same collectives, each clock is moved by the median
difference of their ends. A rank that joins a collective early only waits, so it counts from when
its last rank joined.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from tracer.convert.files import read_file
from tracer.convert.graph import Graph
from tracer.convert.kineto import Profile
from tracer.convert.names import is_annotation, is_communication, is_communication_kernel
from tracer.convert.nesting import nest
from tracer.convert.source import MAX_BYTES, Data
from tracer.convert.steps import Step, find_steps
from triosim.errors import TraceFormatError
from triosim.overlay import COMMUNICATION, COMPUTE, Measured, MeasuredRank, MeasuredSpan

MAX_RANKS = 64
_BACKEND = re.compile(r"(?:nccl|rccl|gloo|ucc|mpi):(?P<operation>\w+)")
# Between ranks: NCCL's kernels of one operation may differ in protocol and data type only.
_OPERATION = re.compile(
    r"All_?Reduce|All_?Gather|Reduce_?Scatter|Broadcast|All_?To_?All|Reduce|Send_?Recv|Send|Recv",
    re.IGNORECASE,
)


class _Span(NamedTuple):
    """A span on its file's own clock, in nanoseconds."""

    lane: str
    name: str
    start: int
    end: int


class _Rank(NamedTuple):
    """One file: its steps by number, with all that ran in them."""

    rank: int
    label: str
    host: str  # "" where the file does not say
    base: int  # ns; what the times of the file count from
    steps: Mapping[int, Step]
    gpu: bool


def read_measured(
    files: Sequence[Data],
    *,
    names: Sequence[str] | None = None,
    step: int | None = None,
    max_bytes: int = MAX_BYTES,
) -> Measured:
    """One step of the ranks whose profiler files these are, given as paths or contents.

    `names` are what messages call the files. Raises `TraceFormatError`.
    """
    if not 0 < len(files) <= MAX_RANKS:
        raise TraceFormatError(f"{len(files)} files; give those of 1 to {MAX_RANKS} ranks.")
    ranks = [_read(data, i, names[i] if names else None, max_bytes) for i, data in enumerate(files)]
    ranks.sort(key=lambda one: one.rank)
    for one, other in pairwise(ranks):
        if one.rank == other.rank:
            raise TraceFormatError(f"{one.label} and {other.label}: both are of rank {one.rank}.")
    number = _common_step(ranks, step)
    found = [_spans(one, number) for one in ranks]
    shifts, clock = _shifts(found, {one.host for one in ranks})
    moved = [
        [span._replace(start=span.start + by, end=span.end + by) for span in spans]
        for spans, by in zip(found, shifts, strict=True)
    ]
    if _alike(moved):
        moved = _without_waiting(moved)
    origin = min(span.start for spans in moved for span in spans)
    return Measured(
        step=number,
        clock=clock,
        ranks=tuple(
            MeasuredRank(
                rank=one.rank,
                label=one.label,
                spans=tuple(
                    MeasuredSpan(s.lane, s.name, (s.start - origin) / 1e9, (s.end - origin) / 1e9)
                    for s in spans
                ),
            )
            for one, spans in zip(ranks, moved, strict=True)
        ),
    )


def _read(data: Data, position: int, name: str | None, max_bytes: int) -> _Rank:
    profile = read_file(data, name=name, default=f"file {position + 1}", max_bytes=max_bytes)
    if isinstance(profile, Graph):
        raise TraceFormatError(
            f"{profile.name}: an execution trace has no times; give the profiler file."
        )
    nest(profile)
    steps = {step.number: step for step in find_steps(profile)}
    base = profile.header.get("baseTimeNanoseconds")
    return _Rank(
        rank=_rank_of(profile, position),
        label=profile.name,
        host=str(profile.header.get("host_name") or ""),
        base=base if type(base) is int else 0,
        steps=steps,
        gpu=bool(profile.kernels),
    )


def _rank_of(profile: Profile, position: int) -> int:
    """What the file says, else its place among the files."""
    told = profile.header.get("distributedInfo")
    rank = told.get("rank") if isinstance(told, dict) else None
    return rank if type(rank) is int and rank >= 0 else position


def _common_step(ranks: Sequence[_Rank], wanted: int | None) -> int:
    usable = set.intersection(
        *({n for n, step in one.steps.items() if step.rows or step.kernels} for one in ranks)
    )
    complete = {n for n in usable if all(one.steps[n].complete for one in ranks)}
    if wanted is not None and wanted not in usable:
        listed = ", ".join(map(str, sorted(usable))) or "none"
        raise TraceFormatError(f"step {wanted}: not in every file; those that are: {listed}.")
    if wanted is not None:
        return wanted
    if not usable:
        raise TraceFormatError(
            f"{ranks[0].label} and {ranks[-1].label}: there is no step that all files hold."
        )
    return max(complete or usable)


def _spans(one: _Rank, number: int) -> list[_Span]:
    step = one.steps[number]
    if one.gpu:
        spans = [
            _Span(
                COMMUNICATION
                if kernel.collective is not None or is_communication_kernel(kernel.name)
                else COMPUTE,
                kernel.name, one.base + kernel.start, one.base + kernel.end,
            )
            for kernel in step.kernels
        ]  # fmt: skip
    else:
        spans = []
        for row in step.rows:
            outermost = row.parent is None or is_annotation(row.parent)
            if _BACKEND.match(row.name):
                lane = COMMUNICATION
            elif outermost and not is_annotation(row) and not is_communication(row.name):
                lane = COMPUTE
            else:
                continue
            spans.append(_Span(lane, row.name, one.base + row.start, one.base + row.end))
    if not spans:
        raise TraceFormatError(f"{one.label}: nothing computes or communicates in step {number}.")
    return sorted(spans, key=lambda span: (span.start, span.end))


def _collectives(spans: Sequence[_Span]) -> list[int]:
    """Positions of the communication, in the order in which it was joined."""
    return [i for i, span in enumerate(spans) if span.lane == COMMUNICATION]


def _operation(name: str) -> str:
    backend = _BACKEND.match(name)
    found = _OPERATION.search(backend["operation"] if backend else name)
    return found[0].replace("_", "").lower() if found else name


def _alike(ranks: Sequence[Sequence[_Span]]) -> bool:
    """Whether all ranks ran the same collectives (sends have partners of their own)."""
    rows = {tuple(_operation(own[i].name) for i in _collectives(own)) for own in ranks}
    sends = {"send", "recv", "sendrecv"}
    return len(ranks) > 1 and len(rows) == 1 and bool(row := rows.pop()) and not sends & set(row)


def _shifts(ranks: Sequence[Sequence[_Span]], hosts: set[str]) -> tuple[list[int], str]:
    """Nanoseconds to add to each rank's clock, and a sentence about it."""
    if len(ranks) == 1:
        return [0], "One rank, one clock."
    if len(hosts) == 1 and hosts != {""}:
        return [0] * len(ranks), "All ranks ran on one host, so they share its clock."
    if not _alike(ranks):
        starts = [own[0].start for own in ranks]
        return [starts[0] - start for start in starts], (
            "The ranks did not run the same collectives, so each clock counts from its own first "
            "operator: how ranks lie to each other is not known."
        )
    ends = [[own[i].end for i in _collectives(own)] for own in ranks]
    shifts = [round(median(a - b for a, b in zip(ends[0], own, strict=True))) for own in ends]
    left = max(
        abs(a - b - by)
        for own, by in zip(ends, shifts, strict=True)
        for a, b in zip(ends[0], own, strict=True)
    )
    count = len(ends[0])
    return shifts, (
        f"Clocks are aligned by the ends of {count} {'collective' if count == 1 else 'collectives'}"
        f", which then differ by {left / 1e3:,.1f} us at most."
    )


def _without_waiting(ranks: Sequence[Sequence[_Span]]) -> list[list[_Span]]:
    """Each collective from when its last rank joined."""
    rows = [_collectives(own) for own in ranks]
    cut = [list(own) for own in ranks]
    for places in zip(*rows, strict=True):
        joined = max(own[i].start for own, i in zip(ranks, places, strict=True))
        for own, i in zip(cut, places, strict=True):
            own[i] = own[i]._replace(start=min(joined, own[i].end))
    return cut
