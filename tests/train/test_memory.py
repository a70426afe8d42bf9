"""Memory: bytes per parameter, activations, what a step holds when. ORACLES Z1, A1-A4, E2, M1."""

from __future__ import annotations

from functools import partial

import pytest

from triosim.train import TrainScenario, train
from triosim.train.checks import run_train_checks
from triosim.train.ran import run_of
from triosim.train.recompute import Kept
from triosim.workload import Layout, Transformer, block_of

PSI, N = 7.5e9, 64
PARAMETERS = 8_030_261_248


def static_bytes(step, **settings):
    """Parameters, gradients and state of one rank, each at its highest, per parameter."""
    result = step(recompute="full", **settings)
    curve = result.fullest.bytes_by_category
    held = sum(int(curve[name].max()) for name in ("parameters", "gradients", "optimizer"))
    return held / result.writer.state.count(0)


@pytest.mark.parametrize(
    ("stack", "zero", "per_parameter", "gigabytes"),
    [
        ("generic", 0, 16, 120),
        ("generic", 1, 4 + 12 / N, 31.4),
        ("generic", 2, 2 + 14 / N, 16.6),
        ("generic", 3, 16 / N, 1.9),
        ("megatron-core", 0, 18, None),
        ("megatron-core", 1, 6 + 12 / N, None),
        ("megatron-core", 2, 2 + 16 / N, None),
        ("megatron-core", 3, 18 / N, None),
    ],
)
def test_bytes_per_parameter(step, stack, zero, per_parameter, gigabytes):
    """ORACLES Z1."""
    held = static_bytes(step, gpus=N, zero=zero, stack=stack)
    assert held == pytest.approx(per_parameter, rel=1e-5)
    if gigabytes is not None:
        assert held * PSI / 1e9 == pytest.approx(gigabytes, abs=0.05)


@pytest.mark.parametrize(
    ("settings", "per_parameter"),
    [
        ({"optimizer_state": "bf16"}, 12),  # two moments of two bytes less
        ({"optimizer": "sgd"}, 12),  # no second moment
        ({"optimizer": "sgd", "optimizer_state": "bf16"}, 10),
        ({"precision": "fp32", "optimizer_state": "bf16"}, 12),
        ({"stack": "torchtitan-eager", "optimizer_state": "bf16"}, 12),
    ],
)
def test_bytes_of_the_optimizer_state(step, settings, per_parameter):
    assert static_bytes(step, gpus=1, **settings) == pytest.approx(per_parameter, rel=1e-5)


def test_a_foreach_optimizer_moves_more_than_a_fused_one(step):
    """Bytes a parameter of AdamW on the generic stack: 28 fused, 78 and a copy of 6 foreach.

    Nine kernels have a little more than one to start.
    """
    fused, foreach = (step(gpus=1, fused_optimizer=f) for f in (True, False))
    state = fused.writer.state
    count, costs = state.count(0), fused.writer.blocks.costs
    more = sum(r.writer.state.optimizer_s(0) * s for r, s in ((foreach, 1), (fused, -1)))
    at = costs.stack.memory.value * costs.gpu.memory_bytes_per_s
    at *= costs.gpu.efficiency["optimizer"]
    assert more == pytest.approx(count * (4 * 18 + 2 * 3 + 6 - 28) / at, rel=0.05)


def test_fp16_takes_the_scale_off_its_gradients(step):
    """Two bytes read and written, and checked for infinities on the way."""
    fp16, bf16 = (step(gpus=1, precision=p).writer.state for p in ("fp16", "bf16"))
    costs = step(gpus=1).writer.blocks.costs
    at = costs.stack.memory.value * costs.gpu.memory_bytes_per_s
    at *= costs.gpu.efficiency["elementwise"]
    more = fp16.optimizer_s(0) - bf16.optimizer_s(0)
    assert more == pytest.approx(4 * fp16.count(0) / at, rel=0.05)


def test_replicas_do_not_shard(step):
    """ORACLES Z4: memory as sharding over k."""
    assert static_bytes(step, gpus=32, dp_replicate=4) == pytest.approx(16 / 8, rel=1e-5)


def test_memory_falls_with_more_shards_as_the_seminar_says(step):
    """SEMINAR F1: 14.96 - 0.93 = 14.0 GiB from 8 to 128 GPUs."""
    peaks = [step(model="llama3-8b", gpus=n, recompute="full").peak_memory_gib for n in (8, 128)]
    eight, many = (16 * PARAMETERS / n / 2**30 for n in (8, 128))
    assert peaks[0] - peaks[1] == pytest.approx(eight - many, rel=0.01)


