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


def test_the_first_token_waits_for_what_the_layers_send():
    """SEMINAR L3 in time: elements of 2 bytes over 450 GB/s, in each of 80 layers.

    Grouped 8:1, 8 ways: 3.5 s h under tensor parallelism (the embedding's table adds 1.75 once),
    (2 + 2/8) 7/64 s h under sequence parallelism; nothing is hidden.
    """
    for settings, elements in (
        ({"tp": 8}, 80 * 3.5 + 1.75),
        ({"cp": 8}, 80 * (2 + 2 / 8) * 7 / 64),
    ):
        result = first_token(machine="switch", constants={"launch_us": 0}, **settings)
        waited_ms = 1e3 * elements * 8192 * 8192 * 2 / 450e9
        assert result.breakdown["exposed_communication"] == pytest.approx(waited_ms, rel=1e-6)


@pytest.mark.parametrize(("tp", "cp", "heads"), [(8, 1, 1), (1, 8, 1), (4, 4, 1), (2, 2, 2)])
def test_every_rank_keeps_at_least_one_kv_head(tp, cp, heads):
    """Eight KV heads on more ranks are copied: keys and values of 8,192 tokens, 128 wide."""
    result = train(
        TrainScenario(
            model="llama3-70b", gpus=tp * cp, tp=tp, cp=cp, prefill=True, context="ulysses"
        )
    )
    kept = result.memory_breakdown_gib["activations"] * 2**30
    assert kept == pytest.approx(80 * heads * 8192 * 2 * 128 * 2)


def test_stages_pass_a_prompt_on():
    one, two = (
        train(TrainScenario(gpus=pp, pp=pp, dp_shard=1, global_batch=4, prefill=True))
        for pp in (1, 2)
    )
    assert one.step_s / 2 < two.step_s < one.step_s
    assert two.breakdown["bubble"] > 0
    assert all(check.passed for check in two.checks)
