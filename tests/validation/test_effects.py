"""What published runs show of each effect, and what must hold whatever was measured."""

from dataclasses import replace

import pytest

from triosim.hardware.stacks import Constant
from triosim.train import TrainScenario, make_plan, simulate_step
from triosim.train.train import run_plan
from triosim.validation import load_source, rows_of


@pytest.fixture(scope="module")
def torchtitan():
    return {row.number: row for row in rows_of(load_source("torchtitan"))}


def seconds(row, **constants):
    """A row's step, with other constants of its stack where given."""
    plan = make_plan(row.scenario)
    fixed = {name: Constant(value, value, value) for name, value in constants.items()}
    return run_plan(replace(plan, stack=replace(plan.stack, **fixed))).step_s


def saved(torchtitan, eager, compiled, **constants):
    return seconds(torchtitan[eager], **constants) - seconds(torchtitan[compiled], **constants)


def test_compile_saves_the_same_seconds_at_128_gpus_as_at_8(torchtitan):
    """First-hand rows: 0.386 and 0.408 s; communication is hidden in both."""
    at_8, at_128 = saved(torchtitan, 0, 1), saved(torchtitan, 3, 4)
    assert at_8 > 0
    assert at_128 == pytest.approx(at_8, rel=0.15)


def test_without_any_mechanism_compile_does_not_save_more_at_128(torchtitan):
    off = {"launch_us": 0, "compiled_launch_us": 0, "collective_us": 0, "overlap_slowdown": 0}
    at_8, at_128 = saved(torchtitan, 0, 1, **off), saved(torchtitan, 3, 4, **off)
    assert at_128 <= at_8 * (1 + 1e-6)


@pytest.mark.parametrize("row", [15, 16, 17], ids=["cp 2", "cp 4", "cp 8"])
def test_a_longer_context_over_more_hosts_takes_as_much_more_as_published(torchtitan, row):
    """405B with 32,768 tokens a rank: 1.62, 2.45 and 4.75 times the step without a ring."""
    ratio = torchtitan[row].published_s / torchtitan[14].published_s
    assert seconds(torchtitan[row]) / seconds(torchtitan[14]) == pytest.approx(ratio, rel=0.1)


def test_a_ring_that_overlaps_its_transfers_would_be_much_too_fast(torchtitan):
    """Why context parallelism was predicted 30 to 40 % too fast."""
    plan = make_plan(torchtitan[17].scenario)
    beside = run_plan(replace(plan, stack=replace(plan.stack, ring_in_turn=False))).step_s
    assert beside / torchtitan[17].published_s < 0.85
    assert abs(seconds(torchtitan[17]) / torchtitan[17].published_s - 1) < 0.1


# Vanilla and async rows of one configuration each; published gains 5.7, 9.2, 16.4 and 4.2 %.
ASYNC = [(10, 11), (18, 19), (20, 21), (22, 23)]


@pytest.mark.parametrize(("vanilla", "overlapped"), ASYNC)
def test_async_tp_gains_what_was_published_on_70b(torchtitan, vanilla, overlapped):
    before = simulate_step(torchtitan[vanilla].scenario)
    after = simulate_step(torchtitan[overlapped].scenario)
    exposed = before.breakdown_splits["exposed_communication"]
    exposed_s = sum(ms for kind, ms in exposed.items() if "tensor parallel" in kind) * 1e-3
    assert before.step_s - after.step_s <= exposed_s
    assert 1.04 <= before.step_s / after.step_s <= 1.17


def test_interleaved_beats_1f1b_on_405b(torchtitan):
    """Published 100 against 128 tokens/s (the paper: 130), each rounded: 1.27 to 1.31."""
    ratio = seconds(torchtitan[12]) / seconds(torchtitan[13])
    assert 127.5 / 100.5 <= ratio <= 130.5 / 99.5


# Selective with sequence parallelism against full recompute, which both fit into 80 GB.
@pytest.mark.parametrize(("full", "selective"), [(0, 1), (2, 3)])
def test_selective_recompute_beats_full(full, selective):
    rows = {row.number: row for row in rows_of(load_source("selective-recompute"))}
    one, other = simulate_step(rows[full].scenario), simulate_step(rows[selective].scenario)
    assert one.fits
    assert other.fits
    published = rows[full].published_s / rows[selective].published_s
    assert one.step_s / other.step_s == pytest.approx(published, rel=0.1)


@pytest.mark.parametrize("gpus", [8, 64])
@pytest.mark.parametrize("micro_batch_size", [1, 4])
def test_zero_3_is_never_faster_than_zero_2(gpus, micro_batch_size):
    settings = {
        "model": "llama3-8b", "gpus": gpus, "micro_batch_size": micro_batch_size,
        "recompute": "full",
    }  # fmt: skip
    two, three = (simulate_step(TrainScenario(zero=zero, **settings)).step_s for zero in (2, 3))
    assert three >= two * (1 - 1e-9)


@pytest.mark.parametrize(
    ("cp", "ring_mb", "ulysses_mb"), [(4, 403, 503), (8, 470, 294)], ids=["cp 4", "cp 8"]
)
def test_ulysses_sends_less_than_a_ring_from_where_it_should(cp, ring_mb, ulysses_mb):
    """131,072 tokens, 32 heads of 128, 8 KV heads: forward sends less once cp is above 5."""
    for context, want_mb in (("ring", ring_mb), ("ulysses", ulysses_mb)):
        scenario = TrainScenario(
            model="llama3-8b", gpus=cp, dp_shard=1, cp=cp, context=context, seq_len=131_072
        )
        result = simulate_step(scenario)
        layer = next(unit for unit in result.plan.units(0) if unit.layer >= 0)
        moved = result.writer.blocks.simulate(layer, "forward").moved
        assert sum(part.sent_bytes for part in moved.values()) / 1e6 == pytest.approx(
            want_mb, abs=0.5
        )
