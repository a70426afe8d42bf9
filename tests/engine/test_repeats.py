"""Stretches that repeat are not run again, and nothing shows of it."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triosim.engine.executor import execute
from triosim.engine.program import Program, RankClass
from triosim.network.links import Link, Load

LINKS = (1.0, 2.0, 0.5)


def loads():
    part = st.tuples(
        st.lists(st.integers(0, len(LINKS) - 1), min_size=0, max_size=2, unique=True),
        st.sampled_from((0.0, 0.3, 1.0, 2.5)),
        st.sampled_from((0.0, 0.1, 0.7)),
    )
    return st.lists(part, min_size=1, max_size=2)


def load_of(parts):
    made = [
        Load(bytes_by_link=tuple((k, size) for k in route), latency_s=latency, sent_bytes=size)
        for route, size, latency in parts
    ]
    first, *rest = made
    return Load(
        bytes_by_link=first.bytes_by_link,
        latency_s=first.latency_s,
        sent_bytes=first.sent_bytes,
        then=tuple(rest),
    )


@st.composite
def programs(draw):
    """Two classes that do the same in every round, some transfers between and beside them.

    What a task waits for is drawn once: tasks of its own round, or of the round before. Rounds are
    mostly held together, as by an optimizer; otherwise streams may run away from each other.
    """
    classes, rounds = draw(st.integers(1, 2)), draw(st.integers(8, 24))
    together = draw(st.sampled_from((True, True, True, False)))
    made = Program(
        links=[Link(name=str(i), bytes_per_s=b, source=0, target=1) for i, b in enumerate(LINKS)],
        overlap_slowdown=draw(st.sampled_from((0.0, 0.2))),
    )
    for c in range(classes):
        made.add_class(RankClass(members=(c,)))
    kinds = st.tuples(
        st.sampled_from(("compute", "collective", "fetch")),
        st.integers(0, classes - 1),
        st.sampled_from((0.0, 0.25, 1.0, 1.7)),
        loads(),
        st.lists(st.tuples(st.booleans(), st.integers(0, 20)), max_size=2),
    )
    plan = [(*one, load_of(one[3])) for one in draw(st.lists(kinds, min_size=1, max_size=7))]
    before: list[int] = []
    for number in range(rounds):
        own: list[int] = []
        for kind, c, seconds, _, waits, load in plan:
            on = [
                tasks[place % len(tasks)]
                for earlier, place in waits
                if (tasks := before if earlier else own)
            ]
            if together:
                on += own[:1] or before
            if kind == "compute":
                own.append(made.compute(c, f"c {number}", "forward", seconds, on))
                continue
            phase = "all-reduce" if kind == "collective" else "fetch"
            ends = [(k, kind, phase) for k in (range(classes) if kind == "collective" else (c,))]
            waits_of = [on if k == 0 else [] for k in range(len(ends))]
            own += made.communicate(ends, f"t {number}", "data", 1.0, load, waits_of)[:1]
        made.marks.append(own[0])
        before = own
    made.compute(0, "last", "optimizer", 0.5, before)
    return made


@given(programs())
@settings(max_examples=150, deadline=None)
def test_a_run_that_repeats_is_the_run(made):
    quick, whole = execute(made), execute(made, repeat=False)
    total = whole.total_s
    assert np.abs(quick.start_s - whole.start_s).max() <= 1e-9 * total
    assert np.abs(quick.end_s - whole.end_s).max() <= 1e-9 * total
    assert quick.carried_bytes == pytest.approx(whole.carried_bytes, rel=1e-9)
    assert quick.peak_bytes_per_s == pytest.approx(whole.peak_bytes_per_s, rel=1e-9)
    for link in range(len(LINKS)):
        areas = [
            float((np.diff(time_s) * bytes_per_s[:-1]).sum())
            for time_s, bytes_per_s in (timeline.usage(link) for timeline in (quick, whole))
        ]
        assert areas[0] == pytest.approx(areas[1], rel=1e-9, abs=1e-9)


@given(programs())
@settings(max_examples=50, deadline=None)
def test_the_log_has_every_start_and_end_once_and_in_order(made):
    timeline = execute(made)
    log = timeline.log.tolist()
    tasks = range(len(made))
    assert sorted(log) == sorted([*tasks, *(~task for task in tasks)])
    times = [timeline.start_s[e] if e >= 0 else timeline.end_s[~e] for e in log]
    assert all(a <= b for a, b in pairwise(times))
    assert all(log.index(task) < log.index(~task) for task in tasks)


def steady(rounds, slowdown=0.0):
    """A computation of 1 s, and a gather of the next round's data, 0.75 s, beside it."""
    made = Program(
        links=[Link(name="l", bytes_per_s=1.0, source=0, target=1)], overlap_slowdown=slowdown
    )
    made.add_class(RankClass(members=(0,)))
    load = Load(bytes_by_link=((0, 0.75),), latency_s=0.0, sent_bytes=0.75)
    computed: list[int] = []
    for number in range(rounds):
        ends = [(0, "gather", "all-gather")]
        on = [computed[-2]] if number > 1 else []
        [gathered] = made.communicate(ends, f"g {number}", "data", 0.75, load, [on])
        computed.append(made.compute(0, f"c {number}", "forward", 1.0, [gathered]))
        made.marks.append(computed[-1])
    return made


