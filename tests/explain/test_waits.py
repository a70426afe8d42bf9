"""All waiting of a rank, piece by piece, is the breakdown's; small programs say why by hand."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import triosim as ts
from triosim import ConfigError, Scenario, TrainScenario
from triosim.analysis.breakdown import CLASSES, break_down
from triosim.engine.executor import execute
from triosim.engine.program import RankClass
from triosim.explain import explain
from triosim.explain.transfers import Transfers
from triosim.explain.waits import waits_of
from triosim.explain.why import short_reason, why
from triosim.scenario import SAMPLE_TRACES
from triosim.train import TrainResult


def check_sums(result):
    found = explain(result)
    for group, breakdown in zip(result.classes, result.breakdowns, strict=True):
        waits = found.gaps(group.rank)
        slack = 1e-12 * result.tasks.total_s
        for kind in CLASSES[1:]:
            total = sum(wait.seconds for wait in waits if wait.kind == kind)
            assert total == pytest.approx(breakdown.classes_s[kind], rel=1e-9, abs=slack)
        assert {wait.kind for wait in waits} <= set(CLASSES[1:])
        exposed = {}
        for wait in waits:
            if wait.kind == "exposed_communication":
                exposed[wait.key] = exposed.get(wait.key, 0.0) + wait.seconds
        assert exposed == pytest.approx(dict(breakdown.exposed_s), abs=slack)


def test_waits_of_every_rank_sum_to_its_breakdown(result):
    check_sums(result)


MLP = str(SAMPLE_TRACES / "mlp")
TRACES = st.fixed_dictionaries(
    {
        "case": st.integers(0, 4),
        "gpus": st.integers(1, 5),
        "batch_size_sim": st.integers(2, 16),
        "resident": st.booleans(),
        "fold": st.booleans(),
        "bucket_mb": st.sampled_from([0.01, 0.1, 25.0]),
        "overlap_slowdown": st.sampled_from([0.0, 0.3]),
        "ptp_bandwidth_gb_per_s": st.sampled_from([1.0, 65.0]),
        "latency_us": st.sampled_from([0.0, 20.0]),
        "schedule": st.sampled_from(["gpipe", "1f1b"]),
    },
    optional={"micro_batch_size": st.integers(1, 2)},
)


@settings(max_examples=40)
@given(chosen=TRACES, speed=st.sampled_from([0.5, 1.0, 2.0]))
def test_waits_sum_for_random_traces(chosen, speed):
    check_sums(ts.simulate(Scenario(trace_dir=MLP, rank_speed={0: speed}, **chosen)))


PLANS = st.fixed_dictionaries(
    {
        "pp": st.sampled_from([1, 2, 4]),
        "tp": st.sampled_from([1, 2]),
        "recompute": st.sampled_from(["none", "full", "selective-op"]),
        "optimizer_sync": st.sampled_from(["global", "stage"]),
        "global_batch": st.sampled_from([8, 16]),
        "cuda_graphs": st.booleans(),
    }
)


@settings(max_examples=15)
@given(chosen=PLANS, speed=st.sampled_from([0.5, 1.0]))
def test_waits_sum_for_random_training_plans(chosen, speed):
    shape = {"layers": 4, "hidden": 512, "heads": 8, "ffn": 2048, "vocab": 8000, "seq_len": 512}
    check_sums(ts.train(TrainScenario(gpus=8, rank_speed={2: speed}, **shape, **chosen)))


def test_gaps_of_the_compute_stream_do_not_overlap_what_it_computes(result):
    for c, group in enumerate(result.classes):
        own = result.tasks.tasks(c, "compute").tolist()
        busy = [(result.tasks.start_s[t], result.tasks.end_s[t]) for t in own]
        gaps = [w for w in explain(result).gaps(group.rank) if w.inside < 0 and w.seconds]
        spans = sorted([*busy, *((w.start_s, w.end_s) for w in gaps)])
        slack = 1e-9 * result.tasks.total_s
        assert all(a[1] <= b[0] + slack for a, b in pairwise(spans))


def test_the_longest_come_first(result):
    found = explain(result)
    waits, longest = found.gaps(0), found.longest(0, 3)
    assert [w.seconds for w in longest] == sorted((w.seconds for w in waits), reverse=True)[:3]


def test_waits_inside_a_pass_are_those_of_its_parts(result_of):
    """Each piece inside a pass was found on the pass's own timeline."""
    result = result_of("launch-bound")
    assert isinstance(result, TrainResult)
    found = explain(result)
    task = next(iter(result.writer.made))
    sums = {}
    for unit in found.inside(task):
        for wait in unit.waits:
            sums[wait.kind] = sums.get(wait.kind, 0.0) + wait.seconds
    whole = {}
    for wait in found.gaps(0):
        if wait.inside == task:
            whole[wait.kind] = whole.get(wait.kind, 0.0) + wait.seconds
    assert whole["launch_wait"] > 0
    assert sums == pytest.approx(whole, rel=1e-9)
    assert found.inside(len(result.tasks.program) - 1) == ()


