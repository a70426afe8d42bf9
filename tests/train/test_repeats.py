"""Micro-batches that are written once and run once give the step of all of them."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.train.test_properties import legal, scenarios
from triosim.engine.executor import execute
from triosim.engine.program import Program
from triosim.train.rows import runs
from triosim.train.step import StepWriter


@given(scenarios(), st.sampled_from((3, 4, 5, 9)), st.booleans())
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_written_once_or_one_by_one(scenario, times, offload):
    many = replace(scenario, global_batch=scenario.global_batch * times, offload=offload)
    plan = legal(many)
    if plan is None:
        return
    short, full = (StepWriter(plan, repeat=repeat) for repeat in (True, False))
    one, other = short.write(), full.write()
    for field in fields(Program):
        if field.name not in ("links", "loads", "provenance_s"):
            assert getattr(one, field.name) == getattr(other, field.name), field.name
    assert one.provenance_s == pytest.approx(other.provenance_s, rel=1e-12)
    assert [load.bytes_by_link for load in one.loads] == [
        load.bytes_by_link for load in other.loads
    ]
    assert {t: (m.group.name, m.kind) for t, m in short.made.items()} == {
        t: (m.group.name, m.kind) for t, m in full.made.items()
    }
    for stage in range(plan.stages):
        sums = [sum(n for _, n in writer.composites(stage)) for writer in (short, full)]
        assert sums[0] == sums[1]
    assert short.forward_passes() == full.forward_passes()


@given(scenarios(), st.sampled_from((4, 8)))
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_run_once_or_one_by_one(scenario, times):
    plan = legal(replace(scenario, global_batch=scenario.global_batch * times))
    if plan is None:
        return
    program = StepWriter(plan).write()
    quick, whole = execute(program), execute(program, repeat=False)
    total = whole.total_s
    assert np.abs(quick.start_s - whole.start_s).max() <= 1e-9 * total
    assert np.abs(quick.end_s - whole.end_s).max() <= 1e-9 * total
    assert quick.carried_bytes == pytest.approx(whole.carried_bytes, rel=1e-9)


def test_accumulated_micro_batches_cost_little(step):
    few, many = (step(gpus=8, global_batch=8 * count, machine="dgx-h100") for count in (32, 512))
    assert many.tasks.events == few.tasks.events
    assert len(many.tasks.program) > 15 * len(few.tasks.program)
    assert (many.step_s - few.step_s) / few.step_s == pytest.approx(480 / 32, rel=0.05)


@pytest.mark.parametrize("schedule", ["1f1b", "gpipe", "interleaved", "zb-h1", "zb-v", "dualpipe"])
def test_runs_are_the_whole_row(step, schedule):
    chunks = 2 if schedule == "interleaved" else 1
    plan = step(gpus=4, pp=4, global_batch=32, layers=16, schedule=schedule, chunks=chunks).plan
    for row in plan.schedule.rows:
        reached = 0
        for run in runs(row):
            assert run.start == reached
            reached += run.period * run.times
            for i in range(run.start + run.period, reached):
                one, other = row[i - run.period], row[i]
                assert (one.kind, one.chunk) == (other.kind, other.chunk)
                assert other.microbatch - one.microbatch == run.later
        assert reached == len(row)


class Counting(StepWriter):
    """Counts the cells that are written one by one."""

    cells = 0

    def _write_cell(self, *args):
        self.cells += 1
        super()._write_cell(*args)


@pytest.mark.parametrize(
    "schedule", ["1f1b", "gpipe", "interleaved", "looped-bfs", "zb-h1", "zb-v", "dualpipe"]
)
def test_the_cells_of_a_pipeline_are_written_once_for_each_sort(step, schedule):
    """One more for each than it takes to see that a second one is like the first, and the ends."""
    written = []
    for batch in (32, 128):
        chunks = 2 if schedule in ("interleaved", "looped-bfs") else 1
        settings = {"gpus": 8, "pp": 4, "layers": 16, "schedule": schedule, "chunks": chunks}
        writer = Counting(step(**settings, global_batch=2 * batch).plan)
        writer.write()
        written.append(writer.cells)
        sorts = sum(len(row.kinds) for row in writer.plan.schedule.columns)
        chunks_held = sum(len(row.first) for row in writer.plan.schedule.columns)
        assert writer.cells <= 3 * sorts + 2 * chunks_held
    assert written[0] == written[1]


def test_prefill_repeats_as_well(step):
    result = step(gpus=2, tp=2, global_batch=12, prefill=True)
    assert result.writer.forward_passes() == 12
    names = [name for name in result.tasks.program.name if "forward" in name]
    assert [name.split()[-1] for name in names] == [str(k) for k in range(12)]