def gpt(hidden, heads):
    return Transformer(
        name="gpt", layers=1, hidden=hidden, heads=heads, ffn=4 * hidden, vocab=51_200,
        seq_len=2048, gated=False, activation="gelu", positions="learned", norm="layer",
        qkv_bias=True, out_bias=True, mlp_bias=True, dropout=True, tied=True,
    )  # fmt: skip


def kept_bytes(model, mode, *, tp, sequence_parallel):
    layout = Layout(tp=tp, sequence_parallel=sequence_parallel)
    block = block_of(model, "dense", batch=1, seq=2048, implementation="megatron", layout=layout)
    return Kept(run_of(block, compiled=False), mode).bytes


def a1_bytes(model, mode, *, tp, sequence_parallel):
    """ORACLES A1 with K = 5as/h."""
    s, h = 2048, model.hidden
    k = 5 * model.heads * s / h if mode == "none" else 0
    if mode == "full":
        return 2 * s * h
    return s * h * ((10 / tp if sequence_parallel else 10) + (24 + k) / tp)


@pytest.mark.parametrize("tp", [1, 8])
@pytest.mark.parametrize("mode", ["none", "attention", "full"])
def test_activations_of_a_megatron_layer(tp, mode):
    model = gpt(6144, 64)
    measured = kept_bytes(model, mode, tp=tp, sequence_parallel=False)
    want = a1_bytes(model, mode, tp=tp, sequence_parallel=False)
    assert measured == pytest.approx(want, rel=2e-3)  # the statistics of norms are not in A1


@pytest.mark.parametrize(
    ("hidden", "heads", "sp", "selective", "both"),
    [
        (6144, 64, 66.84, 49.42, 16.18),
        (12_288, 96, 62.04, 56.53, 18.49),
        (20_480, 128, 58.31, 62.04, 20.27),
    ],
)
def test_measured_shares_of_activations(hidden, heads, sp, selective, both):
    """ORACLES A2, measured by Korthikanti et al. at t = 8, percent of "none"."""
    kept = partial(kept_bytes, gpt(hidden, heads), tp=8)
    whole = kept("none", sequence_parallel=False)
    shares = [
        kept("none", sequence_parallel=True),
        kept("attention", sequence_parallel=False),
        kept("attention", sequence_parallel=True),
    ]
    assert [100 * share / whole for share in shares] == pytest.approx(
        [sp, selective, both], abs=0.25
    )


def test_flash_attention_keeps_no_scores(step):
    """ORACLES A3: what is kept grows with s, not with s^2."""
    short, long = (
        step(gpus=1, seq_len=s).writer.blocks.kept("dense", 0).bytes for s in (1024, 4096)
    )
    assert long == 4 * short


@pytest.mark.parametrize("mode", ["attention", "selective-op", "selective-layer:2", "full"])
@pytest.mark.parametrize("compile", [False, True])
def test_recompute_saves_memory_and_costs_time(step, mode, compile):
    """ORACLES A4."""
    base, other = (step(gpus=2, recompute=r, compile=compile) for r in ("none", mode))
    assert other.peak_memory_bytes <= base.peak_memory_bytes
    assert other.step_ms >= base.step_ms * (1 - 1e-9)
    assert other.hfu >= other.mfu


def test_full_recompute_adds_one_forward_of_the_layers(step):
    """ORACLES A4."""
    result = step(gpus=1, recompute="full")
    unit = next(u for u in result.plan.virtual_stages[0] if u.layer == 0)
    parts = result.writer.blocks.simulate(unit, "forward").parts
    forward = sum(part.seconds for part in parts if part.kind == "compute")
    split = result.breakdown_splits["compute"]
    assert split["recompute"] == pytest.approx(4 * forward * 1e3, rel=1e-6)


def test_stages_hold_as_many_micro_batches_as_1f1b_leaves_in_flight(step):
    """ORACLES 3: stage i of 1F1B holds min(m, p - i); GPipe holds m."""
    for schedule, held in (("1f1b", [4, 3, 2, 1]), ("gpipe", [8, 8, 8, 8])):
        result = step(gpus=4, pp=4, dp_shard=1, global_batch=8, schedule=schedule, layers=8)
        kept = result.writer.blocks.kept("dense", 0).bytes
        layers = [2, 2, 2, 2]
        for curve, count, number in zip(result.memory, held, layers, strict=True):
            most = int(curve.bytes_by_category["activations"].max())
            embedding = result.writer.blocks.kept("embedding", -1).bytes
            extra = embedding * count if curve is result.memory[0] else 0
            assert most == count * number * kept + extra