def test_what_is_no_result_and_a_rank_that_is_none_are_refused(result_of):
    with pytest.raises(ConfigError, match="must come from simulate or train"):
        explain(3)
    found = explain(result_of("alone"))
    with pytest.raises(ConfigError, match="ranks go from 0 to 0"):
        found.gaps(1)
    with pytest.raises(ConfigError, match="tasks go from 0 to"):
        found.of(10**6)


def reasons(made, c):
    timeline = execute(made.program)
    waits = waits_of(timeline, break_down(timeline, c), c)
    return [
        (
            w.kind,
            w.start_s,
            w.end_s,
            short_reason(timeline, w),
            why(timeline, Transfers(timeline), w),
        )
        for w in waits
    ]


def test_a_transfer_in_a_queue_names_what_was_before_it(small):
    made = small(RankClass(members=(0,)))
    a = made.program.compute(0, "a", "backward", 2.0)
    stream = [(0, "collective", "all-reduce")]
    made.move("first", stream, 3.0, [[a]])
    (last,) = made.move("second", stream, 1.0, [[a]], latency_s=0.5)
    made.program.compute(0, "b", "optimizer", 1.0, [last])
    one, two = reasons(made, 0)
    assert one[:4] == ("exposed_communication", 2.0, 5.0, "waits for a transfer: first")
    assert two[:4] == ("exposed_communication", 5.0, 6.5, "waits for a transfer: second")
    said = " ".join(two[4])
    assert "GPU 0 computes nothing for 1.5 s" in said
    assert "before first had ended, which was before it on the stream collective" in said
    assert "1 s for its bytes on links of its own + 500 ms latency" in said
    assert "before a had ended, whose result it needs" in " ".join(one[4])


def test_a_slower_peer_is_named_with_its_speed(small):
    made = small(RankClass(members=(0,)), RankClass(members=(1,), speed=0.4))
    a = made.program.compute(0, "a", "backward", 2.0)
    b = made.program.compute(1, "a", "backward", 5.0)
    ends = [(c, "collective", "all-reduce") for c in (0, 1)]
    one, _ = made.move("sum", ends, 3.0, [[a], [b]])
    made.program.compute(0, "o", "optimizer", 1.0, [one])
    first, second = reasons(made, 0)
    assert first[:4] == ("imbalance", 2.0, 5.0, "waits for another GPU: a on GPU 1")
    assert "GPU 1 runs at 0.4 of full speed, this one at 1." in first[4]
    assert "3 s backward on GPU 1" in " ".join(first[4])
    assert second[0] == "exposed_communication"
    assert "only then were all GPUs that take part ready" in " ".join(second[4])


def test_another_stage_is_followed_through_the_whole_chain(small):
    made = small(*(RankClass(members=(i,), stage=i) for i in range(3)), links=(1.0, 1.0))
    third = made.program.compute(2, "f2", "forward", 2.0)
    _, there = made.move(
        "hand on", [(2, "send", "send"), (1, "receive", "recv")], 1.0, [[third], []]
    )
    second = made.program.compute(1, "f1", "forward", 4.0, [there])
    _, back = made.move(
        "hand back", [(1, "send", "send"), (0, "receive", "recv")], 0.5, [[second], []], link=1
    )
    made.program.compute(0, "f0", "forward", 1.0, [back])
    bubble, moving = reasons(made, 0)
    assert bubble[:4] == ("bubble", 0.0, 7.0, "waits for another stage: f1 on stage 1")
    said = " ".join(bubble[4])
    assert "4 s forward on stage 1, 2 s forward on stage 2" in said
    assert "1 s send/recv: gradients" in said
    assert moving[:3] == ("exposed_communication", 7.0, 7.5)


def test_a_launch_that_is_late_is_the_cpus(small):
    made = small(RankClass(members=(0,)))
    one = made.program.launch(0, "k1", 1.0)
    two = made.program.launch(0, "k2", 3.0)
    made.program.compute(0, "k1", "forward", 1.0, [one])
    made.program.compute(0, "k2", "forward", 1.0, [two])
    first, second = reasons(made, 0)
    assert first[:4] == ("launch_wait", 0.0, 1.0, "the CPU has not launched k1 yet")
    assert second[:4] == ("launch_wait", 2.0, 4.0, "the CPU has not launched k2 yet")
    assert "takes the CPU 3 s" in " ".join(second[4])


def test_a_rank_that_is_done_says_who_still_works(small):
    made = small(RankClass(members=(0,)), RankClass(members=(1,)))
    made.program.compute(0, "a", "forward", 1.0)
    made.program.compute(1, "b", "forward", 3.0)
    (idle,) = reasons(made, 0)
    assert idle[:4] == ("idle", 1.0, 3.0, "nothing left to do")
    assert "the step ends with b on GPU 1" in idle[4][0]
