"""Why a transfer takes its time, against sums by hand on links of 1 byte/s."""

from __future__ import annotations

import pytest

from triosim.engine.executor import execute
from triosim.engine.program import RankClass
from triosim.explain import explain
from triosim.explain.transfers import Transfers
from triosim.explain.why import move_words


@pytest.fixture
def shared_link(small):
    """Two transfers on one link: alone until 1 s, at half speed until 3 s, then the other alone."""
    made = small(RankClass(members=(0,)), RankClass(members=(1,)))
    wait = made.program.compute(1, "w", "forward", 1.0)
    (one,) = made.move("one", [(0, "a", "all-reduce")], 2.0, [[]])
    (two,) = made.move("two", [(1, "b", "all-reduce")], 2.0, [[wait]])
    return execute(made.program), one, two


def test_who_filled_a_link_and_what_that_cost(shared_link):
    timeline, one, two = shared_link
    assert (timeline.end_s[one], timeline.end_s[two]) == (3.0, 4.0)
    first, second = (Transfers(timeline).move(task) for task in (one, two))
    for move in (first, second):
        assert (move.latency_s, move.bytes_s, move.delay_s) == (0.0, 2.0, 1.0)
        assert move.link is not None
        assert (move.link.name, move.link.own_bytes, move.link.full_s) == ("link 0", 2.0, 3.0)
        assert move.link.other_bytes == pytest.approx(1.0)
    (beside,) = first.link.sharers
    assert (beside.task, beside.overlap_s, beside.bytes) == (two, 2.0, 2.0)
    said = " ".join(move_words(timeline, first, 0))
    assert "2 s for its bytes on links of its own + 1 s because it shared links" in said
    assert "33.3 % of what the link carried meanwhile belonged to two on GPU 1" in said


def test_a_link_of_ones_own_has_no_sharers(small):
    made = small(RankClass(members=(0,)), links=(1.0, 4.0))
    (task,) = made.move("m", [(0, "a", "all-reduce")], 8.0, [[]], latency_s=0.5, link=1)
    move = Transfers(execute(made.program)).move(task)
    assert (move.latency_s, move.bytes_s, move.delay_s) == (0.5, 2.0, 0.0)
    assert move.link is not None
    assert move.link.sharers == ()
    assert move.link.full_s == 2.0  # not in its latency


def test_the_parts_of_every_transfer_are_its_time(result):
    found, timeline = explain(result), result.tasks
    for ends in timeline.program.ends[:200]:
        span = found.of(ends[0])
        assert span.move is not None
        parts = span.move.latency_s + span.move.bytes_s + span.move.delay_s
        took = span.end_s - span.start_s
        assert parts == pytest.approx(took, rel=1e-9, abs=1e-12 * timeline.total_s)
        if span.move.link is not None:
            assert span.move.link.full_s <= took * (1 + 1e-9)


def test_circuits_that_are_set_up_are_named(result_of):
    result = result_of("circuits")
    found = explain(result)
    (ends,) = (e for e in result.tasks.program.ends if len(e) == 1 and
               result.tasks.program.phase[e[0]] == "all-reduce")  # fmt: skip
    span = found.of(ends[0])
    assert span.move is not None
    assert span.move.circuits
    assert span.move.delay_s == pytest.approx(1e-3)  # circuit_setup_ms
    assert "1 ms for circuits that had to be set up" in " ".join(span.lines)


def test_a_machines_transfer_says_what_carried_it(result_of):
    result = result_of("machine")
    program = result.tasks.program
    task = next(t for t in range(len(program)) if program.phase[t] == "all-reduce")
    move = explain(result).of(task).move
    load = program.loads[program.transfer[task]]
    assert (move.algorithm, move.protocol) == (load.algorithm, load.protocol)
    assert f"by {load.algorithm} with protocol" in " ".join(explain(result).of(task).lines)
