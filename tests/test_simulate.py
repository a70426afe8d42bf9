"""Whole runs: the original's totals, and the rules that hold for any scenario."""

import csv
import itertools
import json
import random
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import triosim as ts
from triosim.result import TIMELINE_COLUMNS

SAMPLES = Path(__file__).resolve().parents[1] / "sample_trace"
NAMES = ("mlp", "convnet", "transformer")
CLASSES = ("compute", "launch_wait", "exposed_communication", "bubble", "imbalance", "idle")
# Hops of the original's ring on each mesh; ours takes one (its neighbours are circuits).
HOPS = {(1, 4): 1, (2, 4): 4, (4, 4): 7}


def recorded_ms(name):
    with (SAMPLES / name / "trace.csv").open() as file:
        return sum(float(row["Operator_cudatimenooverlap"]) for row in csv.DictReader(file)) / 1e3


def run(name="transformer", **settings):
    return ts.simulate(ts.Scenario(trace_dir=str(SAMPLES / name), **settings))


def test_every_total_of_the_original(shared, upstream):
    folders = {name: SAMPLES / name for name in NAMES}
    folders |= {name: upstream / name for name in ("vgg13", "resnet50")}
    with (shared / "reference" / "upstream_totals.csv").open() as file:
        rows = list(csv.DictReader(file))
    wrong = []
    for row in rows:
        given = {
            "trace_dir": str(folders[row["trace"]]),
            "case": int(row["case"]),
            "gpus": int(row["gpus"]),
            "resident": True,
            "stage_cut": "count",
        }
        want = float(row["total_ms"])
        if row["interconnect"] == "optical":
            mesh = int(row["mesh_rows"]), int(row["mesh_cols"])
            given |= {"interconnect": "optical", "mesh_rows": mesh[0], "mesh_cols": mesh[1]}
            result = ts.simulate(ts.Scenario(**given))
            extra_ms = 2 * (given["gpus"] - 1) * (HOPS[mesh] - 1) * 20e-6
            want -= float(row["compute_ms"]) + extra_ms
            got = result.total_ms - result.compute_ms
        else:
            given |= {"ptp_bandwidth_gb_per_s": float(row["ptp_bandwidth_gbps"])}
            got = ts.simulate(ts.Scenario(**given)).total_ms
        if got != pytest.approx(want, rel=2e-5 if given["case"] == 3 else 1e-6):
            wrong.append((given, got, want))
    assert len(rows) == 274
    assert wrong == []


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("case", range(5))
def test_one_gpu_with_everything_in_memory_takes_the_recorded_time(name, case):
    result = run(name, case=case, gpus=1, resident=True)
    assert result.total_ms == pytest.approx(recorded_ms(name), rel=1e-12)
    assert result.speedup == pytest.approx(1)
    assert result.communication_bytes == 0


def test_fetches_of_the_original_vgg13(upstream):
    # By storage, without what backward names first: about 2.2 GB (by tensor id it would be 10.6).
    result = ts.simulate(ts.Scenario(trace_dir=str(upstream / "vgg13"), gpus=1))
    assert result.fetched_bytes == pytest.approx(2.2e9, rel=0.02)


numbers = st.sampled_from([0.5, 3.0, 65.0, 900.0])
scenarios = st.builds(
    dict,
    name=st.sampled_from(NAMES),
    case=st.integers(0, 4),
    gpus=st.integers(1, 6),
    ptp_bandwidth_gb_per_s=numbers,
    bandwidth_gb_per_s=st.sampled_from([5.0, 100.0, 696.0]),
    latency_us=st.sampled_from([0.0, 7.5]),
    resident=st.booleans(),
    bucket_mb=st.sampled_from([0.5, 25.0]),
    accumulate=st.integers(1, 3),
    batch_size_sim=st.sampled_from([None, 3, 17]),
    schedule=st.sampled_from(["gpipe", "1f1b"]),
    stage_cut=st.sampled_from(["time", "count"]),
    rank_speed=st.sampled_from([None, {0: 0.5}]),
    interconnect=st.sampled_from(["electrical", "optical"]),
    circuit_setup_ms=st.sampled_from([0.0, 1.0]),
)


