"""Which row runs inside which, and which row launched each kernel.

Rows nest by time on one thread. A sweep with a stack finds all parents in O(n log n).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tracer.convert.kineto import Kernel, Launch, Profile, Row

# Start and duration are rounded apart: in old files (whole microseconds) a child may seem to end
# one microsecond after its parent, in new ones one nanosecond.
SLACK_NS = 1_000
SLACK_FINE_NS = 2


def nest(profile: Profile) -> None:
    """Set the parent of every row, the row of every launch, the launch and row of every kernel."""
    slack = SLACK_NS if profile.whole_microseconds else SLACK_FINE_NS
    rows: dict[int, list[Row]] = {}
    for row in profile.rows:
        rows.setdefault(row.thread, []).append(row)
    launches: dict[int, list[Launch]] = {}
    for launch in profile.launches.values():
        launches.setdefault(launch.thread, []).append(launch)
    for thread in rows:
        rows[thread] = in_order(rows[thread])
        _sweep(rows[thread], launches.get(thread, []), slack)
    profile.rows = [row for thread in rows.values() for row in thread]
    by_external = _external_ids(profile)
    first = min((row.start for row in profile.rows), default=0)
    for kernel in profile.kernels:
        _place(kernel, profile, by_external, first)


def in_order(rows: Sequence[Row]) -> list[Row]:
    """The rows of one thread, parents before children.

    "Ev Idx" is exact where it agrees with the clock; whole microseconds alone leave ties open.
    """
    if all(row.index >= 0 for row in rows):
        ordered = sorted(rows, key=lambda row: row.index)
        if all(a.start <= b.start for a, b in pairwise(ordered)):
            return ordered
    return sorted(rows, key=lambda row: (row.start, -row.end, row.index, row.order))


def _sweep(rows: Sequence[Row], launches: list[Launch], slack: int) -> None:
    launches.sort(key=lambda launch: launch.start)
    stack: list[Row] = []
    waiting = 0
    for row in rows:
        while waiting < len(launches) and launches[waiting].start < row.start:
            _innermost(launches[waiting], stack)
            waiting += 1
        while stack and not _inside(row, stack[-1], slack):
            stack.pop()
        row.parent = stack[-1] if stack else None
        stack.append(row)
    for launch in launches[waiting:]:
        _innermost(launch, stack)


def _inside(row: Row, outer: Row, slack: int) -> bool:
    if row.start < outer.end:
        return row.end <= outer.end + slack
    return row.start == outer.end == row.end


def _innermost(launch: Launch, stack: list[Row]) -> None:
    """A launch may share the operator's first or last instant."""
    while stack and stack[-1].end < launch.start:
        stack.pop()
    for row in reversed(stack):
        if launch.end <= row.end:
            launch.row = row
            return
    launch.row = stack[-1] if stack else None


def _external_ids(profile: Profile) -> dict[int, Row]:
    """Operators by external id, in files where that id names operators.

    From about torch 1.12 to 2.1 a kernel's external id is its correlation and names nothing.
    """
    if any(k.external_id == k.correlation != 0 for k in profile.kernels):
        return {}
    return {row.external_id: row for row in profile.rows if row.external_id}


def _place(kernel: Kernel, profile: Profile, by_external: dict[int, Row], first: int) -> None:
    kernel.launch = profile.launches.get(kernel.correlation)
    if kernel.launch is not None:
        kernel.row = kernel.launch.row
        kernel.reason = "" if kernel.row else "launched outside any operator"
    elif kernel.external_id in by_external:
        kernel.row = by_external[kernel.external_id]
        profile.repairs["kernels without a launch row were placed by their external id"] += 1
    elif kernel.start < first:
        kernel.reason = "launched before the recording"
    else:
        kernel.reason = "without a launch row"
