"""Every instant of a step belongs to one class; programs small enough to know each by hand."""

import numpy as np
import pytest

from triosim.analysis.breakdown import Gap, Gaps, break_down
from triosim.analysis.communication import summarise_communication
from triosim.analysis.memory import memory_curves
from triosim.engine.executor import execute
from triosim.engine.program import Program, RankClass
from triosim.network.links import Link, Load


def program(*classes, links=(1.0,)):
    made = Program(
        links=[Link(name=str(i), bytes_per_s=b, source=0, target=1) for i, b in enumerate(links)]
    )
    for rank_class in classes:
        made.add_class(rank_class)
    return made


def rank(number, stage=None):
    return RankClass(members=(number,), stage=stage)


def move(made, ends, size, waits, purpose="gradients", latency_s=0.0, link=0):
    load = Load(bytes_by_link=((link, size),), latency_s=latency_s, sent_bytes=size)
    return made.communicate(ends, "move", purpose, size, load, waits)


def classes(made, number):
    found = break_down(execute(made), number).classes_s
    return {kind: seconds for kind, seconds in found.items() if seconds}


def test_waiting_for_a_transfer_is_exposed_communication_latency_included():
    made = program(rank(0))
    a = made.compute(0, "a", "backward", 2.0)
    (move_,) = move(made, [(0, "collective", "all-reduce")], 3.0, [[a]], latency_s=1.0)
    made.compute(0, "b", "optimizer", 1.0, [move_])
    assert classes(made, 0) == {"compute": 3.0, "exposed_communication": 4.0}
    assert break_down(execute(made), 0).exposed_s == {("all-reduce", "gradients"): 4.0}


def test_a_queue_of_transfers_is_exposed_too():
    made = program(rank(0))
    a = made.compute(0, "a", "backward", 2.0)
    move(made, [(0, "collective", "all-reduce")], 3.0, [[a]], purpose="first")
    (last,) = move(made, [(0, "collective", "all-reduce")], 1.0, [[a]], purpose="second")
    made.compute(0, "b", "optimizer", 1.0, [last])
    assert break_down(execute(made), 0).exposed_s == {
        ("all-reduce", "first"): 3.0,
        ("all-reduce", "second"): 1.0,
    }


def test_waiting_for_a_slower_peer_is_imbalance():
    made = program(rank(0), rank(1))
    a = made.compute(0, "a", "backward", 2.0)
    b = made.compute(1, "a", "backward", 5.0)
    ends = [(0, "collective", "all-reduce"), (1, "collective", "all-reduce")]
    one, two = move(made, ends, 3.0, [[a], [b]])
    made.compute(0, "o", "optimizer", 1.0, [one])
    made.compute(1, "o", "optimizer", 1.0, [two])
    assert classes(made, 0) == {"compute": 3.0, "exposed_communication": 3.0, "imbalance": 3.0}
    assert classes(made, 1) == {"compute": 6.0, "exposed_communication": 3.0}


def test_waiting_for_another_stage_is_a_bubble_and_its_transfer_is_exposed():
    made = program(rank(0, stage=0), rank(1, stage=1), links=(1.0, 1.0))
    forward = made.compute(0, "f", "forward", 2.0)
    _, there = move(
        made, [(0, "send to next", "send"), (1, "receive", "recv")], 1.0, [[forward], []]
    )
    turn = made.compute(1, "f and b", "backward", 4.0, [there])
    _, back = move(
        made, [(1, "send", "send"), (0, "receive from next", "recv")], 0.5, [[turn], []], link=1
    )
    made.compute(0, "b", "backward", 1.0, [back])
    # Rank 0 waits 0.5 s for the gradient that moves; before that, for stage 1 through any chain.
    assert classes(made, 0) == {"compute": 3.0, "exposed_communication": 0.5, "bubble": 5.0}
    # Rank 1: two seconds of stage 0's work, one of the transfer; 1.5 s with nothing left at the
    # end, of which its own send takes half a second.
    assert classes(made, 1) == {
        "compute": 4.0,
        "bubble": 2.0,
        "exposed_communication": 1.5,
        "idle": 1.0,
    }


def test_a_rank_that_ends_early_is_idle():
    made = program(rank(0), rank(1))
    made.compute(0, "a", "forward", 1.0)
    made.compute(1, "a", "forward", 3.0)
    assert classes(made, 0) == {"compute": 1.0, "idle": 2.0}


