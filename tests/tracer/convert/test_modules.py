"""The module of each operator, from ranges in recordings made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tracer.convert import convert
from tracer.convert.kineto import MODULE_RANGE

EVALUATE = "autograd::engine::evaluate_function: "


@pytest.fixture
def ranged(make, changed, linear_step):
    """The step of `linear_step` with ranges around its rows, in both files."""

    def add(ranges):
        rows = [
            make.row(MODULE_RANGE + path, start, length, cat="user_annotation", tid=thread,
                     Record_function_id=number)
            for number, (path, start, length, thread) in enumerate(ranges, 30)
        ]  # fmt: skip
        return changed(lambda events: [*events, *rows])

    return add


def modules(trace):
    return {op.name.removeprefix(EVALUATE): op.module for op in trace.operators}


def test_the_innermost_range_counts_and_backward_follows_forward(ranged, linear_step):
    """aten::linear runs from 100 to 120."""
    ranges = [("h.0", 90, 40, 1), ("h.0.ln", 91, 5, 1), ("h.0.mlp", 98, 24, 1)]
    trace, _ = convert(ranged(ranges), linear_step[1])
    found = {"aten::linear": "h.0.mlp", "MmBackward0": "h.0.mlp", "aten::_foreach_add_": ""}
    assert modules(trace) == found


def test_a_range_ends_where_the_next_operator_begins(ranged, linear_step):
    trace, _ = convert(ranged([("h.0", 80, 100, 1), ("h.0.ln", 90, 10, 1)]), linear_step[1])
    assert modules(trace)["aten::linear"] == "h.0"


def test_a_range_on_another_thread_says_nothing_of_forward(ranged, linear_step):
    trace, _ = convert(ranged([("h.0", 90, 70, 2)]), linear_step[1])
    assert modules(trace)["aten::linear"] == ""


def test_the_optimizer_has_no_module(ranged, linear_step):
    trace, _ = convert(ranged([("h.0", 0, 300, 1)]), linear_step[1])
    assert modules(trace)["aten::linear"] == "h.0"
    assert modules(trace)["aten::_foreach_add_"] == ""


def test_ranges_change_nothing_else(ranged, linear_step):
    """A range that is missing in the execution trace, as older ones would be, costs nothing."""
    trace, report = convert(ranged([("h.0", 90, 40, 1), ("h.0.mlp", 98, 24, 1)]), linear_step[1])
    plain, before = convert(*linear_step)
    assert [replace(op, module="") for op in trace.operators] == list(plain.operators)
    assert trace.warnings == plain.warnings
    assert report.file == replace(before.file, events=before.file.events + 2)
    assert (report.joined, report.join_rows) == (before.joined, before.join_rows)
    assert report.unmatched == before.unmatched


def test_what_a_module_launches_outside_operators_is_lost_as_before(make):
    """A range is no operator, other annotations are one for the kernels that they launch."""
    events = [make.row("ProfilerStep#1", 0, 100, cat="user_annotation"), make.row("aten::mm", 5, 5),
              make.kernel(1, 6, 20, 40), make.kernel(2, 62, 70, 10)]  # fmt: skip
    inside = make.row(MODULE_RANGE + "h.0", 60, 10, cat="user_annotation")
    trace, report = convert(make.profile(*events, inside))
    assert [op.name for op in trace.operators] == ["aten::mm"]
    assert report.unmatched == {"kernels launched outside any operator": 1}


def test_what_runs_again_in_backward_has_its_own_ranges(make):
    """Re-entrant checkpointing: relu has no number of its own, mm's backward belongs to mm."""
    again = EVALUATE + "CheckpointFunctionBackward"
    range_of = {"cat": "user_annotation"}
    trace, _ = convert(
        make.profile(
            make.row(MODULE_RANGE + "h.1", 10, 20, **range_of),
            make.row("CheckpointFunction", 12, 10, Sequence_number=1),
            make.row("aten::relu", 13, 5),
            make.row(again, 100, 90, Sequence_number=1, Fwd_thread_id=1),
            make.row("CheckpointFunctionBackward", 101, 88, Sequence_number=1, Fwd_thread_id=1),
            make.row(MODULE_RANGE + "h.1.act", 110, 20, **range_of),
            make.row("aten::relu", 112, 5),
            make.row(EVALUATE + "ReluBackward0", 140, 20, Sequence_number=0, Fwd_thread_id=1),
            make.row("ReluBackward0", 141, 18, Sequence_number=0, Fwd_thread_id=1),
        )
    )
    found = [(op.name.removeprefix(EVALUATE), op.phase, op.module) for op in trace.operators]
    assert found[:2] == [("aten::relu", "forward", "h.1"), ("aten::relu", "backward", "h.1.act")]


def test_what_was_compiled_has_the_module_of_its_function(make):
    """Its backward runs inside one function of autograd, whose number forward gave out."""
    trace, _ = convert(
        make.profile(
            make.row(MODULE_RANGE + "h.2", 10, 30, cat="user_annotation"),
            make.row("CompiledFunction", 12, 20, Sequence_number=4),
            make.row("aten::addmm", 13, 5),
            make.row(EVALUATE + "CompiledFunctionBackward", 100, 50, Sequence_number=4,
                     Fwd_thread_id=1),
            make.row("CompiledFunctionBackward", 101, 48, Sequence_number=4, Fwd_thread_id=1),
            make.row("aten::mm", 110, 20),
        )
    )  # fmt: skip
    found = [(op.name, op.phase, op.module) for op in trace.operators]
    assert found == [("aten::addmm", "forward", "h.2"), ("aten::mm", "backward", "h.2")]


def test_stack_rows_of_other_profilers_name_no_module(make, changed, linear_step):
    """`with_stack=True` writes nn.Module rows, whose names are classes and no paths."""
    stack = make.row("nn.Module: Linear_0", 95, 30, cat="python_function")
    trace, _ = convert(changed(lambda events: [stack, *events]), linear_step[1])
    assert {op.module for op in trace.operators} == {""}
