"""What a task's time is called: the kinds by which totals and what-ifs go.

A phase of computing ("forward"), what a transfer does and what for ("all-reduce: gradients"),
"fetch" and "store" whatever they carry, "launch", "slowdown" (computing that takes longer beside
communication), and of a composite task's waits the class of the breakdown.
"""

from __future__ import annotations

from collections.abc import Mapping

from triosim.analysis.breakdown import SLOWDOWN
from triosim.engine.program import LAUNCH_PHASE, Part, Program

LAUNCH = LAUNCH_PHASE
REMOTE = ("fetch", "store")
_ROUNDING = 1e-6  # of a task: clock readings differ by less
_OF_CLASS: Mapping[str, str] = {"launch_wait": LAUNCH}


def transfer_kind(phase: str, purpose: str) -> str:
    """The kind of a transfer; both ends of a send are one kind."""
    phase = "send/recv" if phase in ("send", "recv") else phase
    return phase if phase in (*REMOTE, purpose) else f"{phase}: {purpose}"


def task_kind(program: Program, task: int) -> str:
    """The kind of a task that is not composite."""
    transfer = program.transfer[task]
    phase = program.phase[task]
    return phase if transfer < 0 else transfer_kind(phase, program.purpose[transfer])


def part_kind(part: Part) -> str:
    """The kind of a composite task's part."""
    if part.kind == "compute":
        return part.key[0]
    if part.kind == "exposed_communication":
        return transfer_kind(*part.key)
    return _OF_CLASS.get(part.kind, part.kind)


def kinds_of(program: Program, task: int, seconds: float) -> dict[str, float]:
    """The seconds that a task took, by kind; they sum to `seconds`.

    What a computation took beyond its time alone is the slow-down beside communication.
    """
    parts = program.parts.get(task)
    if parts is None:
        kinds = {task_kind(program, task): seconds}
        alone_s = program.duration_s[task]
    else:
        kinds = {}
        for part in parts:
            kind = part_kind(part)
            kinds[kind] = kinds.get(kind, 0.0) + part.seconds
        alone_s = sum(kinds.values())
    slowed = program.overlap_slowdown and program.transfer[task] < 0
    if slowed and seconds - alone_s > _ROUNDING * seconds:
        kinds[SLOWDOWN] = kinds.get(SLOWDOWN, 0.0) + seconds - alone_s
        if parts is None:
            kinds[task_kind(program, task)] = alone_s
    return kinds
