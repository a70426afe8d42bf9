"""One rank's part of a layer: what divides, what travels, what stays whole."""

from collections import Counter

import pytest

from triosim.workload import SPLITS, Layout, block_of, load_model, parts_of

LLAMA = load_model("llama3-8b")
BATCH, SEQ = 2, 2048
MESSAGE = BATCH * SEQ * LLAMA.hidden * 2


def layer(layout=None, model=LLAMA, part="dense", **options):
    extra = {} if layout is None else {"layout": layout}
    return block_of(
        model, part, **{"batch": BATCH, "seq": SEQ, "implementation": "flash", **extra, **options}
    )


def collectives(block, phase):
    return [(op.collective, op.part) for op in block.ops if op.collective and op.phase == phase]


def test_a_block_is_made_once():
    assert layer() is layer()
    assert parts_of(LLAMA).count("dense") == 32


def test_t1_tensor_parallelism_sums_twice_each_way():
    block = layer(Layout(tp=8))
    for phase in ("forward", "backward"):
        assert collectives(block, phase) == [("all_reduce", "")] * 2
    assert {op.message_bytes for op in block.ops if op.collective} == {MESSAGE}
    assert {op.axis for op in block.ops if op.collective} == {"tp"}


def test_t1_sequence_parallelism_halves_each_sum_in_two():
    block = layer(Layout(tp=8, sequence_parallel=True))
    assert collectives(block, "forward") == [("all_gather", ""), ("reduce_scatter", "")] * 2
    again = [("all_gather", "regather")]
    there_and_back = [("all_gather", ""), *again, ("reduce_scatter", "")]
    assert Counter(collectives(block, "backward")) == Counter(2 * there_and_back)
    kept = layer(Layout(tp=8, sequence_parallel=True, keep_gathered=True))
    assert all(part == "" for _, part in collectives(kept, "backward"))
    assert kept.saved_bytes > block.saved_bytes


def test_t2_one_rank_sends_nothing():
    assert collectives(layer(), "forward") == collectives(layer(), "backward") == []


@pytest.mark.parametrize("tp", [2, 4, 8])
def test_products_and_attention_divide_exactly(tp):
    def flops(block, kinds):
        return sum(op.flops for op in block.ops if op.kind in kinds)

    assert flops(layer(Layout(tp=tp)), ("gemm", "attention")) * tp == flops(
        layer(), ("gemm", "attention")
    )
    norms = [flops(layer(Layout(tp=tp, sequence_parallel=on)), ("norm",)) for on in (False, True)]
    assert norms[0] == flops(layer(), ("norm",))
    assert norms[1] * tp == norms[0]


def test_rules_say_how_an_operator_divides():
    rules = {}
    for op in layer().forward:
        rules.setdefault(op.module.rpartition(".")[2], op.split)
    assert {op.split for part in parts_of(LLAMA) for op in layer(part=part).ops} <= set(SPLITS)
    for name in ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj"):
        assert rules[name] == "column"
    assert rules["o_proj"] == rules["down_proj"] == "row"
    assert rules["input_layernorm"] == rules["post_attention_layernorm"] == "sequence"
    assert rules["self_attn"] == "heads"


def test_module_paths_are_those_of_transformers():
    paths = {value.path for value in layer().parameters}
    assert paths == {
        "model.layers.{}." + rest
        for rest in (
            "input_layernorm.weight", "self_attn.q_proj.weight", "self_attn.k_proj.weight",
            "self_attn.v_proj.weight", "self_attn.o_proj.weight",
            "post_attention_layernorm.weight", "mlp.gate_proj.weight", "mlp.up_proj.weight",
            "mlp.down_proj.weight",
        )
    }  # fmt: skip


def test_t3_kv_heads_are_copied_where_there_are_fewer_than_ranks():
    """The seminar's T3: 32 heads, 8 KV heads of 128, 16 ranks: 512 rows of 384."""
    projections = ("q_proj.weight", "k_proj.weight", "v_proj.weight")
    weights = [v for v in layer(Layout(tp=16)).parameters if v.path.endswith(projections)]
    rows = sum(weight.shape[0] for weight in weights)
    assert rows == 512


@pytest.mark.parametrize("cp", [2, 4])
def test_context_parallelism_divides_tokens_and_pairs(cp):
    whole, part = layer(), layer(Layout(cp=cp))
    assert part.forward_flops * cp == whole.forward_flops
    assert part.saved_bytes * cp == whole.saved_bytes
    assert part.parameter_count == whole.parameter_count
    (one,), (all_,) = ([op for op in b.forward if op.kind == "attention"] for b in (part, whole))
    keys = all_.kernel.reads[1]
    assert one.kernel.reads[1].shape == keys.shape  # every rank meets every key
    assert one.kernel.reads[1].storage.bytes * cp == keys.storage.bytes  # and keeps its own


@pytest.mark.parametrize(("part", "regions"), [("dense", 2), ("head", 1)])
def test_backward_of_a_product_is_two_products(part, regions):
    block = layer(part=part)
    forward = [op for op in block.forward if op.kind == "gemm"]
    for half in ("dgrad", "wgrad"):
        found = [op for op in block.backward if op.part == half]
        assert sum(op.flops for op in found) == sum(op.flops for op in forward)
        assert len(found) == len(forward)
        for op in found:
            m, n, k = op.work.shape
            assert op.flops == 2 * m * n * k


def test_weight_gradients_have_the_shape_of_their_weights():
    for part in ("embedding", "dense", "norm", "head"):
        block = layer(part=part)
        for weight, gradient in zip(block.parameters, block.gradients, strict=True):
            assert gradient.numel == weight.numel


def test_e1_tokens_travel_to_experts_and_back():
    mixtral = load_model("mixtral-8x7b")
    block = layer(Layout(ep=4), model=mixtral, part="moe")
    for phase in ("forward", "backward"):
        sent = [op for op in block.ops if op.collective == "all_to_all" and op.phase == phase]
        assert len(sent) == 2
        # tokens x top_k x h elements a way, of which (e - 1)/e leave the rank
        assert {op.message_bytes for op in sent} == {BATCH * SEQ * 2 * mixtral.hidden * 2}
        assert {op.axis for op in sent} == {"ep"}


def test_e2_memory_counts_all_experts_and_flops_the_chosen():
    mixtral = load_model("mixtral-8x7b")
    whole, part = (layer(Layout(ep=e), model=mixtral, part="moe") for e in (1, 8))
    grouped = [sum(op.flops for op in b.ops if "grouped" in op.name.lower()) for b in (whole, part)]
    assert grouped[0] == grouped[1] == 3 * 3 * 2 * (BATCH * SEQ * 2) * 4096 * 14336
    assert whole.parameter_count - part.parameter_count == 7 * 3 * 4096 * 14336


def test_a_head_divides_by_vocabulary():
    options = {"part": "head", "batch": 1}
    whole, gathered, parts = (
        layer(layout, **options)
        for layout in (Layout(), Layout(tp=8), Layout(tp=8, loss_parallel=True))
    )
    assert whole.parameter_count == 8 * parts.parameter_count
    assert ("all_gather", "") in collectives(gathered, "forward")
    assert collectives(parts, "forward") == []
    assert parts.exit.numel * 8 == whole.exit.numel == gathered.exit.numel
    loss = layer(Layout(tp=8, loss_parallel=True), part="loss", batch=1)
    assert collectives(loss, "forward") == [("all_reduce", "")] * 3
