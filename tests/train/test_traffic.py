"""What ranks send, and how long it takes on ideal links: ORACLES Z2-Z4, T1, T2, X1, E1, P5."""

from __future__ import annotations

import pytest

from triosim.errors import ConfigError
from triosim.train.owned import padded

PARAMETERS = 8_030_261_248  # Llama-3-8B: its model card


@pytest.mark.parametrize(
    ("settings", "gigabytes"),
    [
        ({"gpus": 8}, 42.2),
        ({"gpus": 128}, 47.8),
        ({"gpus": 8, "dp_replicate": 8, "dp_shard": 1}, 28.1),
        ({"gpus": 8, "zero": 1}, 28.1),
        ({"gpus": 8, "zero": 2}, 28.1),
        ({"gpus": 8, "reshard": False}, 28.1),
    ],
)
def test_bytes_of_data_parallelism(step, settings, gigabytes):
    """SEMINAR F2 and ORACLES Z2: 3 or 2 Psi (N-1)/N elements of 2 bytes."""
    result = step(model="llama3-8b", recompute="full", **settings)
    sent = result.sent_bytes("parameters") + result.sent_bytes("gradients")
    assert sent / 1e9 == pytest.approx(gigabytes, abs=0.05)


def test_gathers_repeat_with_every_micro_batch_and_ddp_reduces_once(step):
    once, four = (step(gpus=4, global_batch=4 * m) for m in (1, 4))
    assert four.sent_bytes("parameters") == pytest.approx(4 * once.sent_bytes("parameters"))
    assert four.sent_bytes("gradients") == pytest.approx(4 * once.sent_bytes("gradients"))
    once, four = (step(gpus=4, dp_replicate=4, dp_shard=1, global_batch=4 * m) for m in (1, 4))
    assert four.sent_bytes("gradients") == pytest.approx(once.sent_bytes("gradients"))


def test_replicas_reduce_their_shards(step):
    """ORACLES Z4: gather and scatter inside, then an all-reduce of Psi/k over r."""
    result = step(model="llama3-8b", gpus=32, dp_replicate=4, recompute="full")
    inside = 3 * PARAMETERS * 2 * 7 / 8
    between = 2 * (PARAMETERS / 8) * 2 * 3 / 4
    sent = result.sent_bytes("parameters") + result.sent_bytes("gradients")
    assert sent == pytest.approx(inside + between, rel=1e-6)


@pytest.mark.parametrize("settings", [{"gpus": 1}, {"gpus": 8, "tp": 8, "dp_shard": 1}])
def test_one_data_parallel_rank_sends_no_parameters(step, settings):
    """ORACLES Z3."""
    result = step(model="llama3-8b", **settings)
    assert result.plan.zero == 0
    assert result.sent_bytes("parameters") == result.sent_bytes("gradients") == 0


def layers_tp_ms(result, layers):
    blocks, unit = result.writer.blocks, result.plan.virtual_stages[0][1]
    passes = [blocks.simulate(unit, kind) for kind in ("forward", "backward")]
    busy = [m.busy_s for p in passes for (_, why), m in p.moved.items() if why == "tensor parallel"]
    return sum(busy) * layers * 1e3


@pytest.mark.parametrize("sequence_parallel", [False, True])
@pytest.mark.parametrize(("recompute", "milliseconds"), [("none", 66.8), ("full", 100.2)])
def test_tensor_parallel_time(step, sequence_parallel, recompute, milliseconds):
    """SEMINAR T1: b 2, s 8192, h 4096, t 8 at 450 GB/s; two all-reduces a layer and direction."""
    result = step(
        model="llama3-8b", gpus=8, tp=8, micro_batch_size=2, recompute=recompute,
        sequence_parallel=sequence_parallel,
    )  # fmt: skip
    assert layers_tp_ms(result, 32) == pytest.approx(milliseconds, abs=0.06)


def test_one_all_reduce_of_a_layer(step):
    """SEMINAR T1: 0.522 ms."""
    result = step(model="llama3-8b", gpus=8, tp=8, micro_batch_size=2)
    size = 2 * 8192 * 4096 * 2
    assert result.writer.wires.planned("all-reduce", "tp", size).time_s * 1e3 == pytest.approx(
        0.522, abs=0.0005
    )