@settings(max_examples=60, deadline=None)
@given(scenarios)
def test_rules_that_hold_for_every_scenario(given):
    result = run(**given)
    assert [check for check in result.checks if not check.passed] == []
    for rank in result.per_rank:
        assert sum(rank[f"{kind}_ms"] for kind in CLASSES) == pytest.approx(result.total_ms)
    means = sum(getattr(result, f"{kind}_ms") for kind in CLASSES)
    assert means == pytest.approx(result.total_ms)
    ends = result.expand(range(given["gpus"]))["end_ms"]
    assert ends.max() == pytest.approx(result.total_ms)
    for kind in ("send/recv", "all-reduce"):
        moved = sum(row.bytes for row in result.communication if row.kind == kind)
        assert moved <= result.communication_bytes * (1 + 1e-12)


@settings(max_examples=60, deadline=None)
@given(scenarios, st.integers(24, 31), st.sampled_from([None, 1, 2]))
def test_any_capacity_gives_a_valid_step_or_says_that_there_is_none(given, log2, micro_batch):
    given |= {"capacity_log2": log2, "batch_size_sim": 3, "micro_batch_size": micro_batch}
    try:
        result = run(**given)
    except ts.Infeasible as error:
        assert re.search(r"Operator \d+ \(.*\) needs [\d,]+ bytes", str(error))  # noqa: PT017
        return
    assert [check for check in result.checks if not check.passed] == []
    assert result.peak_memory_bytes <= 2**log2


@settings(max_examples=40, deadline=None)
@given(scenarios, st.sampled_from(["links", "memory", "latency", "speed", "batch"]))
def test_better_hardware_or_less_work_never_takes_longer(given, change):
    better = dict(given)
    if change == "links":
        better["ptp_bandwidth_gb_per_s"] *= 2
        better["optical_gb_per_s"] = 128
    elif change == "memory":
        better["bandwidth_gb_per_s"] *= 2
    elif change == "latency":
        better["latency_us"] = 0.0
        better["circuit_setup_ms"] = 0.0
    elif change == "speed":
        better["rank_speed"] = dict.fromkeys(range(given["gpus"]), 2.0)
    else:
        better["batch_size_sim"] = 3
    if change == "batch" and given["batch_size_sim"] is None:
        return
    assert run(**better).total_ms <= run(**given).total_ms * (1 + 1e-9)


@settings(max_examples=40, deadline=None)
@given(scenarios)
def test_folding_symmetric_ranks_changes_nothing(given):
    folded, unfolded = run(**given), run(**given, fold=False)
    assert folded.total_ms == pytest.approx(unfolded.total_ms, rel=1e-9)
    assert len(unfolded.classes) == given["gpus"]
    for one, other in zip(folded.per_rank, unfolded.per_rank, strict=True):
        for name in one:
            assert one[name] == pytest.approx(other[name], rel=1e-9, abs=1e-9)
    shown = folded.expand(range(given["gpus"]))
    every = unfolded.timeline
    assert shown.shape == every.shape
    assert shown["end_ms"].tolist() == pytest.approx(every["end_ms"].tolist(), rel=1e-9)


def test_the_cost_does_not_grow_with_symmetric_gpus():
    for case, straggler in itertools.product(range(4), (None, {1: 0.5})):
        events = [
            run(case=case, gpus=gpus, rank_speed=straggler).tasks.events
            for gpus in (8, 1024, 16_384)
        ]
        assert events[0] == events[1] == events[2]
        assert events[0] < 2500


def test_a_result_is_the_same_every_time():
    texts = {run(case=2, gpus=4, rank_speed={2: 0.7}).to_json() for _ in range(3)}
    assert len(texts) == 1


