"""Rules that hold whatever was simulated: they pass on a sound step and see each kind of damage."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from triosim.analysis.breakdown import Breakdown, break_down
from triosim.analysis.checks import COMMON, checked, memory_level
from triosim.analysis.memory import MemoryCurve, memory_curves
from triosim.engine.executor import execute
from triosim.engine.program import Program, RankClass
from triosim.engine.timeline import Timeline
from triosim.network.links import Link, Load


@dataclass(frozen=True)
class Step:
    tasks: Timeline
    breakdowns: list[Breakdown]
    memory: list[MemoryCurve]
    total_ms: float


@pytest.fixture
def sound() -> Step:
    """One second of work, half a second of sending 8 bytes, one second of work."""
    program = Program()
    program.add_class(RankClass(members=(0,)))
    program.resident[0].append(("parameters", 4))
    program.add_link(Link(name="wire", bytes_per_s=16.0, source=0, target=1))
    first = program.compute(0, "first", "forward", 1.0)
    load = Load(bytes_by_link=((0, 8.0),), latency_s=0.0, sent_bytes=8.0)
    [sent] = program.communicate([(0, "send", "send")], "send", "test", 8.0, load, [[first]])
    second = program.compute(0, "second", "backward", 1.0, [sent])
    program.allocate(first, "activations", 3)
    program.free(second, "activations", 3)
    timeline = execute(program)
    return Step(timeline, [break_down(timeline, 0)], memory_curves(timeline), 2500.0)


def failing(step: Step, **options: bool) -> set[str]:
    outcomes = [*(rule(step) for rule in COMMON), memory_level(step, **options)]
    checks = checked(*outcomes)
    assert len({check.id for check in checks}) == len(checks) == 5
    return {check.id for check in checks if not check.passed}


def test_a_sound_step_passes(sound):
    assert failing(sound) == set()


def test_a_step_that_is_longer_than_its_classes_fails(sound):
    assert failing(replace(sound, total_ms=2501.0)) == {"classes-sum"}


def test_a_task_that_starts_for_no_reason_fails(sound):
    start = sound.tasks.start_s + np.array([0.0, 0.0, 0.25])
    assert failing(replace(sound, tasks=replace(sound.tasks, start_s=start))) == {"critical-path"}


def test_a_link_with_other_bytes_or_too_many_at_once_fails(sound):
    tasks = replace(sound.tasks, carried_bytes=np.array([9.0]))
    assert failing(replace(sound, tasks=tasks)) == {"bytes-delivered"}
    tasks = replace(sound.tasks, peak_bytes_per_s=np.array([17.0]))
    assert failing(replace(sound, tasks=tasks)) == {"link-capacity"}


@pytest.mark.parametrize(
    ("left", "evicts", "fails"), [(5, True, True), (3, False, True), (3, True, False)]
)
def test_memory_returns_to_where_it_began_unless_something_had_to_make_room(
    sound, left, evicts, fails
):
    [curve] = sound.memory
    levels = curve.bytes_by_category["parameters"].copy()
    levels[-1] = left
    changed = {**curve.bytes_by_category, "parameters": levels}
    step = replace(sound, memory=[replace(curve, bytes_by_category=changed)])
    assert failing(step, evicts=evicts) == ({"memory-level"} if fails else set())


def test_a_category_below_zero_fails(sound):
    [curve] = sound.memory
    below = {name: levels - 1 for name, levels in curve.bytes_by_category.items()}
    assert failing(replace(sound, memory=[replace(curve, bytes_by_category=below)])) == {
        "memory-level"
    }
