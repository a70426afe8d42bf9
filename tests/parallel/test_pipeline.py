"""Pipeline schedules: golden totals, uneven stages against an independent recurrence, memory."""

import itertools
import random
from dataclasses import replace

import pytest

from triosim import ConfigError
from triosim.parallel.schedules import SCHEDULES
from triosim.parallel.stages import cut_stages, smallest_maximum

FREE = {"ptp_bandwidth_gb_per_s": 1e9, "resident": True}


def uniform(make_trace, stages, microbatches):
    """F = 1 ms and B = 2 ms for one stage and micro-batch of one sample."""
    return make_trace(
        [1000.0 * microbatches] * stages, [2000.0 * microbatches] * stages, batch_size=microbatches
    )


def in_flight(result, stage):
    """The most micro-batches that have been forward but not backward on a stage."""
    rows = result.timeline.query("rank == @stage and stream == 'compute'")
    level = highest = 0
    for phase in rows["phase"]:
        level += 1 if phase == "forward" else -1
        highest = max(highest, level)
    return highest


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
@pytest.mark.parametrize(
    ("stages", "microbatches", "makespan"),
    [(4, 8, 33), (4, 4, 21), (8, 8, 45), (8, 20, 81), (1, 4, 12), (4, 2, 15)],
)
def test_makespan(make_trace, simulate_trace, schedule, stages, microbatches, makespan):
    result = simulate_trace(
        uniform(make_trace, stages, microbatches),
        case=4,
        gpus=stages,
        micro_batch_size=1,
        schedule=schedule,
        **FREE,
    )
    assert result.total_ms == pytest.approx(makespan, rel=1e-9)
    for stage in range(stages):
        expected = microbatches if schedule == "gpipe" else min(microbatches, stages - stage)
        assert in_flight(result, stage) == expected
    ideal = microbatches * 3
    assert result.compute_ms == pytest.approx(ideal, rel=1e-9)
    lost = result.bubble_ms + result.idle_ms + result.exposed_communication_ms
    assert lost == pytest.approx(makespan - ideal, rel=1e-6, abs=1e-9)
    assert all(check.passed for check in result.checks)


def recurrence(schedule, forward, backward, there, back, microbatches):
    """Makespan by fixed-point iteration over the order lists; transfers queue on their link."""
    stages = len(forward)
    orders = [SCHEDULES[schedule](s, stages, microbatches) for s in range(stages)]
    end = {}
    for _ in range(4 * stages * microbatches + 4):
        before = dict(end)
        links = {}
        for s, phase, step in itertools.product(
            range(stages), ("forward", "backward"), range(microbatches)
        ):
            target = s + 1 if phase == "forward" else s - 1
            if 0 <= target < stages:
                free = links.get((s, phase), 0.0)
                cost = there[s] if phase == "forward" else back[s - 1]
                links[s, phase] = max(free, end.get((s, phase, step), 0.0)) + cost
                end["arrived", target, phase, step] = links[s, phase]
        for s, order in enumerate(orders):
            now = 0.0
            for phase, m in order:
                now = max(now, end.get(("arrived", s, phase, m), 0.0))
                now += forward[s] if phase == "forward" else backward[s]
                end[s, phase, m] = now
        if end == before:
            break
    return max(value for key, value in end.items() if key[0] != "arrived")


@pytest.mark.parametrize("seed", range(12))
def test_uneven_stages_and_transfers_agree_with_a_recurrence(make_trace, simulate_trace, seed):
    rng = random.Random(seed)
    stages, microbatches = rng.randint(2, 5), rng.randint(1, 7)
    schedule = rng.choice(["gpipe", "1f1b"])
    forward = [rng.randint(1, 9) for _ in range(stages)]
    backward = [rng.randint(1, 9) for _ in range(stages)]
    sizes = [rng.randint(1, 5) for _ in range(stages + 1)]
    trace = make_trace(
        [1000.0 * f * microbatches for f in forward],
        [1000.0 * b * microbatches for b in backward],
        activation_bytes=[size * microbatches for size in sizes],
        batch_size=microbatches,
    )
    result = simulate_trace(
        trace,
        case=4,
        gpus=stages,
        micro_batch_size=1,
        schedule=schedule,
        resident=True,
        ptp_bandwidth_gb_per_s=1e-6,  # one byte takes 1 ms
    )
    there = back = [float(size) for size in sizes[1:-1]]
    expected = recurrence(schedule, forward, backward, there, back, microbatches)
    assert result.total_ms == pytest.approx(expected, rel=1e-9)
    slowest = max(f + b for f, b in zip(forward, backward, strict=True))
    assert result.total_ms >= max(microbatches * slowest, sum(forward) + sum(backward))


def test_bytes_of_a_boundary_are_a_micro_batchs(make_trace, simulate_trace):
    trace = make_trace([1.0] * 3, [1.0] * 3, activation_bytes=[8, 80, 40, 8], batch_size=4)
    result = simulate_trace(trace, case=4, gpus=3, micro_batch_size=1, resident=True)
    sends = result.timeline.query("phase == 'send'")
    by_stream = sends.groupby(["rank", "stream"])["bytes"].agg(["count", "sum"])
    assert by_stream.loc[(0, "send to next")].tolist() == [4, 80]
    assert by_stream.loc[(1, "send to next")].tolist() == [4, 40]
    assert by_stream.loc[(2, "send to previous")].tolist() == [4, 40]
    assert result.communication_bytes == 2 * (80 + 40)