def test_one_tensor_parallel_rank_sends_nothing(step):
    assert step(gpus=1).communication_bytes == 0


def context_bytes(step, context, cp, **settings):
    """Bytes that a rank sends for context parallelism in one layer's forward pass."""
    result = step(context=context, cp=cp, gpus=cp, dp_shard=1, **settings)
    unit = next(u for u in result.plan.virtual_stages[0] if u.layer == 0)
    moved = result.writer.blocks.simulate(unit, "forward").moved
    return sum(m.sent_bytes for (_, why), m in moved.items() if why == "context parallel")


@pytest.mark.parametrize(("cp", "ring", "ulysses"), [(4, 403, 503), (8, 470, 294)])
def test_bytes_of_context_parallelism(step, cp, ring, ulysses):
    """SEMINAR L1: s 131,072, h 4096, KV 1024 in bf16, MB of a rank and layer."""
    long = {"model": "llama3-8b", "seq_len": 131_072}
    for context in ("ring", "ring-zigzag", "allgather"):
        assert context_bytes(step, context, cp, **long) / 1e6 == pytest.approx(ring, abs=0.5)
    assert context_bytes(step, "ulysses", cp, **long) / 1e6 == pytest.approx(ulysses, abs=0.5)


def sent_by_kind(step, context, cp, kind, **settings):
    """Messages and bytes of a rank for context parallelism in one pass of one layer."""
    result = step(context=context, cp=cp, gpus=cp, dp_shard=1, **settings)
    unit = next(u for u in result.plan.virtual_stages[0] if u.layer == 0)
    moved = result.writer.blocks.simulate(unit, kind).moved
    return {
        how: (m.transfers, m.sent_bytes)
        for (how, why), m in moved.items()
        if why == "context parallel"
    }


@pytest.mark.parametrize("cp", [2, 4, 8])
@pytest.mark.parametrize("context", ["ring-pass-q", "ring-zigzag-pass-q"])
def test_passing_queries(step, context, cp):
    """s b h elements over c ranks: queries in c-1 hops, results and a float32 a row and head home.

    Backward: queries, gradients of results and two float32 go round; queries' gradients return.
    """
    tokens, hidden, heads = 2048 / cp, 1024, 16
    forward = sent_by_kind(step, context, cp, "forward")
    assert forward["send/recv"] == (cp - 1, pytest.approx((cp - 1) * tokens * hidden * 2))
    home = tokens * (hidden * 2 + heads * 4)
    assert forward["all-to-all"] == (1, pytest.approx((cp - 1) * home))
    backward = sent_by_kind(step, context, cp, "backward")
    visit = tokens * (2 * hidden * 2 + 2 * heads * 4)
    assert backward["send/recv"] == (cp - 1, pytest.approx((cp - 1) * visit))
    assert backward["all-to-all"] == (1, pytest.approx((cp - 1) * tokens * hidden * 2))


@pytest.mark.parametrize("cp", [2, 4, 8])
def test_passing_keys(step, cp):
    """c-1 hops of keys and values; in backward as many, and their gradients one hop more."""
    local = 2048 / cp * 2 * 256 * 2  # four KV heads of 64, two of them
    forward = sent_by_kind(step, "ring", cp, "forward")
    assert forward == {"send/recv": (cp - 1, pytest.approx((cp - 1) * local))}
    backward = sent_by_kind(step, "ring", cp, "backward")
    assert backward == {"send/recv": (cp, pytest.approx((cp - 1) * local + cp * local))}


def test_a_ring_that_computes_longer_than_it_sends_hides_all_but_the_return(step):
    """Queries: the all-to-all waits for the last step; keys in forward: nothing is exposed."""
    long = {"model": "llama3-8b", "seq_len": 131_072, "cp": 4, "gpus": 4, "dp_shard": 1}
    for context in ("ring-zigzag", "ring-zigzag-pass-q"):
        result = step(context=context, **long, constants={"overlap_slowdown": 0.0})
        unit = next(u for u in result.plan.virtual_stages[0] if u.layer == 0)
        made = result.writer.blocks.simulate(unit, "forward")
        exposed = {p.key: p.seconds for p in made.parts if p.kind == "exposed_communication"}
        if context == "ring-zigzag":
            assert exposed == {}
        else:
            tokens = 131_072 / 4
            size = 3 * tokens * (4096 * 2 + 32 * 4)
            want = {("all-to-all", "context parallel"): pytest.approx(size / 450e9)}
            assert exposed == want


