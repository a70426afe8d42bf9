"""The critical path is one chain without a break, and as long as the step."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import triosim as ts
from triosim import Scenario
from triosim.engine.executor import execute
from triosim.engine.program import Part, RankClass
from triosim.explain import explain
from triosim.explain.path import critical_path, totals_s
from triosim.scenario import SAMPLE_TRACES


def check(result):
    found = explain(result)
    path = found.critical_path
    assert all(a.end_s == b.start_s for a, b in pairwise(path))
    for step in path:
        assert sum(step.kinds_s.values()) == pytest.approx(step.seconds, rel=1e-9, abs=1e-15)
    assert sum(step.seconds for step in path) * 1e3 == pytest.approx(result.total_ms, rel=1e-12)
    assert sum(found.critical_totals.values()) == pytest.approx(result.total_ms, rel=1e-9)
    return path


def test_the_path_is_as_long_as_the_step(result):
    path = check(result)
    timeline = result.tasks
    # Each but the first begins when the one it waits for ends, and is what the engine says it is.
    for before, step in pairwise(path):
        assert timeline.critical[step.task] == before.task
        assert (step.start_s, step.end_s) == (
            timeline.start_s[step.task],
            timeline.end_s[step.task],
        )


def test_it_begins_with_the_step_unless_steps_overlap(result):
    path = explain(result).critical_path
    if result.total_ms == pytest.approx(result.tasks.total_s * 1e3, rel=1e-12):
        assert (path[0].start_s, path[-1].end_s) == (0.0, result.tasks.total_s)
    else:
        length_s = path[-1].end_s - path[0].start_s
        assert length_s == pytest.approx(result.total_ms * 1e-3, rel=1e-12)


def test_some_steps_do_overlap(result_of):
    result = result_of("overlapping steps")
    assert result.step_s < result.tasks.total_s
    check(result)


@settings(max_examples=40)
@given(
    case=st.integers(0, 4),
    gpus=st.integers(1, 5),
    speed=st.sampled_from([0.5, 1.0, 2.0]),
    slowdown=st.sampled_from([0.0, 0.3]),
    latency_us=st.sampled_from([0.0, 20.0]),
    bucket_mb=st.sampled_from([0.01, 25.0]),
)
def test_the_path_of_random_steps_is_as_long_as_they_are(
    case, gpus, speed, slowdown, latency_us, bucket_mb
):
    check(
        ts.simulate(
            Scenario(
                trace_dir=str(SAMPLE_TRACES / "mlp"),
                case=case,
                gpus=gpus,
                rank_speed={0: speed},
                overlap_slowdown=slowdown,
                latency_us=latency_us,
                bucket_mb=bucket_mb,
            )
        )
    )


def test_the_path_by_hand(small):
    """Rank 1 is slow, so that the path goes through it and through the transfer."""
    made = small(RankClass(members=(0,)), RankClass(members=(1,)))
    a = made.program.compute(0, "a", "backward", 2.0)
    b = made.program.compute(1, "b", "backward", 5.0)
    ends = [(c, "collective", "all-reduce") for c in (0, 1)]
    one, two = made.move("sum", ends, 3.0, [[a], [b]])
    made.program.compute(0, "o0", "optimizer", 1.0, [one])
    made.program.compute(1, "o1", "optimizer", 1.5, [two])
    path = critical_path(execute(made.program))
    assert [(step.name, step.rank, step.start_s, step.end_s) for step in path] == [
        ("b", 1, 0.0, 5.0),
        ("sum", 1, 5.0, 8.0),
        ("o1", 1, 8.0, 9.5),
    ]
    assert totals_s(path) == {"backward": 5.0, "all-reduce: gradients": 3.0, "optimizer": 1.5}


def test_what_a_composite_task_is_made_of_counts_by_kind(small):
    made = small(RankClass(members=(0,)))
    parts = [
        Part("compute", ("forward", ""), 2.0),
        Part("exposed_communication", ("all-reduce", "tensor parallel"), 1.0),
        Part("launch_wait", ("", ""), 0.5),
    ]
    made.program.compose(0, "layer", "forward", parts)
    path = critical_path(execute(made.program), begin_s=1.75)
    # The half of it that lies after the begin counts by half.
    assert totals_s(path) == {
        "forward": 1.0, "all-reduce: tensor parallel": 0.5, "launch": 0.25,
    }  # fmt: skip


def test_time_that_is_there_only_beside_communication_is_the_slowdowns(small):
    made = small(RankClass(members=(0,)))
    made.program.overlap_slowdown = 0.5
    made.program.compute(0, "a", "forward", 4.0)
    made.move("m", [(0, "collective", "all-reduce")], 3.0, [[]])
    # 2 s of work in the 3 s of the transfer, then 2 s alone.
    path = critical_path(execute(made.program))
    assert totals_s(path) == pytest.approx({"forward": 4.0, "slowdown": 1.0})
