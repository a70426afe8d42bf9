"""Stretches of a program that are written once and repeated."""

from dataclasses import fields

import pytest

from triosim.engine import program as programs
from triosim.engine.program import Part, Program, RankClass
from triosim.engine.tiling import extent, repeat, repeats
from triosim.errors import Infeasible
from triosim.network.links import Load

LOAD = Load(bytes_by_link=(), latency_s=1.0, sent_bytes=2.0)
PARTS = (Part("compute", ("forward", ""), 0.5),)


def write(made, before):
    """One round: a gather that waits for the round before, a composite task, memory, a mark."""
    on = [] if before is None else [before]
    [gathered] = made.communicate([(0, "gather", "all-gather")], "g", "data", 8.0, LOAD, [on])
    task = made.compose(0, "c", "forward", PARTS, [gathered])
    made.allocate(task, "work", 5)
    made.free(task, "work", 5)
    made.marks.append(task)
    return task


def rounds(count):
    made, points, last = Program(), [], None
    made.add_class(RankClass(members=(0,)))
    for _ in range(count):
        points.append(extent(made))
        last = write(made, last)
    return made, points


@pytest.mark.parametrize("times", [1, 2, 9])
def test_repeating_is_writing_again(times):
    made, points = rounds(3)
    assert repeats(made, points[1], points[2])
    assert repeat(made, points[2], times) == 2
    byhand, _ = rounds(3 + times)
    for field in fields(Program):
        assert getattr(made, field.name) == getattr(byhand, field.name), field.name


def test_the_first_round_is_unlike_the_others():
    made, points = rounds(2)
    assert not repeats(made, points[0], points[1])  # nothing to wait for yet


@pytest.mark.parametrize(
    "change",
    [
        lambda made: made.duration_s.__setitem__(-1, 9.0),
        lambda made: made.wait(len(made) - 1, 0),
        lambda made: made.memory_bytes.__setitem__(-1, -4),
        lambda made: made.loads.__setitem__(-1, Load(**{k: getattr(LOAD, k) for k in KEYS})),
        lambda made: made.parts.__setitem__(len(made) - 1, ()),
        lambda made: made.compute(0, "more", "forward", 1.0),
        lambda made: made.marks.pop(),
        lambda made: made.bytes.__setitem__(-2, 9.0),
        lambda made: made.memory_task.__setitem__(-1, 1),
    ],
)
def test_any_difference_is_seen(change):
    made, points = rounds(3)
    change(made)
    assert not repeats(made, points[1], points[2])


KEYS = ("bytes_by_link", "latency_s", "sent_bytes")


def test_a_program_has_a_largest_size(monkeypatch):
    made, points = rounds(3)
    monkeypatch.setattr("triosim.engine.tiling.MAX_TASKS", len(made) + 3)
    with pytest.raises(Infeasible, match=f"{programs.MAX_TASKS:,} tasks"):
        repeat(made, points[2], 2)