def test_renumbering_ranks_changes_nothing():
    totals = {run(case=2, gpus=8, rank_speed={rank: 0.5}).total_ms for rank in (0, 3, 7)}
    assert len(totals) == 1


@pytest.mark.parametrize("mesh", [(1, 8), (2, 4), (4, 2), (8, 1)])
@pytest.mark.parametrize("case", [1, 2, 3, 4])
def test_optical_with_standing_circuits_equals_electrical(mesh, case):
    common = {"case": case, "gpus": 8, "resident": True}
    optical = run(
        **common, interconnect="optical", mesh_rows=mesh[0], mesh_cols=mesh[1], optical_gb_per_s=40
    )
    electrical = run(**common, ptp_bandwidth_gb_per_s=40, ptp_convention="link", latency_us=0.02)
    assert optical.total_ms == pytest.approx(electrical.total_ms, rel=1e-12)


def test_setting_up_circuits_costs_once_and_is_exposed():
    common = {"case": 1, "gpus": 4, "interconnect": "optical", "resident": True}
    without, with_setup = run(**common), run(**common, circuit_setup_ms=3)
    assert with_setup.total_ms - without.total_ms == pytest.approx(3)
    assert with_setup.exposed_communication_ms - without.exposed_communication_ms == pytest.approx(
        3
    )
    # Tensor parallel uses the same circuits again and again.
    again = run(**(common | {"case": 3}), circuit_setup_ms=3).total_ms
    assert again - run(**(common | {"case": 3})).total_ms == pytest.approx(3)


def test_batch_scaling_leaves_the_optimizer_and_the_parameters_alone():
    one, double = run("mlp", batch_size_sim=64), run("mlp", batch_size_sim=128)
    phases = [r.per_rank[0] for r in (one, double)]
    for phase in ("forward_ms", "backward_ms"):
        assert phases[1][phase] == pytest.approx(2 * phases[0][phase])
    assert phases[1]["optimizer_ms"] == pytest.approx(phases[0]["optimizer_ms"])
    # Only the samples (64 x 1024 fp32) and labels (64 of 4 bytes) are fetched twice as much.
    assert double.fetched_bytes - one.fetched_bytes == 8 * (64 * 1024 * 4 + 64 * 4)
    said = run("mlp", batch_size=32)
    assert said.total_ms == pytest.approx(run("mlp").total_ms)
    assert said.samples_per_s == pytest.approx(run("mlp").samples_per_s / 2)


def test_speed_up_and_throughput_by_case():
    for case in range(5):
        alone, together = run(case=case, gpus=1), run(case=case, gpus=4)
        ratio = alone.total_ms / together.total_ms
        share = 4 if case <= 2 else 1
        assert together.speedup == pytest.approx(share * ratio)
        assert together.samples_per_s == pytest.approx(share * 8 / together.total_ms * 1e3)


def test_a_step_that_does_not_fit_one_gpu_has_no_speed_up():
    # The optimizer reads parameters, momenta and denominators at once: 301 MB on one GPU, at most
    # 250 MB (the layers of 16.8 and 4.1 million parameters) where two share them.
    result = run("mlp", case=4, gpus=2, capacity_log2=28)
    assert result.peak_memory_bytes <= 2**28
    assert result.speedup is None
    assert json.loads(result.to_json())["speedup"] is None
    with pytest.raises(ts.Infeasible, match=r"_foreach_addcdiv_\) needs 300,920,544 bytes"):
        run("mlp", case=0, gpus=1, capacity_log2=28)


def test_the_timeline_frame():
    result = run(case=2, gpus=16_384)
    frame = result.timeline
    assert tuple(frame.columns) == TIMELINE_COLUMNS
    assert set(frame["members"]) == {16_384}
    assert set(frame["rank"]) == {0}
    chosen = result.expand([5, 16_383])
    assert sorted(set(chosen["rank"])) == [5, 16_383]
    assert set(chosen["members"]) == {1}
    assert len(chosen) == 2 * len(frame)
    with pytest.raises(ts.ConfigError, match="rank 16384: ranks go from 0 to 16383"):
        result.expand([16_384])