@pytest.mark.parametrize(("kv_heads", "cp", "cheaper"), [(16, 2, False), (16, 4, True)])
def test_ulysses_is_cheaper_beyond_1_plus_h_over_kv(step, kv_heads, cp, cheaper):
    """ORACLES X1: c > 2 for plain attention; equal there."""
    both = [context_bytes(step, c, cp, kv_heads=kv_heads) for c in ("ulysses", "ring")]
    assert (both[0] < both[1] * (1 - 1e-9)) is cheaper


def test_ulysses_replicates_keys_where_ranks_outnumber_heads(step):
    """ORACLES X1: max(h_kv/c, head size) per rank, so (2h/c + 2d)(c-1)/c of sb elements."""
    cp, head, tokens = 8, 64, 2048
    sent = context_bytes(step, "ulysses", cp, kv_heads=2)
    elements = (2 * 1024 / cp + 2 * head) * (cp - 1) / cp * tokens
    assert sent == pytest.approx(2 * elements)


def test_the_slowest_rank_of_a_contiguous_ring(step):
    """ORACLES X3: (2c-1)/c of the mean work on attention; zig-zag has the mean."""

    def attention_ms(context):
        result = step(context=context, cp=8, gpus=8, dp_shard=1, seq_len=131_072)
        unit = next(u for u in result.plan.virtual_stages[0] if u.layer == 0)
        rows = list(result.writer.blocks.simulate(unit, "forward").rows())
        return sum(b - a for stream, name, _, a, b in rows
                   if stream == "compute" and "attention" in name)  # fmt: skip

    # Transfers beside attention slow it, in both cases over most of its time.
    assert attention_ms("ring") / attention_ms("ring-zigzag") == pytest.approx(15 / 8, rel=0.05)
    passed = [attention_ms(f"ring{way}-pass-q") for way in ("", "-zigzag")]
    assert passed[0] / passed[1] == pytest.approx(15 / 8, rel=0.05)


def test_expert_parallelism_sends_tokens_there_and_back(step):
    """ORACLES E1: 2 tokens topk h (e-1)/e elements forward, again backward."""
    result = step(gpus=4, ep=4, experts=8, top_k=2, expert_ffn=1024, tied=False, recompute="none")
    rows = [row for row in result.communication if row.purpose == "experts"]
    elements = 2 * 2048 * 2 * 1024 * 3 / 4
    sent = sum(row.bytes for row in rows) / 4
    assert sent == pytest.approx(4 * 2 * elements * 2)  # layers, both passes, bytes


def test_a_boundary_carries_the_activations_of_a_micro_batch(step):
    """ORACLES P5: s b h bytes, over t where tensor-parallel ranks hold parts of the tokens."""
    for settings, ways in (({}, 1), ({"tp": 2, "sequence_parallel": True}, 2)):
        tp = settings.get("tp", 1)
        result = step(gpus=2 * tp, pp=2, dp_shard=1, global_batch=4, **settings)
        sizes = [row.bytes for row in result.communication if row.purpose == "activations"]
        assert sum(sizes) == pytest.approx(4 * 2048 * 1024 * 2 * tp / ways)


def test_a_skew_loads_the_busiest_expert_rank(step):
    """ORACLES E1: balanced routing minimises the busiest rank."""
    settings = {"gpus": 4, "ep": 4, "experts": 8, "top_k": 2, "expert_ffn": 1024}
    settings["constants"] = {"launch_us": 0}  # else the CPU sets the pace of so small layers
    even, skewed = (step(**settings, expert_skew=skew) for skew in (1, 1.5))
    assert skewed.step_s > even.step_s
    assert skewed.sent_bytes("experts") == pytest.approx(1.5 * even.sent_bytes("experts"))
    with pytest.raises(ConfigError, match=r"expert_skew 5\.0: must be at most ep, 4"):
        step(**settings, expert_skew=5)


