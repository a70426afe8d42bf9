"""The lab on tensor parallelism: what a layer sends, over how many ranks, with which heads."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import streamlit as st

from dashboard.cards import show_cards
from dashboard.lab.desk import Desk
from dashboard.lab.lab import Cause, Lab, choice
from dashboard.lab.layers import (
    GPUS_PER_HOST,
    MODELS,
    View,
    draw_views,
    runs_of,
    scenario,
    show_lanes,
)
from triosim.errors import counted
from triosim.figures.lab_heads import heads_by_rank
from triosim.figures.lab_layers import stacked_times
from triosim.lab.layer_run import HEAD
from triosim.lab.tensor import BATCH, SEQ, TP
from triosim.workload import Layout, block_of, load_model

A_LAYER, HOSTS, HEADS, LOSS = "A layer", "Inside and across hosts", "Heads", "Head and loss"
DEGREES = (1, 2, 4, 8, 16, 32)
WAYS: Mapping[str, Mapping[str, Any]] = {
    "Column, row": {},
    "Sequence parallel": {"sequence_parallel": True},
    "Async TP": {"sequence_parallel": True, "async_tp": True},
}


def _settings(desk: Desk) -> dict[str, Any]:
    return {"micro_batch_size": desk.count("batch"), "seq_len": desk.count("seq")}


def _layer(desk: Desk, model: str) -> None:
    """The three ways to divide a layer, below each other."""
    tp = desk.count("tp")
    plans = [scenario(model, tp, tp=tp, **_settings(desk), **way) for way in WAYS.values()]
    runs = dict(zip(WAYS, runs_of(plans), strict=True))
    show_lanes(desk, runs, f"A layer of {model} over {tp} ranks, three ways")
    st.caption(
        "Column, row: an all-reduce after attention and after the MLP. Sequence parallel: an "
        "all-gather before and a reduce-scatter after, together what a ring's all-reduce sends; "
        "norms work on a part of the tokens. Inside a host the switch adds up an all-reduce "
        "(NVLS), so a rank sends its part once. Async TP: products "
        "in pieces, each beside the transfer of another."
    )


def _hosts(desk: Desk, model: str) -> None:
    """A layer over more and more ranks of hosts of eight."""
    way = desk.choice("way")
    heads = load_model(MODELS[model]).heads
    degrees = [tp for tp in DEGREES if heads % tp == 0]
    plans = []
    for tp in degrees:
        own = WAYS[way] if tp > 1 else {}
        plans.append(scenario(model, tp, tp=tp, **_settings(desk), **own))
    runs = runs_of(plans)
    crossing = next(i for i, tp in enumerate(degrees) if tp > GPUS_PER_HOST)
    desk.show(
        stacked_times(
            [str(tp) for tp in degrees],
            [run.total_ms - run.exposed_ms for run in runs],
            [run.exposed_ms for run in runs],
            "tensor-parallel ranks t",
            crossing=crossing,
            style=desk.style,
        ),
        "A layer, forward and backward, over more and more ranks",
        key="tp_hosts",
    )
    one, most = runs[0], runs[-1]
    st.caption(
        f"A layer, forward and backward. {degrees[-1]} ranks make it "
        f"{one.total_ms / most.total_ms:.1f} times as fast as one. Inside a host 450 GB/s for each "
        "GPU, between hosts a NIC of 50 GB/s for each."
    )


def _heads(desk: Desk, model: str) -> None:
    """Which rank has which heads, and the rows of the weights that make them."""
    tp, sizes = desk.count("tp"), load_model(MODELS[model])
    kv_heads = sizes.groups
    own_kv = Layout(tp=tp).kv_heads(sizes)
    rows, whole = qkv_rows(model, tp), qkv_rows(model, 1)
    show_cards(
        (
            ("Query heads", f"{sizes.heads // tp}", f"of {sizes.heads} on a rank"),
            ("KV heads", f"{own_kv}", f"of {kv_heads} on a rank"),
            ("Copies of a KV head", f"{max(1, tp // kv_heads)}", "all hold the same"),
            ("Rows of Q, K, V", f"{rows:,}", f"{counted(whole // tp, 'row')} would be 1/{tp}"),
        )
    )
    desk.show(
        heads_by_rank(sizes.heads, kv_heads, tp, style=desk.style),
        f"Heads of {model} on {tp} ranks",
        key="heads",
    )
    st.caption(
        "A column is a rank; the colour says which KV head a query head needs. "
        + (
            "There are fewer KV heads than ranks: neighbours hold copies."
            if tp > kv_heads
            else "No KV head is copied."
        )
    )


def qkv_rows(model: str, tp: int) -> int:
    """Rows of the weights of Q, K and V on a rank, out of the engine's layer.

    Raises `ConfigError` where the heads cannot be divided so.
    """
    block = block_of(load_model(MODELS[model]), "dense", batch=1, seq=128, layout=Layout(tp=tp))
    own = ("q_proj.weight", "k_proj.weight", "v_proj.weight")
    return sum(value.shape[0] for value in block.parameters if value.path.endswith(own))


def _loss(desk: Desk, model: str) -> None:
    """What follows the last layer, with logits gathered and with loss parallel."""
    tp = desk.count("tp")
    plans = [
        scenario(
            model, tp, tp=tp, sequence_parallel=True, loss_parallel=parallel, **_settings(desk)
        )
        for parallel in (False, True)
    ]
    names = ("Logits gathered", "Loss parallel")
    runs = dict(zip(names, runs_of(plans, HEAD), strict=True))
    show_lanes(desk, runs, f"Head and loss of {model} over {tp} ranks")
    st.caption(
        "The head gives each rank a part of the vocabulary. Either every rank gathers all logits "
        "and computes the whole loss, or each computes its part, and three small all-reduces give "
        "the maximum, the sum and the label's own."
    )


VIEWS: Mapping[str, View] = {
    A_LAYER: _layer, HOSTS: _hosts, HEADS: _heads, LOSS: _loss,
}  # fmt: skip
LAB = Lab(
    code="tensor",
    page="pages/lab_tensor.py",
    title="Tensor parallel",
    idea="Each rank holds a part of every weight. The first product of a pair is divided by "
    "columns, the second by rows: between them nothing is sent, after them the addends are summed. "
    "Attention and MLP are such pairs. Everything waits for the sums, so the ranks should share a "
    "host.",
    formula=r"t_{\text{all-reduce}}=2\,\frac{t-1}{t}\cdot\frac{S}{B}",
    source="Shoeybi et al., arXiv 1909.08053. Sequence parallel: Korthikanti et al., "
    "arXiv 2205.05198.",
    questions=("T1", "T2", "T3"),
    quick=("T2",),
    more=(TP, BATCH, SEQ),
    more_title="A layer of Llama on the seminar's machine, simulated kernel by kernel",
    defaults={
        "": {"tp": 8, "batch": 2, "seq": 8192},
        "T2": {"tp": 16, "view": HOSTS},
        "T3": {"view": HEADS},
    },
    settings={
        "model": choice("Model", tuple(MODELS)),
        "view": choice("Picture", tuple(VIEWS)),
        "way": choice("Divided by", tuple(WAYS)),
    },
    explain=(
        Cause(
            "Protocol and latency",
            "the formulas move bytes over ideal links. The layer below them pays for the "
            "library's protocol and for every start.",
        ),
        Cause(
            "Beyond a host",
            "the axis above keeps one speed for all ranks in T1. In the layer, ranks of more than "
            "one host talk through NICs.",
            lambda values: values["tp"] > GPUS_PER_HOST,
        ),
        Cause(
            "Copied KV heads",
            "a rank needs a whole KV head. With fewer of them than ranks, weights, keys and values "
            "are copied, and so is their work.",
            lambda values: values["tp"] > values.get("kv_heads", 8),
        ),
        Cause(
            "Embedding and head",
            "T1 counts layers. The embedding is summed once more in a step, and the loss has sums "
            "of its own.",
        ),
    ),
    not_modelled=(
        "Other traffic: data-parallel gathers share the links on the Train page.",
        "Smaller products are less efficient as the roofline says, not as a certain library is.",
        "FP8: products here are in bf16.",
    ),
    draw=partial(draw_views, VIEWS),
)
