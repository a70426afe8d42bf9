"""A schedule as a program of the engine: computations, and one delay for each hop."""

from __future__ import annotations

from triosim.engine.program import Program, RankClass
from triosim.network.links import Load
from triosim.schedules.schedule import Schedule
from triosim.schedules.timing import Durations, hop_delays, task_durations
from triosim.schedules.wiring import NONE

PHASES = ("forward", "backward", "backward", "backward", "forward")  # by kind of work


def write_schedule(schedule: Schedule, durations: Durations) -> Program:
    """One rank class for each stage; task t is the schedule's task t, then come the transfers.

    Each transfer has a stream of its own: it is a delay and shares nothing with others.
    """
    program, wiring = Program(), schedule.wiring
    for stage in range(schedule.stages):
        program.add_class(RankClass(members=(stage,), stage=stage))
    cells = (task.cell for row in schedule.rows for task in row)
    taken = task_durations(schedule, durations)
    for stage, work, cell, duration in zip(wiring.stage, wiring.work, cells, taken, strict=True):
        program.compute(stage, cell, PHASES[work], duration)
    for after, hop in ((wiring.after, wiring.hop), (wiring.paired_after, wiring.paired_hop)):
        delays = hop_delays(durations.hop, hop)
        for task, (source, delay) in enumerate(zip(after, delays, strict=True)):
            if source != NONE:
                _wait(program, wiring.stage, task, source, delay)
    return program


def _wait(program: Program, stages: list[int], task: int, source: int, delay: float) -> None:
    """Let a task wait for another one, over a hop if there is one."""
    if delay > 0:
        [source] = program.communicate(
            [(stages[source], f"hop {len(program.loads)}", "send")],
            f"{program.name[source]} from stage {stages[source]} to {stages[task]}",
            "activations" if program.phase[task] == "forward" else "gradients",
            0.0,
            Load(bytes_by_link=(), latency_s=delay, sent_bytes=0.0),
            [[source]],
        )
    program.wait(task, source)
