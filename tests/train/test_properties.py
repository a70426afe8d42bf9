"""Rules of ORACLES 7 on random plans."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from triosim.errors import ConfigError
from triosim.network.topology.base import LinkSpec
from triosim.network.topology.describe import topology_of
from triosim.train import TrainScenario, make_plan, simulate_step
from triosim.train.train import run_plan, train

SMALL = {"hidden": 512, "heads": 8, "kv_heads": 4, "ffn": 1024, "vocab": 4000, "seq_len": 512}
EXPERTS = {"experts": 4, "top_k": 2, "expert_ffn": 512}


@st.composite
def scenarios(draw, most_ranks=16):
    """Plans of up to 16 ranks, all of which are legal."""
    sizes = {name: draw(st.sampled_from((1, 1, 2, 4))) for name in ("pp", "tp", "cp")}
    sizes["dp_shard"] = draw(st.sampled_from((1, 2, 3, 4)))
    sizes["dp_replicate"] = draw(st.sampled_from((1, 1, 2)))
    while int(np.prod(list(sizes.values()))) > most_ranks:
        largest = max(sizes, key=sizes.get)
        sizes[largest] //= 2
    shards = sizes["dp_shard"] * sizes["cp"]
    schedule = draw(st.sampled_from(("1f1b", "gpipe", "interleaved", "zb-h1", "zb-v")))
    microbatches = sizes["pp"] * draw(st.sampled_from((1, 2)))
    experts = draw(st.booleans())
    sequence_parallel = draw(st.booleans())
    return TrainScenario(
        **SMALL,
        **(EXPERTS if experts else {}),
        **sizes,
        gpus=int(np.prod(list(sizes.values()))),
        ep=draw(st.sampled_from([n for n in (1, 2, 4) if shards % n == 0])) if experts else 1,
        layers=draw(st.sampled_from((8, 9))),
        zero=draw(st.sampled_from((0, 1, 2, 3) if shards > 1 else (None,))),
        fsdp=draw(st.sampled_from((1, 2))),
        reshard=draw(st.booleans()),
        schedule=schedule,
        chunks=2 if schedule == "interleaved" else 1,
        global_batch=microbatches * sizes["dp_shard"] * sizes["dp_replicate"],
        context=draw(
            st.sampled_from(
                ("ring", "ring-zigzag", "ring-pass-q", "ring-zigzag-pass-q", "ulysses", "allgather")
            )
        ),
        sequence_parallel=sequence_parallel,
        async_tp=sequence_parallel and draw(st.booleans()),
        loss_parallel=draw(st.booleans()),
        recompute=draw(st.sampled_from(("none", "full", "selective-op", "selective-layer:2"))),
        precision=draw(st.sampled_from(("bf16", "fp32", "fp8-tensorwise"))),
        stack=draw(st.sampled_from(("generic", "torchtitan-compile", "megatron-core"))),
        optimizer_sync=draw(st.sampled_from(("global", "stage"))),
    )


many = settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])


def legal(scenario):
    """A few random plans ask a schedule for what it cannot do; they are refused in a sentence."""
    try:
        return make_plan(scenario)
    except ConfigError:
        return None


@many
@given(scenarios())
def test_every_check_passes(scenario):
    """Classes sum on every rank, memory is level, links keep their capacity, MFU <= HFU <= ..."""
    if legal(scenario) is None:
        return
    result = train(scenario)
    assert [check.detail for check in result.checks if not check.passed] == []
    assert sum(result.breakdown.values()) == pytest.approx(result.step_ms, rel=1e-9)
    splits = result.breakdown_splits
    for name in ("compute", "exposed_communication"):
        assert sum(splits[name].values()) == pytest.approx(result.breakdown[name], abs=1e-9)
    assert result.hfu >= result.mfu > 0


@many
@given(scenarios())
def test_folding_changes_nothing(scenario):
    """ORACLES 7.11: every rank simulated gives the same step, to 1e-9."""
    if legal(scenario) is None:
        return
    folded, whole = (simulate_step(scenario, fold=fold) for fold in (True, False))
    assert len(whole.classes) == scenario.gpus
    assert folded.step_s == pytest.approx(whole.step_s, rel=1e-9)
    assert folded.peak_memory_bytes == whole.peak_memory_bytes
    assert folded.breakdown == pytest.approx(whole.breakdown, rel=1e-9, abs=1e-9)
    assert folded.communication_bytes == pytest.approx(whole.communication_bytes)


@many
@given(scenarios(), st.sampled_from((2.0, 10.0)))
def test_faster_links_never_lengthen_a_step(scenario, factor):
    plan = legal(scenario)
    if plan is None:
        return
    times = []
    for speed in (20e9, 20e9 * factor):
        topology = topology_of("switch", scenario.gpus, LinkSpec(bytes_per_s=speed))
        times.append(run_plan(replace(plan, topology=topology)).step_s)
    assert times[1] <= times[0] * (1 + 1e-9)


@many
@given(scenarios(), st.floats(0.01, 50))
def test_extra_time_never_shortens_a_step(scenario, extra):
    if legal(scenario) is None:
        return
    base = simulate_step(scenario)
    more = simulate_step(replace(scenario, extra_ms_per_step=extra))
    assert base.step_ms * (1 - 1e-9) <= more.step_ms <= base.step_ms + extra + 1e-9


@many
@given(scenarios(most_ranks=8), st.data())
def test_a_slow_rank_never_shortens_a_step(scenario, data):
    if legal(scenario) is None:
        return
    rank = data.draw(st.integers(0, scenario.gpus - 1))
    base = simulate_step(scenario)
    slow = train(replace(scenario, rank_speed={rank: 0.5}))
    assert slow.step_s >= base.step_s * (1 - 1e-9)
    assert all(check.passed for check in slow.checks)


@pytest.mark.parametrize("zero", [1, 2])
@pytest.mark.parametrize("bytes_per_s", [5e9, 50e9, 450e9])
def test_zero_3_is_never_faster_than_zero_2(step_on, zero, bytes_per_s):
    """ORACLES Z2, hidden or not."""
    three, less = (step_on(bytes_per_s, gpus=8, zero=z, global_batch=16) for z in (3, zero))
    assert three.step_s >= less.step_s * (1 - 1e-9)


@pytest.mark.parametrize("bytes_per_s", [2e9, 50e9, 450e9])
def test_ddp_exposes_at_least_its_last_bucket_and_at_most_all(step_on, bytes_per_s):
    """ORACLES D1; with one bucket nothing overlaps."""
    settings = {"gpus": 8, "dp_replicate": 8, "dp_shard": 1, "compile": True}

    def exposed(**more):
        result = step_on(bytes_per_s, **settings, **more)
        rows = [r for r in result.communication if r.purpose == "gradients"]
        return sum(r.exposed_s for r in rows), sum(r.busy_s for r in rows), result

    one, all_s, result = exposed(bucket_mb=1e6)
    assert one == pytest.approx(all_s)
    count = result.writer.state.count(0)
    assert all_s == pytest.approx(2 * 7 / 8 * 2 * count / bytes_per_s, rel=1e-9)
    some, all_s, result = exposed(bucket_mb=25)
    last = 2 * 7 / 8 * 2 * result.writer._groups.single[0][0].count / bytes_per_s
    assert last * (1 - 1e-9) <= some <= all_s * (1 + 1e-9)


def test_more_gpus_never_do_more_than_as_many_times_the_work(step):
    """ORACLES D2."""
    one = step(gpus=1)
    for gpus in (2, 8):
        result = step(gpus=gpus, dp_replicate=gpus, dp_shard=1)
        assert result.tokens_per_s <= gpus * one.tokens_per_s * (1 + 1e-9)


def test_compute_and_activations_scale_with_the_batch_and_state_does_not(step):
    """ORACLES 7.5."""
    one, two = (step(gpus=2, micro_batch_size=b) for b in (1, 2))
    assert two.model_flops == 2 * one.model_flops
    for name, times in (("activations", 2), ("parameters", 1), ("optimizer", 1)):
        held = [int(r.fullest.bytes_by_category[name].max()) for r in (one, two)]
        assert held[1] == pytest.approx(times * held[0], rel=1e-3)


def test_peers_of_a_slow_rank_wait_and_the_class_is_split(step):
    """ORACLES 7.7: a step as long as the slowest rank's; the others' time is imbalance."""
    settings = {"gpus": 4, "tp": 2, "dp_shard": 2}
    even, uneven = step(**settings), step(**settings, rank_speed={1: 0.5})
    members = [tuple(c.members) for c in uneven.classes]
    assert sorted(members) == [(0,), (1,), (2, 3)]
    waits = {m: b.classes_s["imbalance"] for m, b in zip(members, uneven.breakdowns, strict=True)}
    assert waits[1,] == pytest.approx(0.0, abs=1e-9)
    assert waits[0,] > 0
    assert waits[2, 3] > 0
    assert uneven.step_s > even.step_s


def test_expert_parallel_peers_wait_for_a_slow_rank_as_well(step):
    settings = {"gpus": 4, "experts": 4, "top_k": 2, "expert_ffn": 1024, "rank_speed": {0: 0.5}}
    for ep, alike in ((1, {(0,), (1, 2, 3)}), (2, {(0,), (1,), (2, 3)})):
        result = step(**settings, ep=ep)
        assert {tuple(c.members) for c in result.classes} == alike


def test_the_same_scenario_gives_the_same_bytes():
    """ORACLES 7.3."""
    scenario = TrainScenario(gpus=8, recompute="full")
    assert train(scenario).to_json() == train(scenario).to_json()


def test_prefetching_hides_gathers_and_holds_more_parameters(step_on):
    """SEMINAR's FSDP lab: with nothing ahead every gather is exposed; more ahead, more memory."""
    exposed, gathered = [], []
    for ahead in (0, 1, 8):
        result = step_on(450e9, gpus=8, layers=8, recompute="full", prefetch=ahead)
        rows = [row for row in result.communication if row.purpose == "parameters"]
        exposed.append(sum(row.exposed_s for row in rows) / sum(row.busy_s for row in rows))
        gathered.append(int(result.fullest.bytes_by_category["gathered"].max()))
    assert exposed[0] == pytest.approx(1.0)
    assert exposed[0] > exposed[1]
    assert gathered[0] < gathered[1] < gathered[2]
