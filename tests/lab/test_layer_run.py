"""A layer on the engine, and prompts: what is sent and waited for agrees with closed forms."""

from __future__ import annotations

import pytest

from triosim.errors import ConfigError
from triosim.lab.causal import owners, work_by_rank
from triosim.lab.first_token import first_token, first_tokens
from triosim.lab.layer_run import HEAD, layer_run, layer_runs
from triosim.train import TrainScenario

HIDDEN, SEQ, BATCH, VOCAB = 4096, 8192, 2, 128_256
MESSAGE = 2 * SEQ * BATCH * HIDDEN  # bytes of s b h elements in bf16


def tensor(tp: int, **settings: object) -> TrainScenario:
    """A layer of Llama 3 8B on links without latency."""
    return TrainScenario(
        model="llama3-8b", layers=1, machine="switch", gpus=tp, tp=tp, seq_len=SEQ,
        micro_batch_size=BATCH, **settings,
    )  # fmt: skip


def context(cp: int, way: str, **settings: object) -> TrainScenario:
    return TrainScenario(
        model="llama3-8b", layers=1, machine="switch", gpus=cp, cp=cp, dp_shard=1, seq_len=65_536,
        context=way, **settings,
    )  # fmt: skip


@pytest.mark.parametrize("tp", [2, 8])
@pytest.mark.parametrize("settings", [{}, {"sequence_parallel": True}])
def test_two_sums_a_layer_each_way(tp: int, settings: dict[str, bool]) -> None:
    """ORACLES T1: 2(t-1)/t of the message twice, whether summed at once or scattered first."""
    run = layer_run(tensor(tp, **settings))
    assert run.passes == ("forward", "backward")
    assert run.sent_bytes[0] == pytest.approx(2 * 2 * (tp - 1) / tp * MESSAGE)


def test_one_rank_sends_nothing_and_waits_for_nobody() -> None:
    run = layer_run(tensor(1))
    assert run.sent_bytes == (0, 0)
    assert run.exposed_ms == 0


def test_what_is_exposed_is_the_part_without_a_kernel() -> None:
    """All-reduces hide behind nothing: twice their bytes over 450 GB/s, both ways."""
    run = layer_run(tensor(8))
    moved_ms = sum(end - start for stream, *_, start, end in run.rows if stream != "compute")
    assert run.exposed_ms == pytest.approx(moved_ms)
    assert run.exposed_ms == pytest.approx(4 * 2 * 7 / 8 * MESSAGE / 450e9 * 1e3, rel=1e-6)


def test_async_tp_hides_a_part_of_it() -> None:
    plain, hidden = layer_runs(
        [tensor(8, sequence_parallel=True), tensor(8, sequence_parallel=True, async_tp=True)]
    )
    assert hidden.sent_bytes[0] == pytest.approx(plain.sent_bytes[0])
    assert hidden.exposed_ms < plain.exposed_ms


def test_rows_lie_in_their_passes_one_after_the_other() -> None:
    run = layer_run(tensor(4, sequence_parallel=True))
    kernels = [row for row in run.rows if row[0] == "compute"]
    ends = [end for *_, end in kernels]
    assert ends == sorted(ends)
    assert max(end for *_, end in run.rows) <= run.total_ms * (1 + 1e-9)
    first_backward = min(row[3] for row in kernels if row[2] == "backward")
    assert first_backward == pytest.approx(1e3 * run.seconds[0], rel=0.05)


def test_loss_parallel_neither_gathers_nor_keeps_the_logits() -> None:
    whole, parts = (
        layer_run(tensor(8, sequence_parallel=True, loss_parallel=parallel), HEAD)
        for parallel in (False, True)
    )
    # A rank sends its eighth of the logits to each of the seven others.
    logits = 2 * BATCH * SEQ * VOCAB
    assert whole.sent_bytes[0] - parts.sent_bytes[0] == pytest.approx(7 / 8 * logits, rel=1e-3)
    assert whole.kept_bytes - parts.kept_bytes > 1.7 * logits


@pytest.mark.parametrize("cp", [2, 8])
def test_rings_and_ulysses_send_what_the_oracles_say(cp: int) -> None:
    """ORACLES X1: h 4096, h_kv 1024."""
    ring, ulysses = layer_runs([context(cp, "ring-zigzag"), context(cp, "ulysses")])
    elements = 65_536 * 2
    assert ring.sent_bytes[0] == pytest.approx(2 * (cp - 1) / cp * elements * 1024)
    wide = 2 * 4096 + 2 * 1024
    assert ulysses.sent_bytes[0] == pytest.approx(wide * (cp - 1) / cp**2 * elements)


def test_a_prefill_has_no_backward() -> None:
    run = layer_run(context(4, "ulysses", prefill=True))
    assert run.passes == ("forward",)
    assert len(run.seconds) == 1


@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
def test_causal_work_is_that_of_counted_pairs(ranks: int) -> None:
    """Every pair of a query and an earlier key, counted one by one; the diagonal is a half."""
    for zigzag in (False, True):
        parts = owners(ranks, zigzag=zigzag)
        length = 4  # tokens of a chunk
        pairs = [0.0] * ranks
        for query in range(length * len(parts)):
            pairs[parts[query // length]] += query + 0.5
        mean = sum(pairs) / ranks
        assert work_by_rank(ranks, zigzag=zigzag) == pytest.approx([p / mean for p in pairs])


def test_contiguous_parts_are_as_uneven_as_the_oracle() -> None:
    """ORACLES X3: (2c-1)/c for the last, all even with zig-zag."""
    assert work_by_rank(8, zigzag=False)[-1] == pytest.approx(1.875)
    assert work_by_rank(8, zigzag=True) == pytest.approx([1.0] * 8)
    with pytest.raises(ConfigError, match="ranks"):
        work_by_rank(0, zigzag=False)


def test_prompts_wait_for_what_their_layers_send() -> None:
    """SEMINAR L3 in time, 32 layers, 4:1 grouped queries; the embedding adds 1.75 under TP."""
    prompts = [
        TrainScenario(
            model="llama3-8b", gpus=8, dp_shard=1, prefill=True, context="ulysses", seq_len=SEQ,
            machine="switch", constants={"launch_us": 0}, tp=tp, cp=cp,
        )
        for tp, cp in ((8, 1), (1, 8))
    ]  # fmt: skip
    heads, tokens = first_tokens(prompts)
    for one, elements in ((heads, 32 * 3.5 + 1.75), (tokens, 32 * 2.5 * 7 / 64)):
        waited_ms = 1e3 * elements * SEQ * HIDDEN * 2 / 450e9
        assert one.exposed_ms == pytest.approx(waited_ms, rel=1e-6)
        # Keys and values of 8,192 tokens, one head of 128 a rank, in each of 32 layers.
        assert one.keys_gib * 2**30 == pytest.approx(32 * SEQ * 2 * 128 * 2)
        assert one.kv_heads == 1
    assert tokens.weights_gib > 7 * heads.weights_gib
    assert first_token(prompts[0]) == heads
