"""Recomputation for the lab: bytes of a layer against Korthikanti et al., and what memory buys."""

from __future__ import annotations

from dataclasses import replace

import pytest

from triosim.errors import ConfigError
from triosim.lab.recompute_step import (
    EVERY,
    GPT,
    LLAMA,
    MODES,
    NOTHING,
    Setup,
    layer_bytes,
    layer_gib,
    points,
    recompute_step,
)
from triosim.train import TrainScenario, simulate_step

GPT_SETUP = Setup(model=GPT, mode=NOTHING, seq=2048, batch=4, tp=8, shards=2)
LLAMA_SETUP = Setup(model=LLAMA, mode=NOTHING, seq=4096, batch=1, tp=1, shards=8)
SBH = 2048 * 4 * 6144
SCORES = 5 * 64 * 2048**2 * 4 / 8


def test_a_layer_of_the_22b_keeps_what_the_paper_says() -> None:
    """arXiv 2205.05198: sbh(10 + 24/t + 5as/ht), without the scores, and 2sbh."""
    found = layer_bytes(GPT_SETUP)
    whole = SBH * (10 + 24 / 8) + SCORES
    assert found.by_mode["nothing"] == pytest.approx(whole / 1e9, rel=1e-3)
    assert found.by_mode["selective: attention"] == pytest.approx((whole - SCORES) / 1e9, rel=2e-3)
    assert found.by_mode["full"] == pytest.approx(2 * SBH / 1e9)
    assert sum(item.gb for item in found.items) == pytest.approx(found.by_mode["nothing"])


def test_sequence_parallelism_divides_what_is_whole_without_it() -> None:
    """arXiv 2205.05198, 22B: 66.77 % of everything with it, 16.14 % selective too."""
    found = layer_bytes(replace(GPT_SETUP, sequence_parallel=True)).by_mode
    whole = layer_bytes(GPT_SETUP).by_mode["nothing"]
    assert found["nothing"] / whole == pytest.approx(0.6677, rel=1e-3)
    assert found["selective: attention"] / whole == pytest.approx(0.1614, rel=1e-3)


def test_what_grows_with_the_square_is_scores_and_their_products() -> None:
    squared = [item for item in layer_bytes(GPT_SETUP).items if item.squared]
    # Beside the scores the products keep queries, keys and values: 6sbh/t.
    assert sum(item.gb for item in squared) * 1e9 == pytest.approx(SCORES + 6 * SBH / 8, rel=0.08)


def test_fused_attention_has_nothing_that_grows_with_the_square() -> None:
    found = layer_bytes(LLAMA_SETUP)
    assert not any(item.squared for item in found.items)
    assert sum(item.gb for item in found.items) == pytest.approx(found.by_mode["nothing"])
    assert found.by_mode["selective: attention"] == pytest.approx(
        found.by_mode["nothing"], rel=2e-3
    )


def test_every_third_layer_runs_again() -> None:
    setup = replace(LLAMA_SETUP, mode=EVERY, period=3)
    kept = layer_gib(recompute_step(setup))
    found = layer_bytes(LLAMA_SETUP).by_mode
    expected = [found["full" if layer % 3 == 0 else "nothing"] for layer in range(32)]
    assert [k * 2**30 / 1e9 for k in kept] == pytest.approx(expected)


def test_full_recomputation_computes_a_forward_again() -> None:
    """SEMINAR R2: a third more, but for embedding and head."""
    result = recompute_step(replace(GPT_SETUP, mode="full"))
    assert result.hardware_flops / result.model_flops == pytest.approx(4 / 3, rel=0.02)


@pytest.mark.parametrize("seq", [512, 2048])
def test_the_model_with_more_positions_is_the_same(seq: int) -> None:
    own = recompute_step(replace(GPT_SETUP, seq=seq))
    direct = simulate_step(
        TrainScenario(
            model="megatron-22b", gpu="a100-80gb", machine="dgx-a100", stack="megatron-2021",
            precision="fp16", gpus=16, tp=8, zero=1, dp_shard=2, seq_len=seq, micro_batch_size=4,
            global_batch=32,
        )
    )  # fmt: skip
    assert own.step_s == direct.step_s
    assert own.peak_memory_bytes == direct.peak_memory_bytes


def test_longer_sequences_than_the_model_knows_are_simulated() -> None:
    kept = layer_bytes(replace(GPT_SETUP, seq=4096, batch=1)).by_mode["nothing"]
    sbh = SBH / 2
    assert kept * 1e9 == pytest.approx(sbh * 13 + 5 * 64 * 4096**2 / 8, rel=1e-3)


def test_points_fall_in_memory_and_rise_in_throughput_with_the_micro_batch() -> None:
    found = points(LLAMA_SETUP, (1, 2), (8,))
    assert [point.mode for point in found] == [mode for mode in MODES for _ in (1, 2)]
    by_mode = {mode: [p for p in found if p.mode == mode] for mode in MODES}
    for one, two in by_mode.values():
        assert two.peak_gib > one.peak_gib
        assert two.tokens_per_s > one.tokens_per_s
    nothing, full = (by_mode[mode][0] for mode in (NOTHING, "full"))
    assert full.peak_gib < nothing.peak_gib
    # A third more work, at most: three quarters of the throughput.
    assert 0.74 < full.tokens_per_s / nothing.tokens_per_s < 0.9


def test_fewer_shards_hold_more() -> None:
    eight, four = points(LLAMA_SETUP, (1,), (8, 4))[:2]
    # 16 bytes of 8.03 billion parameters; gathered layers and activations stay.
    more_gib = 16 * 8_030_261_248 * (1 / 4 - 1 / 8) / 2**30
    assert four.peak_gib - eight.peak_gib == pytest.approx(more_gib, rel=0.15)


def test_an_unknown_mode_has_no_step() -> None:
    with pytest.raises(ConfigError, match="mode half: must be one of nothing"):
        recompute_step(replace(GPT_SETUP, mode="half"))
