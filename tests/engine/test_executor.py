"""Whole timelines of small programs."""

import pytest

from triosim.engine.executor import execute
from triosim.engine.program import MAX_TASKS, Program, RankClass
from triosim.errors import Infeasible
from triosim.network.links import Link, Load


def program(*ranks, links=()):
    made = Program(
        links=[Link(name=str(i), bytes_per_s=b, source=0, target=1) for i, b in enumerate(links)]
    )
    for rank in ranks:
        made.add_class(RankClass(members=(rank,)))
    return made


def over(link, size, latency_s=0.0):
    return Load(bytes_by_link=((link, size),), latency_s=latency_s, sent_bytes=size)


def spans(made):
    timeline = execute(made)
    return [
        (name, float(a), float(b))
        for name, a, b in zip(made.name, timeline.start_s, timeline.end_s, strict=True)
    ]


def test_a_stream_runs_in_order_and_streams_run_side_by_side():
    made = program(0, links=[1.0])
    made.compute(0, "a", "forward", 2.0)
    made.compute(0, "b", "forward", 3.0)
    made.communicate([(0, "fetch", "fetch")], "f", "inputs", 4.0, over(0, 4.0), [[]])
    assert spans(made) == [("a", 0, 2), ("b", 2, 5), ("f", 0, 4)]


def test_a_task_waits_for_others():
    made = program(0, links=[2.0])
    (fetch,) = made.communicate([(0, "fetch", "fetch")], "f", "inputs", 8.0, over(0, 8.0), [[]])
    made.compute(0, "a", "forward", 1.0, [fetch])
    assert spans(made) == [("f", 0, 4), ("a", 4, 5)]


def test_a_wait_added_later_counts():
    made = program(0, 1)
    first = made.compute(0, "a", "forward", 1.0)
    last = made.compute(1, "b", "forward", 2.0)
    made.wait(first, last)
    assert spans(made) == [("a", 2, 3), ("b", 0, 2)]


def test_a_joined_transfer_starts_when_the_last_end_is_ready():
    made = program(0, 1, links=[1.0])
    early = made.compute(0, "early", "backward", 1.0)
    late = made.compute(1, "late", "backward", 5.0)
    ends = [(0, "collective", "all-reduce"), (1, "collective", "all-reduce")]
    made.communicate(ends, "reduce", "gradients", 2.0, over(0, 2.0), [[early], [late]])
    assert spans(made) == [
        ("early", 0, 1),
        ("late", 0, 5),
        ("reduce", 5, 7),
        ("reduce", 5, 7),
    ]


def test_zero_durations_keep_their_order():
    made = program(0)
    a = made.compute(0, "a", "forward", 0.0)
    made.compute(0, "b", "forward", 0.0, [a])
    timeline = execute(made)
    assert timeline.log.tolist() == [0, ~0, 1, ~1]
    assert timeline.total_s == 0


def test_tasks_that_wait_for_each_other_are_infeasible():
    made = program(0, 1)
    a = made.compute(0, "a", "forward", 1.0)
    b = made.compute(1, "b", "forward", 1.0, [a])
    made.wait(a, b)
    with pytest.raises(Infeasible, match="a on rank 0 waits"):
        execute(made)


def test_the_predecessor_that_ended_last_is_the_reason():
    made = program(0, links=[1.0])
    short = made.compute(0, "short", "forward", 1.0)
    (long,) = made.communicate([(0, "fetch", "fetch")], "f", "inputs", 3.0, over(0, 3.0), [[]])
    last = made.compute(0, "last", "forward", 1.0, [long])
    timeline = execute(made)
    assert timeline.critical[last] == long
    assert timeline.critical[short] == -1


def test_a_program_has_a_largest_size():
    made = program(0)
    made.stream.extend([0] * MAX_TASKS)
    with pytest.raises(Infeasible, match="2,000,000 tasks"):
        made.compute(0, "one too many", "forward", 1.0)
