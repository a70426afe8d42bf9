"""Composite tasks and launches in the breakdown."""

from __future__ import annotations

import pytest

from triosim.analysis.breakdown import break_down
from triosim.engine.executor import execute
from triosim.engine.program import Part, Program, RankClass
from triosim.network.links import Load


def one_rank(**settings):
    program = Program(**settings)
    return program, program.add_class(RankClass(members=(0,)))


def test_a_composite_task_brings_its_parts():
    program, c = one_rank()
    program.compute(c, "plain", "forward", 1.0)
    parts = (
        Part("compute", ("forward", ""), 2.0),
        Part("compute", ("recompute", ""), 0.5),
        Part("launch_wait", ("", ""), 0.25),
        Part("exposed_communication", ("all-reduce", "tensor parallel"), 0.75),
    )
    program.compose(c, "layer", "backward", parts)
    timeline = execute(program)
    found = break_down(timeline, c)
    assert timeline.total_s == 4.5
    assert found.classes_s == pytest.approx(
        {
            "compute": 3.5, "launch_wait": 0.25, "exposed_communication": 0.75, "bubble": 0,
            "imbalance": 0, "idle": 0,
        }
    )  # fmt: skip
    assert found.compute_s == {"forward": 3.0, "backward": 0.0, "optimizer": 0.0, "recompute": 0.5}
    assert found.exposed_s == {("all-reduce", "tensor parallel"): 0.75}


def test_a_composite_task_is_slowed_as_a_whole():
    program, c = one_rank(overlap_slowdown=0.5)
    load = Load(bytes_by_link=(), latency_s=3.0, sent_bytes=0.0)
    program.communicate([(c, "gather", "all-gather")], "gather", "x", 1.0, load, [()])
    program.compose(c, "layer", "forward", (Part("compute", ("forward", ""), 4.0),))
    found = break_down(execute(program), c)
    # Three seconds beside the transfer do the work of two; two more are left.
    assert found.compute_s["slowdown"] == pytest.approx(1.0)
    assert found.classes_s["compute"] == pytest.approx(5.0)


def test_a_kernel_that_has_not_been_launched_waits_for_it():
    """Launches take 2 s each, the first kernel 1 s: it starts at 2, the second one at 4."""
    program, c = one_rank()
    for name in ("a", "b"):
        launched = program.launch(c, name, 2.0)
        program.compute(c, name, "forward", 1.0, [launched])
    timeline = execute(program)
    found = break_down(timeline, c)
    assert timeline.total_s == 5.0
    assert found.classes_s["launch_wait"] == pytest.approx(3.0)
    assert sum(found.classes_s.values()) == pytest.approx(5.0)


def test_what_waits_for_a_transfer_is_not_waiting_for_its_launch():
    """The kernel is launched at 2 while its input arrives at 1.5: half a second of launch wait."""
    program, c = one_rank()
    load = Load(bytes_by_link=(), latency_s=1.5, sent_bytes=0.0)
    [arrived] = program.communicate([(c, "s", "all-gather")], "input", "x", 1.0, load, [()])
    launched = program.launch(c, "kernel", 2.0)
    program.compute(c, "kernel", "forward", 1.0, [launched, arrived])
    found = break_down(execute(program), c)
    assert found.classes_s["launch_wait"] == pytest.approx(0.5)
    assert found.classes_s["exposed_communication"] == pytest.approx(1.5)


def test_waiting_for_the_same_stage_is_imbalance_and_for_another_one_a_bubble():
    program = Program()
    classes = [
        program.add_class(RankClass(members=(rank,), stage=stage))
        for rank, stage in ((0, 0), (1, 0), (2, 1))
    ]
    slow = program.compute(classes[1], "slow", "forward", 2.0)
    program.compute(classes[0], "peer", "forward", 1.0, [slow])
    program.compute(classes[2], "next", "forward", 1.0, [slow])
    timeline = execute(program)
    assert break_down(timeline, classes[0]).classes_s["imbalance"] == 2.0
    assert break_down(timeline, classes[2]).classes_s["bubble"] == 2.0
