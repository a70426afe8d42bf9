"""What-ifs against closed forms, and against scenarios that mean the same."""

from __future__ import annotations

from dataclasses import replace

import pytest

import triosim as ts
from tests.explain.conftest import training
from triosim import Scenario
from triosim.engine.program import RankClass
from triosim.explain import explain
from triosim.explain.changed import ALL_COMPUTE, ALL_MOVES, SLOW_GPUS, changed
from triosim.explain.whatif import CIRCUITS, kinds_in, step_ms


def test_without_a_change_the_step_is_what_it_was(result):
    for kind in kinds_in(result):
        assert step_ms(result, kind, 1.0) == pytest.approx(result.total_ms, rel=1e-9)


def test_every_kind_of_the_critical_path_can_be_made_cheaper(result):
    kinds = {*kinds_in(result), "imbalance", "idle", "bubble"}
    assert explain(result).critical_totals.keys() <= kinds


def test_a_kind_gives_at_most_what_it_has_on_the_path_where_nothing_else_moves(result_of):
    """Standard data parallel is a sum: compute, one all-reduce, the optimizer."""
    result = result_of("standard")
    totals = explain(result).critical_totals
    assert sum(totals.values()) == pytest.approx(result.total_ms)
    for row in explain(result).what_if():
        if row.kind in totals:
            assert row.free_ms == pytest.approx(result.total_ms - totals[row.kind])
            assert row.twice_as_fast_ms == pytest.approx(result.total_ms - totals[row.kind] / 2)


def test_rows_are_sorted_by_what_is_gained_and_share_the_base(result_of):
    rows = explain(result_of("distributed")).what_if()
    assert [row.free_ms for row in rows] == sorted(row.free_ms for row in rows)
    assert {row.base_ms for row in rows} == {result_of("distributed").total_ms}


@pytest.mark.parametrize("case", [1, 2, 3])
def test_all_reduces_twice_as_fast_are_links_twice_as_fast(case):
    base = Scenario(case=case, gpus=4, latency_us=10, ptp_bandwidth_gb_per_s=20)
    faster = replace(base, latency_us=5, ptp_bandwidth_gb_per_s=40)
    result = ts.simulate(base)
    (kind,) = (k for k in kinds_in(result) if k.startswith("all-reduce"))
    assert step_ms(result, kind, 0.5) == pytest.approx(ts.simulate(faster).total_ms, rel=1e-9)


def test_transfers_of_a_pipeline_twice_as_fast_are_links_twice_as_fast(result_of):
    scenario = result_of("pipeline").scenario
    faster = replace(scenario, ptp_bandwidth_gb_per_s=2 * scenario.ptp_bandwidth_gb_per_s)
    assert step_ms(result_of("pipeline"), ALL_MOVES, 0.5) == pytest.approx(
        ts.simulate(faster).total_ms, rel=1e-9
    )


def test_computing_twice_as_fast_is_gpus_twice_as_fast(result_of):
    result = result_of("distributed")
    fast = replace(result.scenario, rank_speed=dict.fromkeys(range(8), 2.0))
    expected = ts.simulate(fast).total_ms
    assert step_ms(result, ALL_COMPUTE, 0.5) == pytest.approx(expected, rel=1e-9)


def test_remote_memory_twice_as_fast(result_of):
    result = result_of("distributed")
    faster = replace(result.scenario, bandwidth_gb_per_s=2 * result.scenario.bandwidth_gb_per_s)
    assert step_ms(result, "fetch", 0.5) == pytest.approx(ts.simulate(faster).total_ms, rel=1e-9)


def test_circuits_twice_as_fast(result_of):
    result = result_of("circuits")
    for factor in (0.0, 0.5):
        other = replace(result.scenario, circuit_setup_ms=factor)
        expected = ts.simulate(other).total_ms
        assert step_ms(result, CIRCUITS, factor) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", ["straggler", "tensor", "slow rank"])
def test_slow_gpus_at_full_speed(result_of, name):
    result = result_of(name)
    even = replace(result.scenario, rank_speed=None)
    assert step_ms(result, SLOW_GPUS, 0.0) == pytest.approx(ts.run(even).total_ms, rel=1e-9)
    # Half as slow: what it takes beyond full speed is half of that.
    half = {rank: 1 / (1 + (1 / speed - 1) / 2) for rank, speed in result.scenario.speeds.items()}
    expected = ts.run(replace(result.scenario, rank_speed=half)).total_ms
    assert step_ms(result, SLOW_GPUS, 0.5) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", ["launch-bound", "sharded", "stages"])
def test_free_launches_of_a_training_step_are_launches_of_0_us(name):
    names = ("launch_us", "compiled_launch_us", "collective_us", "graph_us")
    without = replace(training(name), constants=dict.fromkeys(names, 0.0))
    result = ts.train(training(name))
    assert step_ms(result, "launch", 0.0) == pytest.approx(ts.train(without).step_ms, rel=1e-9)


def test_a_free_slowdown_is_a_stack_without_one():
    without = replace(training("sharded"), constants={"overlap_slowdown": 0.0})
    result = ts.train(training("sharded"))
    assert result.breakdowns[0].compute_s["slowdown"] > 0
    assert step_ms(result, "slowdown", 0.0) == pytest.approx(ts.train(without).step_ms, rel=1e-9)


def test_kernels_that_get_faster_wait_for_their_launches(result_of):
    """The passes are simulated again: where launches decide, free kernels gain next to nothing."""
    result = result_of("launch-bound")
    computing = result.breakdown["compute"]
    free = step_ms(result, ALL_COMPUTE, 0.0)
    assert free > result.total_ms - 0.9 * computing


def test_a_change_leaves_the_program_it_came_from_alone(small):
    made = small(RankClass(members=(0,)))
    a = made.program.compute(0, "a", "forward", 2.0)
    made.move("m", [(0, "c", "all-reduce")], 4.0, [[a]], latency_s=1.0)
    lighter = changed(made.program, "all-reduce: gradients", 0.5)
    assert (lighter.loads[0].latency_s, lighter.loads[0].bytes_by_link) == (0.5, ((0, 2.0),))
    assert (made.program.loads[0].latency_s, list(lighter.duration_s)) == (1.0, [2.0, 0.0])
    free = changed(made.program, "forward", 0.0)
    assert (list(free.duration_s), list(made.program.duration_s)) == ([0.0, 0.0], [2.0, 0.0])