def test_a_tied_table_is_added_up_over_first_and_last_stage(step):
    settings = {"gpus": 4, "pp": 4, "dp_shard": 1, "global_batch": 4}
    tied, untied = (step(**settings, tied=tied) for tied in (True, False))
    table = 16_000 * 1024 * 2
    rows = [
        sum(
            row.bytes
            for row in r.communication
            if (row.kind, row.purpose) == ("all-reduce", "gradients")
        )
        for r in (tied, untied)
    ]
    assert rows == [pytest.approx(2 * table), 0]  # both ranks send the table once
    assert tied.writer.state.count(3) == untied.writer.state.count(3)


@pytest.mark.parametrize("prefill", [False, True])
def test_traffic_of_tensor_and_sequence_parallelism(step, prefill):
    """SEMINAR L3: 3.5 and 0.273 in units of s h, 4:1 grouped queries, 8 ways.

    Both together, 4 x 2: two all-reduces of half the tokens, 1.5, and all-to-alls of a quarter of
    the heads (ORACLES X1), 2.5/16.
    """

    def elements(**settings):
        result = step(
            model="llama3-8b", gpus=8, dp_shard=1, context="ulysses", prefill=prefill, **settings
        )
        unit = next(u for u in result.plan.virtual_stages[0] if u.layer == 0)
        moved = result.writer.blocks.simulate(unit, "forward").moved.values()
        return sum(m.sent_bytes for m in moved) / 2 / (8192 * 4096)

    assert elements(tp=8) == pytest.approx(3.5)
    assert elements(cp=8) == pytest.approx(0.273, abs=0.0005)
    assert elements(tp=4, cp=2) == pytest.approx(1.5 + 2.5 / 16)


def test_rows_that_do_not_divide_are_padded_in_the_gather(step):
    """FSDP2: Shard(0) of every parameter, each rank with as many rows as the first.

    Over 3 ranks 1024 rows are 342, 256 are 86, 4096 are 1366 and 16,000 are 5334.
    """
    result = step(gpus=3)
    held = 4 * (2 * 342 + (2 * 342 + 2 * 86) * 1024 + (2 * 1366 * 1024 + 342 * 4096))
    held += 2 * 5334 * 1024 + 342  # embedding, head and last norm
    sent = 2 * 2 * held  # to two others, in 2 bytes
    assert result.sent_bytes("parameters") == pytest.approx(2 * sent)  # both ways
    assert result.sent_bytes("gradients") == pytest.approx(sent)
    resident = result.writer.state.resident(0)
    assert resident["parameters"] == 2 * held
    assert resident["optimizer"] == 12 * held


def test_a_flat_parameter_is_padded_once(step):
    """FSDP1: a layer's parameters end to end, to a multiple of the ranks."""
    result = step(gpus=3, fsdp=1)
    layer = 2 * 1024 + (2 * 1024 + 2 * 256) * 1024 + 3 * 4096 * 1024
    units = [layer] * 4 + [16_000 * 1024, 16_000 * 1024 + 1024]
    held = sum(-(-count // 3) for count in units)
    assert result.sent_bytes("gradients") == pytest.approx(2 * 2 * held)
    assert result.writer.state.resident(0)["parameters"] == 2 * held
    assert held < step(gpus=3).writer.state.resident(0)["parameters"] / 2


@pytest.mark.parametrize("fsdp", [1, 2])
def test_more_ranks_than_rows(step, fsdp):
    """48 ranks and a router of 8 rows: one row each, of which 40 are padding; flat hardly any."""
    settings = {"experts": 8, "top_k": 2, "expert_ffn": 1536, "hidden": 768, "heads": 12}
    result = step(gpus=48, ep=8, fsdp=fsdp, **settings)
    unit = next(u for u in result.plan.virtual_stages[0] if u.layer == 0)
    owned = result.writer.blocks.owned(unit)
    assert (8, 768) in owned.dense
    router = 48 * 768 if fsdp == 2 else 8 * 768
    rest = 2 * 768 + (2 * 768 + 2 * 256) * 768  # all of which 48 divides but the keys' 256 rows
    if fsdp == 2:
        rest += 2 * (48 * 6 - 256) * 768
    dense, experts = padded(result.plan, owned)
    assert dense == -(-(rest + router) // 48) * 48
    # One expert a rank and six ranks that share it: by its 3072 and 768 rows.
    assert experts == 3 * 768 * 1536
