"""Forward only: Arctic Ulysses' question, time to first token under TP, SP and both."""

from __future__ import annotations

import pytest

from triosim.train import TrainScenario, train


def first_token(**settings):
    return train(
        TrainScenario(model="llama3-70b", gpus=8, prefill=True, context="ulysses", **settings)
    )


def test_nothing_runs_backward_and_memory_holds_weights_and_keys():
    result = first_token(tp=8)
    assert result.breakdown_splits["compute"]["backward"] == 0
    assert result.breakdown_splits["compute"]["optimizer"] == 0
    held = result.memory_breakdown_gib
    assert held["parameters"] * 2**30 * 8 == pytest.approx(2 * 70.55e9, rel=1e-3)
    # 80 layers, 8,192 tokens, one KV head of 128 a rank, keys and values in 2 bytes.
    assert held["activations"] * 2**30 == pytest.approx(80 * 8192 * 2 * 128 * 2)
    assert held["gradients"] == held["optimizer"] == 0
    assert all(check.passed for check in result.checks)


def test_sequence_parallelism_reaches_the_first_token_sooner_and_holds_more():
    tensor, both, sequence = (first_token(tp=tp, cp=cp) for tp, cp in ((8, 1), (4, 2), (1, 8)))
    assert sequence.step_ms < both.step_ms < tensor.step_ms
    assert sequence.communication_bytes < both.communication_bytes < tensor.communication_bytes
    assert sequence.peak_memory_bytes > both.peak_memory_bytes > tensor.peak_memory_bytes
    assert all(check.passed for r in (both, sequence) for check in r.checks)


def test_stages_pass_a_prompt_on():
    one, two = (
        train(TrainScenario(gpus=pp, pp=pp, dp_shard=1, global_batch=4, prefill=True))
        for pp in (1, 2)
    )
    assert one.step_s / 2 < two.step_s < one.step_s
    assert two.breakdown["bubble"] > 0
    assert all(check.passed for check in two.checks)