def test_a_remainder_is_a_smaller_micro_batch(make_trace, simulate_trace):
    trace = make_trace([7000.0] * 2, [14000.0] * 2, batch_size=7)
    result = simulate_trace(trace, case=4, gpus=2, micro_batch_size=3, schedule="gpipe", **FREE)
    lengths = result.timeline.query("rank == 0 and phase == 'forward'")
    assert (lengths.end_ms - lengths.start_ms).tolist() == pytest.approx([3, 3, 1])
    assert result.compute_ms == pytest.approx(21)


def test_a_skip_connection_crosses_every_cut_between(make_trace):
    trace = make_trace([1.0] * 3, [1.0] * 3, activation_bytes=[1, 10, 100, 1000])
    first, *rest = trace.operators
    skip = type(first)(
        id=9,
        name="add",
        phase="forward",
        time_s=1e-6,
        inputs=(*rest[1].outputs, *first.outputs),
        outputs=rest[1].outputs,
    )
    trace = type(trace)(name="skip", operators=(first, *rest[:2], skip, *rest[2:]), batch_size=1)
    stages = cut_stages(trace, 4, "time")
    assert [stages.sent_bytes(cut, "forward") for cut in range(3)] == [10, 110, 1010]


def test_a_stage_without_backward_still_comes_after_its_forward(make_trace, simulate_trace):
    whole = make_trace([1000.0] * 2, [1000.0] * 2)
    trace = replace(whole, operators=(*whole.operators[:2], whole.operators[3]))
    result = simulate_trace(trace, case=4, gpus=2, **FREE)
    # Both forwards, then the first layer's backward: the last stage has none of its own.
    assert result.total_ms == pytest.approx(3)
    assert all(check.passed for check in result.checks)


@pytest.mark.parametrize("order", ["backward first", "reversed", "one storage"])
@pytest.mark.parametrize("case", range(5))
def test_traces_in_no_sensible_order_keep_every_rule(make_trace, simulate_trace, case, order):
    whole = make_trace(
        [10.0] * 3, [20.0] * 3, parameter_bytes=40, activation_bytes=[16] * 4, optimizer_us=1.0,
        batch_size=2,
    )  # fmt: skip
    operators = list(whole.operators)
    if order == "backward first":
        operators = operators[3:6] + operators[:3] + operators[6:]
    elif order == "reversed":
        operators.reverse()
    else:
        operators = [
            replace(
                op,
                inputs=tuple(replace(t, storage=1) for t in op.inputs),
                outputs=tuple(replace(t, storage=1) for t in op.outputs),
            )
            for op in operators
        ]
    trace = replace(whole, operators=tuple(operators))
    for settings in ({}, {"accumulate": 2}, {"micro_batch_size": 1, "schedule": "1f1b"}):
        for gpus in (1, 3):
            result = simulate_trace(trace, case=case, gpus=gpus, **settings)
            assert [check for check in result.checks if not check.passed] == []


def test_more_stages_than_forward_operators_are_refused(make_trace, simulate_trace):
    with pytest.raises(ConfigError, match=r"gpus 4: .*the trace has 3.*at most 3 GPUs"):
        simulate_trace(make_trace([1.0] * 3, [1.0] * 3), case=4, gpus=4)


def test_a_forward_only_trace_flows_through(make_trace, simulate_trace):
    trace = make_trace([1000.0] * 4, [])
    assert simulate_trace(trace, case=4, gpus=4, **FREE).total_ms == pytest.approx(4)


def brute_force(costs, parts):
    best = sum(costs)
    for cuts in itertools.combinations(range(1, len(costs)), parts - 1):
        edges = [0, *cuts, len(costs)]
        best = min(best, max(sum(costs[a:b]) for a, b in itertools.pairwise(edges)))
    return best


@pytest.mark.parametrize("seed", range(40))
def test_the_largest_stage_is_as_small_as_possible(seed):
    rng = random.Random(seed)
    costs = [rng.choice([0.0, 1e-6, 3e-3, rng.random()]) for _ in range(rng.randint(1, 9))]
    parts = rng.randint(1, len(costs))
    cuts = smallest_maximum(costs, parts)
    assert cuts[0] == 0
    assert cuts[-1] == len(costs)
    assert len(cuts) == parts + 1
    assert all(a < b for a, b in itertools.pairwise(cuts))
    largest = max(sum(costs[a:b]) for a, b in itertools.pairwise(cuts))
    assert largest == pytest.approx(brute_force(costs, parts), rel=1e-9, abs=1e-15)


def test_the_optimizer_is_split_by_parameter_bytes(make_trace, simulate_trace):
    trace = make_trace([1000.0] * 2, [1000.0] * 2, parameter_bytes=64, optimizer_us=500.0)
    rows = simulate_trace(trace, case=4, gpus=2, **FREE).timeline.query("phase == 'optimizer'")
    assert (rows.end_ms - rows.start_ms).tolist() == pytest.approx([0.25, 0.25])


def test_memory_of_a_stage_is_its_own(make_trace, simulate_trace):
    trace = make_trace([1.0] * 4, [1.0] * 4, parameter_bytes=10_000, optimizer_us=1.0)
    result = simulate_trace(trace, case=4, gpus=4, resident=True)
    assert all(10_000 < entry["peak_memory_bytes"] < 20_100 for entry in result.per_rank)
