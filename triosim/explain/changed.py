"""A program in which one kind of thing costs less; order, plan and algorithms stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from triosim.analysis.breakdown import SLOWDOWN
from triosim.engine.executor import execute
from triosim.engine.program import COMPUTE_PHASES, LAUNCH_PHASE, Part, Program, RankClass
from triosim.explain.kinds import LAUNCH, REMOTE, task_kind, transfer_kind
from triosim.network.links import Load
from triosim.train.passes import Pass, measure
from triosim.train.stage import at_speed
from triosim.train.step import Made

ALL_COMPUTE = "all computing"
ALL_MOVES = "all communication between GPUs"
SLOW_GPUS = "slow GPUs"
COMPUTING = (*COMPUTE_PHASES, "recompute")


def changed(
    program: Program, kind: str, factor: float, made: Mapping[int, Made] | None = None
) -> Program:
    """The program with what is of a kind taking `factor` times as long; 0 is free.

    Transfers put that part of their bytes on their links and have that part of their latency. What
    slow GPUs take beyond full speed shrinks to that part of it. `made` says what the composite
    tasks are made of, each of which is simulated again.
    """
    phases = _phases(kind)
    slow = [_speed(rank_class, kind, factor) for rank_class in program.classes]
    loads: dict[int, Load] = {}
    moved = list(program.loads)
    for transfer, ends in enumerate(program.ends):
        if _moves(kind, program.phase[ends[0]], program.purpose[transfer]):
            load = program.loads[transfer]
            if id(load) not in loads:
                loads[id(load)] = _lighter(load, factor)
            moved[transfer] = loads[id(load)]
    durations = program.duration_s[:]
    for task, phase in enumerate(program.phase):
        if program.transfer[task] < 0 and durations[task] and task not in program.parts:
            before, after = slow[program.streams[program.stream[task]].rank_class]
            durations[task] *= factor if phase in phases else 1.0
            durations[task] *= 1.0 if phase == LAUNCH_PHASE else before / after
    lighter = replace(
        program,
        loads=moved,
        duration_s=durations,
        overlap_slowdown=program.overlap_slowdown * (factor if kind == SLOWDOWN else 1.0),
    )
    return _composed(lighter, slow, kind, factor, made or {})


def _phases(kind: str) -> Collection[str]:
    return COMPUTING if kind == ALL_COMPUTE else (kind,)


def _moves(kind: str, phase: str, purpose: str) -> bool:
    if kind == ALL_MOVES:
        return phase not in REMOTE
    return transfer_kind(phase, purpose) == kind


def _lighter(load: Load, factor: float) -> Load:
    """A load with a part of its bytes and latency; a free one needs no circuits either."""
    return replace(
        load,
        bytes_by_link=tuple((k, size * factor) for k, size in load.bytes_by_link if factor),
        latency_s=load.latency_s * factor,
        circuits=load.circuits if factor else (),
        then=tuple(_lighter(part, factor) for part in load.then),
    )


def _speed(rank_class: RankClass, kind: str, factor: float) -> tuple[float, float]:
    """A class's speed as it is and as it becomes."""
    speed = rank_class.speed
    return speed, _faster(speed, factor) if kind == SLOW_GPUS else speed


def _faster(speed: float, factor: float) -> float:
    """The speed at which a slow rank loses only that part of what it loses now."""
    return 1 / (1 + factor * (1 / speed - 1)) if speed < 1 else speed


def _composed(
    program: Program,
    speeds: Sequence[tuple[float, float]],
    kind: str,
    factor: float,
    made: Mapping[int, Made],
) -> Program:
    """The composite tasks' parts and durations, each from its passes at its rank's speed."""
    passes: dict[int, tuple[Part, ...]] = {}
    whole: dict[Made, tuple[Part, ...]] = {}

    def rerun(one: Pass) -> tuple[Part, ...]:
        if id(one) not in passes:
            passes[id(one)] = _rerun(one, kind, factor)
        return passes[id(one)]

    durations, parts = program.duration_s[:], dict(program.parts)
    for task, own in program.parts.items():
        before, after = speeds[program.streams[program.stream[task]].rank_class]
        slowest = _slowest(own, before)
        if kind == SLOW_GPUS:
            slowest = _faster(slowest, factor)
        source = made.get(task)
        if source is None:
            fresh = _scaled(_at_full_speed(own, before), kind, factor)
        else:
            if source not in whole:
                whole[source] = _together(source.passes, rerun)
            fresh = whole[source]
        even = after == slowest == 1.0
        parts[task] = tuple(fresh if even else at_speed(fresh, after, slowest))
        durations[task] = sum(part.seconds for part in parts[task])
    return replace(program, duration_s=durations, parts=parts)


def _rerun(one: Pass, kind: str, factor: float) -> tuple[Part, ...]:
    """A pass's parts after the change."""
    if one.timeline is None or not concerns(one.timeline.program, kind):
        return one.parts
    program = changed(one.timeline.program, kind, factor)
    return measure(execute(program), one.first, one.kernels).parts


def concerns(program: Program, kind: str) -> bool:
    """Whether a change of that kind changes anything in a program without composite tasks."""
    if kind == SLOWDOWN:
        return program.overlap_slowdown > 0
    if kind in (SLOW_GPUS, ALL_COMPUTE):
        return kind == ALL_COMPUTE
    if kind == ALL_MOVES:
        return bool(program.loads)
    return any(task_kind(program, task) == kind for task in range(len(program)))


def _together(
    passes: Sequence[Pass], parts_of: Callable[[Pass], tuple[Part, ...]]
) -> tuple[Part, ...]:
    """What several passes, one after the other, are made of."""
    sums: dict[tuple[str, tuple[str, str]], float] = {}
    for one in passes:
        for part in parts_of(one):
            at = (part.kind, part.key)
            sums[at] = sums.get(at, 0.0) + part.seconds
    return tuple(Part(*at, seconds) for at, seconds in sums.items())


def _at_full_speed(parts: Sequence[Part], speed: float) -> tuple[Part, ...]:
    """What a rank at full speed among its like would have."""
    return tuple(
        replace(part, seconds=part.seconds * (speed if part.kind == "compute" else 1.0))
        for part in parts
        if part.kind != "imbalance"
    )


def _slowest(parts: Sequence[Part], speed: float) -> float:
    """The speed of the slowest rank that a composite task waits for inside."""
    own_s = sum(part.seconds for part in parts if part.kind == "compute")
    waits_s = sum(part.seconds for part in parts if part.kind == "imbalance")
    return speed if not waits_s else 1 / (1 / speed + waits_s / (own_s * speed))


def _scaled(parts: Sequence[Part], kind: str, factor: float) -> tuple[Part, ...]:
    """Parts that no pass stands behind: each of the kind shrinks by itself."""
    phases = _phases(kind)
    return tuple(
        replace(part, seconds=part.seconds * (factor if _is(part, phases) else 1.0))
        for part in parts
    )


def _is(part: Part, phases: Collection[str]) -> bool:
    if part.kind == "compute":
        return part.key[0] in phases
    return part.kind == "launch_wait" and LAUNCH in phases
