"""Whole timelines of small programs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


REDUCE = "all-reduce"


def slowed(slowdown, *ranks, links=()):
    made = program(*ranks, links=links)
    made.overlap_slowdown = slowdown
    return made


def reduce(made, size, *waits, link=0):
    """An all-reduce over as many rank classes as there are waits."""
    ends = [(c, "collective", REDUCE) for c in range(len(waits))]
    return made.communicate(ends, "reduce", "gradients", size, over(link, size), waits)


def ends_of(made):
    return [end for _, _, end in spans(made)]


def test_compute_slows_while_a_transfer_of_its_rank_is_under_way():
    made = slowed(0.25, 0, links=[1.0])
    wait = made.communicate([(0, "fetch", "fetch")], "w", "inputs", 2.0, over(0, 2.0), [[]])
    made.compute(0, "c", "backward", 10.0)
    reduce(made, 4.0, wait)
    # 2 s alone, 4 s that do the work of 3.2 s, 4.8 s alone; the fetch before slows nothing.
    assert spans(made) == [
        ("w", 0, 2),
        ("c", 0, pytest.approx(10.8)),
        ("reduce", 2, 6),
    ]


def test_compute_that_ends_first_is_slowed_to_its_end():
    made = slowed(0.5, 0, links=[1.0])
    wait = made.communicate([(0, "fetch", "fetch")], "w", "inputs", 2.0, over(0, 2.0), [[]])
    made.compute(0, "c", "backward", 4.0)
    made.compute(0, "next", "backward", 2.0)
    reduce(made, 10.0, wait)
    # 2 s alone, then 2 s of work in 3 s; the next one is slowed from its start.
    assert ends_of(made) == [2, 5, 8, 12]


def test_compute_that_outlasts_the_transfer_was_slowed_while_it_lasted():
    made = slowed(0.25, 0, links=[1.0])
    first = made.compute(0, "first", "backward", 1.0)
    made.compute(0, "second", "backward", 3.0)
    made.compute(0, "third", "backward", 3.0)
    reduce(made, 5.0, [first])
    # From 1 s on: 3 s of work in 3.75 s; 1.25 s of the third do 1 s of work, 2 s are left at 6 s.
    assert ends_of(made) == [1, 4.75, 8, 6]


def test_launches_are_not_slowed_and_do_not_stand_for_what_the_gpu_runs():
    made = slowed(0.5, 0, links=[1.0])
    launched = made.launch(0, "l", 2.0)
    made.compute(0, "c", "backward", 4.0)
    made.launch(0, "m", 10.0)
    reduce(made, 4.0, [launched])
    # The kernel is 2 s alone, then does 2 s of work in 3 s; the CPU takes its 12 s.
    assert ends_of(made) == [2, 5, 12, 6]


def test_several_transfers_at_once_slow_no_more_than_one():
    made = slowed(0.25, 0, links=[1.0, 1.0])
    wait = made.communicate([(0, "fetch", "fetch")], "w", "inputs", 2.0, over(0, 2.0), [[]])
    made.compute(0, "c", "backward", 10.0)
    reduce(made, 4.0, wait)
    for stream, size in (("send", 1.0), ("receive", 3.0)):
        made.communicate([(0, stream, "send")], "s", "x", size, over(1, size), [wait])
    assert ends_of(made)[1:3] == [pytest.approx(10.8), 6]


def test_a_transfer_that_follows_at_once_leaves_no_gap():
    made = slowed(0.25, 0, links=[1.0])
    made.compute(0, "c", "backward", 10.0)
    reduce(made, 3.0, [])
    reduce(made, 2.0, [])
    assert ends_of(made) == [pytest.approx(11.0), 3, 5]


def test_the_latency_of_a_transfer_slows_too():
    made = slowed(0.25, 0, links=[1.0])
    made.compute(0, "c", "backward", 10.0)
    ends = [(0, "collective", REDUCE)]
    made.communicate(ends, "reduce", "gradients", 1.0, over(0, 1.0, latency_s=4.0), [[]])
    assert ends_of(made) == [pytest.approx(11.0), 5]


def test_copy_engines_slow_nothing():
    made = slowed(0.25, 0, links=[1.0, 1.0])
    made.compute(0, "c", "backward", 10.0)
    for link, phase in enumerate(("fetch", "store")):
        made.communicate([(0, phase, phase)], "m", "x", 4.0, over(link, 4.0), [[]])
    assert ends_of(made) == [10, 4, 4]


def test_only_the_ranks_that_a_transfer_joins_are_slowed():
    made = slowed(0.5, 0, 1, 2, links=[1.0])
    for c in range(3):
        made.compute(c, "c", "forward", 9.0)
    ends = [(0, "send", "send"), (1, "receive", "recv")]
    made.communicate(ends, "s", "x", 3.0, over(0, 3.0), [[], []])
    assert ends_of(made)[:3] == [10, 10, 9]


def test_ranks_of_unequal_load_are_slowed_from_when_the_slower_one_is_ready():
    made = slowed(0.25, 0, 1, links=[1.0])
    fast = made.compute(0, "a", "backward", 2.0)
    slow = made.compute(1, "a", "backward", 4.0)
    made.compute(0, "b", "backward", 3.0)
    made.compute(1, "b", "backward", 6.0)
    one, two = reduce(made, 2.5, [fast], [slow])
    made.compute(0, "o", "optimizer", 1.0, [one])
    made.compute(1, "o", "optimizer", 1.0, [two])
    # Both are slowed from 4 s to 6.5 s. Rank 0 has 1 s of b left at 4 s: it ends at 5.25 s. Rank 1
    # does 2 s of its b meanwhile and the other 4 s alone, until 10.5 s.
    assert ends_of(made) == [2, 4, 5.25, 10.5, 6.5, 6.5, 7.5, 11.5]


# A data-parallel step: each rank computes pieces one after the other; after some of them a bucket
# is reduced over all ranks, one bucket at a time; the optimizer waits for the last.
TIMES = st.floats(0.0, 8.0)
LAYERS = st.integers(1, 4).flatmap(
    lambda ranks: st.lists(
        st.tuples(st.lists(TIMES, min_size=ranks, max_size=ranks), st.floats(0.0, 4.0)),
        min_size=1,
        max_size=6,
    )
)


def data_parallel(slowdown, layers):
    """`layers` holds (each rank's time, seconds of the bucket after it; 0 for none)."""
    ranks = len(layers[0][0])
    made = slowed(slowdown, *range(ranks), links=[1.0])
    last = [[] for _ in range(ranks)]
    for times, size in layers:
        done = [made.compute(c, "layer", "backward", t) for c, t in enumerate(times)]
        if size:
            last = [[end] for end in reduce(made, size, *([task] for task in done))]
    for c in range(ranks):
        made.compute(c, "step", "optimizer", 1.0, last[c])
    return made


def data_parallel_s(slowdown, layers):
    """The step in closed form.

    A bucket starts when the one before has ended and every rank has done the work before it;
    buckets that have ended cost a rank s / (1 + s) of their time, since it computed all the while.
    """
    lost = slowdown / (1 + slowdown)
    ranks = range(len(layers[0][0]))
    ended = moved = 0.0
    work = [0.0 for _ in ranks]
    for times, size in layers:
        work = [work[c] + times[c] for c in ranks]
        if size:
            ended = max(ended, *(work[c] + lost * moved for c in ranks)) + size
            moved += size
    return max(ended, *(work[c] + lost * moved for c in ranks)) + 1.0


@given(LAYERS, st.floats(0.0, 1.0))
def test_a_data_parallel_step_equals_its_closed_form(layers, slowdown):
    total_s = execute(data_parallel(slowdown, layers)).total_s
    assert total_s == pytest.approx(data_parallel_s(slowdown, layers), rel=1e-9)


@given(LAYERS, st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_more_slowdown_never_shortens_a_data_parallel_step(layers, one, other):
    less, more = sorted((one, other))
    shorter, longer = (execute(data_parallel(s, layers)).total_s for s in (less, more))
    assert shorter <= longer * (1 + 1e-12)


@given(LAYERS)
def test_a_slowdown_of_nothing_changes_nothing(layers):
    plain, nothing = (execute(data_parallel(s, layers)) for s in (0.0, 1e-300))
    assert plain.start_s.tolist() == nothing.start_s.tolist()
    assert plain.end_s.tolist() == nothing.end_s.tolist()


@given(st.lists(st.tuples(TIMES, st.floats(0.0, 4.0)), min_size=1, max_size=6), st.floats(0.0, 1.0))
def test_folded_ranks_are_slowed_as_each_of_them(layers, slowdown):
    folded = execute(data_parallel(slowdown, [([t], size) for t, size in layers]))
    every = execute(data_parallel(slowdown, [([t] * 3, size) for t, size in layers]))
    compute = every.tasks(2, "compute")
    assert every.end_s[compute] == pytest.approx(folded.end_s[folded.tasks(0, "compute")])
    assert every.total_s == pytest.approx(folded.total_s, rel=1e-9)