def test_memory_of_experts_counts_all_and_flops_only_the_active(step):
    """ORACLES E2."""
    few, many = (
        step(gpus=1, experts=n, top_k=2, expert_ffn=1024, recompute="full") for n in (4, 8)
    )
    expert = 3 * 1024 * 1024
    grown = many.writer.state.count(0) - few.writer.state.count(0)
    assert grown == 4 * (4 * expert + 4 * 1024)  # four layers; the router has a row for each
    router = 6 * 4 * 4 * 1024
    assert many.model_flops - few.model_flops == pytest.approx(router * few.tokens)


def test_units_are_named(step):
    """ORACLES M1: bytes and GiB of 2^30."""
    result = step(gpus=2)
    assert result.peak_memory_gib == result.peak_memory_bytes / 2**30
    assert sum(result.memory_breakdown_gib.values()) == pytest.approx(result.peak_memory_gib)
    assert max(result.peak_memory_by_stage_gib) == result.peak_memory_gib
    assert result.capacity_bytes == 80 * 2**30


@pytest.mark.parametrize(
    ("settings", "layers"),
    [
        ({"fsdp": 2}, 2),  # the one in use and the next
        ({"fsdp": 1}, 3),  # the rate limiter lets two be under way
        ({"fsdp": 1, "prefetch": 0}, 1),
        ({"fsdp": 2, "prefetch": 5}, 6),
        ({"fsdp": 2, "reshard": False}, 8),
    ],
)
def test_gathered_layers_at_once(step, settings, layers):
    """Gathers are far faster than layers; without a limit they would all be in memory."""
    one = 2 * (2 * 1024 + (2 * 1024 + 2 * 256) * 1024 + 3 * 4096 * 1024)
    result = step(gpus=8, layers=8, vocab=8, **settings)
    most = int(result.fullest.bytes_by_category["gathered"].max())
    ends = 2 * (2 * 8 * 1024 + 1024)  # embedding, head and last norm
    assert layers * one <= most <= layers * one + ends
    unlimited = step(gpus=8, layers=8, vocab=8, **{**settings, "prefetch": 10_000})
    assert int(unlimited.fullest.bytes_by_category["gathered"].max()) >= 8 * one


def test_a_ring_holds_a_visitor_and_the_next(step):
    """Beside what one rank alone needs: two messages of a ring, or all keys gathered."""
    settings = {"cp": 4, "gpus": 4, "seq_len": 16_384}

    def work(context, kind):
        result = step(context=context, **settings)
        unit = next(u for u in result.plan.virtual_stages[0] if u.layer == 0)
        return getattr(result.writer.blocks.memory(unit), kind)

    keys = 16_384 * 2 * 256 * 2
    for kind, times in (("forward", 1), ("backward", 2)):
        assert work("allgather", kind) - work("ring", kind) == times * (keys - 2 * keys / 4)


def test_a_plan_that_does_not_fit_is_a_result_with_changes(step):
    result = step(model="llama3-8b", gpus=8, dp_replicate=8, dp_shard=1)
    assert not result.fits
    best = result.changes_to_fit[0]
    assert best.peak_memory_gib <= 80
    again = step(model="llama3-8b", **{"gpus": 8, **best.settings})
    assert again.fits


@pytest.mark.parametrize(
    ("zero", "text"), [(None, "cp=2, dp_shard=4"), (1, "cp=2, dp_shard=4, zero=3")]
)
def test_a_change_says_no_defaults(zero, text):
    """ZeRO's stage is said where it is not the one that the step had."""
    result = train(TrainScenario(model="llama3-8b", gpus=8, zero=zero))
    assert text in [change.text for change in result.changes_to_fit]


@pytest.mark.parametrize("settings", [{}, {"gpus": 4, "pp": 2}, {"pp": 2, "schedule": "zb-h1"}])
def test_offloaded_activations_leave_the_gpu_and_come_back(step, settings):
    plain = {"gpus": 2, "dp_shard": -1, "layers": 8, "global_batch": 8, **settings}
    kept, moved = step(**plain), step(**plain, offload=True)
    held = [int(r.fullest.bytes_by_category["activations"].max()) for r in (kept, moved)]
    # A postponed weight gradient still needs what its input gradient has brought back.
    assert held[1] < held[0] or settings.get("schedule") == "zb-h1"
    assert moved.step_s >= kept.step_s
    assert moved.communication_bytes == pytest.approx(kept.communication_bytes)
    rows = {row.kind: row.bytes for row in moved.communication if row.purpose == "offload"}
    assert rows["store"] == rows["fetch"] > 0
    assert all(check.passed for check in run_train_checks(moved))