def test_slowed_compute_keeps_the_phases_own_time_and_shows_the_rest():
    made = program(rank(0), rank(1))
    made.overlap_slowdown = 0.25
    first = [made.compute(c, "a", "forward", 2.0 + c) for c in range(2)]
    for c in range(2):
        made.compute(c, "b", "backward", 6.0)
    ends = [(0, "collective", "all-reduce"), (1, "collective", "all-reduce")]
    reduced = move(made, ends, 5.0, [[task] for task in first])
    for c in range(2):
        made.compute(c, "o", "optimizer", 1.0, [reduced[c]])
    # From 3 s to 8 s both do 4 s of work; rank 0 had done 1 s of b before.
    timeline = execute(made)
    for c, end_s in ((0, 10.0), (1, 11.0)):
        found = break_down(timeline, c)
        assert found.compute_s == pytest.approx(
            {"forward": 2.0 + c, "backward": 6.0, "optimizer": 1.0, "slowdown": 1.0}
        )
        assert found.classes_s["compute"] == pytest.approx(end_s)
        assert sum(found.classes_s.values()) == pytest.approx(timeline.total_s, rel=1e-12)
    assert classes(made, 0) == pytest.approx({"compute": 10.0, "idle": 1.0})


def test_compute_that_nothing_overlaps_has_no_slowdown_not_even_a_rounding_error():
    made = program(rank(0))
    made.overlap_slowdown = 0.25
    for _ in range(100):
        made.compute(0, "a", "forward", 0.1)  # not a binary fraction, so clock readings round
    last = made.compute(0, "b", "backward", 0.1)
    move(made, [(0, "collective", "all-reduce")], 1.0, [[last]])
    assert break_down(execute(made), 0).compute_s["slowdown"] == 0


def test_without_a_slowdown_compute_has_only_phases():
    made = program(rank(0))
    made.compute(0, "a", "forward", 2.0)
    move(made, [(0, "collective", "all-reduce")], 1.0, [[]])
    assert break_down(execute(made), 0).compute_s == {
        "forward": 2.0,
        "backward": 0.0,
        "optimizer": 0.0,
    }


def test_communication_is_summed_over_ranks_and_its_times_are_means():
    made = program(RankClass(members=(0, 1, 2)), rank(3))
    a = made.compute(0, "a", "backward", 2.0)
    b = made.compute(1, "a", "backward", 2.0)
    ends = [(0, "collective", "all-reduce"), (1, "collective", "all-reduce")]
    one, _ = move(made, ends, 4.0, [[a], [b]])
    made.compute(0, "o", "optimizer", 1.0, [one])
    timeline = execute(made)
    (row,) = summarise_communication(timeline, [break_down(timeline, c) for c in range(2)])
    assert (row.kind, row.purpose, row.transfers) == ("all-reduce", "gradients", 1)
    assert row.bytes == 4 * 4.0
    assert row.busy_s == pytest.approx(4.0)
    assert row.exposed_s == pytest.approx(4.0)


def test_memory_follows_the_order_of_events_at_one_instant():
    made = program(rank(0))
    made.resident[0].append(("parameters", 100))
    a = made.compute(0, "a", "forward", 1.0)
    b = made.compute(0, "b", "forward", 0.0)
    c = made.compute(0, "c", "forward", 1.0)
    made.allocate(a, "activations", 10)
    made.free(b, "activations", 10)
    made.allocate(c, "activations", 7)
    made.free(c, "activations", 7)
    (curve,) = memory_curves(execute(made))
    assert curve.total_bytes.tolist() == [100, 110, 100, 107, 100]
    assert curve.time_s.tolist() == [0, 0, 1, 1, 2]
    assert (curve.peak_bytes, curve.peak_time_s) == (110, 0)


def test_gaps_in_columns_are_a_sequence_of_gaps():
    early, late, end = (
        Gap(0.0, 1.0, "bubble", 3, 4),
        Gap(2.0, 2.5, "exposed_communication", 5, 6),
        Gap(4.0, 9.0, "idle", -1, -1),
    )
    gaps = Gaps.joined([Gaps.of([late, early]), Gaps.of([end])], np.array([1, 0, 2]))
    assert list(gaps) == [early, late, end]
    assert (len(gaps), gaps[0], gaps[-1], gaps[1:]) == (3, early, end, [late, end])
    assert gaps.seconds.tolist() == [1.0, 0.5, 5.0]
    assert list(Gaps.of([])) == []