@pytest.mark.parametrize("rounds", [1, 2, 3, 4, 7, 1000])
def test_a_steady_run_takes_its_closed_form(rounds):
    timeline = execute(steady(rounds))
    # The first gather is exposed, all others hide behind the computation before.
    assert timeline.total_s == pytest.approx(0.75 + rounds)
    assert timeline.carried_bytes == pytest.approx([0.75 * rounds])


def test_what_repeats_costs_nothing():
    few, many = (execute(steady(rounds, slowdown=0.2)) for rounds in (50, 5000))
    assert many.events == few.events
    # 0.75 s of each computation but the last is slowed: 0.75 / 1.2 s of work is done meanwhile.
    period = 0.75 + (1 - 0.75 / 1.2)
    assert many.total_s == pytest.approx(0.75 + 4999 * period + 1)


def test_consecutive_tasks_still_meet_exactly():
    timeline = execute(steady(3000, slowdown=0.3))
    computed = timeline.tasks(0, "compute")
    start, end = timeline.start_s[computed], timeline.end_s[computed]
    assert (start[1:] == end[:-1]).all()
    assert all(
        timeline.start_s[t] == timeline.end_s[timeline.critical[t]]
        for t in range(len(timeline.start_s))
        if timeline.critical[t] >= 0
    )


def test_a_change_late_in_the_program_is_not_skipped():
    made = steady(400)
    late = made.name.index("c 300")
    made.duration_s[late] = 5.0
    timeline = execute(made)
    assert timeline.end_s[late] - timeline.start_s[late] == pytest.approx(5.0)
    assert timeline.total_s == pytest.approx(0.75 + 400 + 4)
    assert timeline.events < execute(made, repeat=False).events / 4


def test_a_wait_late_in_the_program_is_not_skipped():
    made = steady(400)
    late = made.name.index("c 300")
    made.wait(late, made.launch(0, "slow", 350.0))
    timeline = execute(made)
    assert timeline.start_s[late] == 350
    assert timeline.total_s == pytest.approx(350 + 100)


def test_what_waits_for_a_task_in_between_starts_when_that_ends():
    made = steady(400)
    middle = made.name.index("c 200")
    follows = made.launch(0, "follows", 1.0, [middle])
    timeline = execute(made)
    assert timeline.start_s[follows] == timeline.end_s[middle] == pytest.approx(0.75 + 201)


def test_a_load_late_in_the_program_is_not_skipped():
    made = steady(400)
    late = made.name.index("g 300")
    made.loads[made.transfer[late]] = Load(
        bytes_by_link=((0, 40.0),), latency_s=0.0, sent_bytes=40.0
    )
    timeline = execute(made)
    assert timeline.end_s[late] - timeline.start_s[late] == pytest.approx(40)
    assert timeline.carried_bytes == pytest.approx([399 * 0.75 + 40])