def test_per_rank_is_a_sequence():
    ranks = run(case=1, gpus=1000).per_rank
    assert len(ranks) == 1000
    assert ranks[-1]["rank"] == 999
    assert [entry["rank"] for entry in ranks[3:5]] == [3, 4]
    with pytest.raises(IndexError):
        ranks[1000]


def test_json_holds_the_documented_names():
    for gpus, entries in ((4, 4), (64, 64), (65, 1)):
        data = json.loads(run(case=2, gpus=gpus).to_json())
        assert len(data["per_rank"]) == entries
        for name in (
            "total_ms", *(f"{kind}_ms" for kind in CLASSES), "busiest_compute_ms", "speedup",
            "samples_per_s", "communication_bytes", "fetched_bytes", "peak_memory_bytes",
        ):  # fmt: skip
            assert isinstance(data[name], (int, float))
            assert name in data["per_rank"][0]
        assert all(set(check) == {"id", "passed", "detail"} for check in data["checks"])
        assert ts.Scenario.from_dict(data["scenario"]).gpus == gpus
        assert data["schema_version"] == 1


def test_times_beyond_32_bits_of_nanoseconds():
    forward_and_backward_ms = 0.153  # 56 us forward, 97 us backward at batch 64
    want = forward_and_backward_ms * 2**30 / 64 + (0.687 - 0.153) + 100_306_848 / 65e6
    result = run("mlp", case=1, gpus=4, batch_size_sim=2**30, capacity_log2=60, resident=True)
    assert result.total_ms == pytest.approx(want, rel=1e-9)


def test_random_straggler_speeds_are_the_maximum_over_ranks():
    rng = random.Random(3)
    speeds = {rank: rng.uniform(0.3, 0.99) for rank in range(8)}
    result = run(case=0, gpus=8, rank_speed=speeds, resident=True)
    assert result.total_ms == pytest.approx(recorded_ms("transformer") / min(speeds.values()))
    assert run(case=0, gpus=8, rank_speed=dict.fromkeys(range(8), 1.0)).total_ms == (
        run(case=0, gpus=8).total_ms
    )


def test_results_travel_between_processes():
    import pickle

    result = run(case=2, gpus=4)
    assert result.breakdowns
    copy = pickle.loads(pickle.dumps(result))
    assert copy.to_json() == result.to_json()
    assert copy.timeline.equals(result.timeline)
    assert replace(copy.scenario, gpus=4) == result.scenario


def test_results_are_equal_to_themselves_only_and_can_be_keys():
    one, other = run(case=2, gpus=4), run(case=2, gpus=4)
    assert one == one
    assert one != other
    assert one.tasks != other.tasks
    assert len({one, other, one.tasks, other.tasks}) == 4


def test_what_a_caller_does_to_a_frame_stays_with_the_caller():
    result = run(case=4, gpus=2)
    before, text = result.timeline.copy(deep=True), result.to_json()
    for frame in (result.timeline, result.expand([0]), result.expand([1, 0])):
        frame.loc[:, "start_ms"] = -1.0
        frame["name"].to_numpy()[:] = "changed"
        del frame["members"]
    entry = result.per_rank[0]
    entry["total_ms"] = -1.0
    assert result.timeline.equals(before)
    assert result.to_json() == text


def test_the_count_of_what_gpus_agree_on_is_one_word_or_the_other(simulate_trace, make_trace):
    trace = make_trace([1.0], [1.0])
    with pytest.raises(ts.ConfigError, match=r"the trace has 1; use at most 1 GPU\.$"):
        simulate_trace(trace, case=4, gpus=2)
