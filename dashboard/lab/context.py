"""The lab on long context: rings, Ulysses and both; causal balance; prefill."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from dashboard.lab.desk import Desk
from dashboard.lab.lab import Cause, Lab, choice
from dashboard.lab.layers import (
    MODELS,
    View,
    draw_views,
    first_tokens_of,
    runs_of,
    scenario,
    show_lanes,
)
from triosim.figures.lab_context import causal_map, ways_by_degree, work_bars
from triosim.figures.lab_layers import stacked_times
from triosim.figures.text import bytes_text, time_text
from triosim.lab import Parameter
from triosim.lab.causal import owners, work_by_rank
from triosim.lab.context import DEGREE, SEQ
from triosim.lab.first_token import FirstToken
from triosim.train import TrainScenario
from triosim.workload import load_model

DEGREES, A_LAYER, BALANCE, PREFILL = "Bytes and time", "A layer", "Causal balance", "Prefill"
KV_HEADS = Parameter(name="kv_heads", label="KV heads", low=1, high=32, marks=(1, 2, 4, 8, 16, 32))
SIZES = (2, 4, 8, 16, 32)
CONTEXTS: Mapping[str, str] = {
    "Ring, contiguous": "ring",
    "Ring, zig-zag": "ring-zigzag",
    "Ring, zig-zag, pass Q": "ring-zigzag-pass-q",
    "Ulysses": "ulysses",
    "Ulysses and ring": "ulysses-ring",
}
# Contiguous rings send the same as zig-zag ones.
COMPARED = tuple(CONTEXTS)[1:]
# Tensor-parallel and sequence-parallel ranks of a prefill on one host.
SPLITS: Mapping[str, tuple[int, int]] = {
    "TP 8": (8, 1),
    "SP 2 \u00d7 TP 4": (4, 2),
    "SP 4 \u00d7 TP 2": (2, 4),
    "SP 8": (1, 8),
}


def _plan(desk: Desk, model: str, context: str, cp: int) -> TrainScenario:
    return scenario(
        model, cp, cp=cp, context=CONTEXTS[context], seq_len=desk.count("seq"),
        kv_heads=desk.count("kv_heads"),
    )  # fmt: skip


def _degrees(desk: Desk, model: str) -> None:
    """What a rank sends and how long a layer takes, at every degree."""
    plans = {(way, cp): _plan(desk, model, way, cp) for way in COMPARED for cp in SIZES}
    runs = dict(zip(plans, runs_of(list(plans.values())), strict=True))
    sent = {way: [runs[way, cp].sent_bytes[0] / 1e6 for cp in SIZES] for way in COMPARED}
    took = {way: [runs[way, cp].total_ms * cp for cp in SIZES] for way in COMPARED}
    left, right = st.columns(2, gap="large")
    with left:
        desk.show(
            ways_by_degree(
                SIZES, sent, "MB a rank sends, forward",
                crossover=crossover(model, desk.count("kv_heads")), style=desk.style,
            ),
            "What a rank sends in a layer's forward pass against the degree",
            key="context_bytes",
        )  # fmt: skip
    with right:
        desk.show(
            ways_by_degree(SIZES, took, "ms of a layer \u00d7 ranks", style=desk.style),
            "Time of a layer, forward and backward, times the ranks, against the degree",
            key="context_time",
        )
    st.caption(
        "Left, dashed: from there on Ulysses sends less than a ring, 1 + h / KV width. Right: "
        "level would be perfect. Beyond 8 ranks there is more than one host. Ulysses with more "
        "ranks than KV heads copies them; with a ring it goes only as far as the KV heads."
    )


def crossover(model: str, kv_heads: int) -> float:
    """c > 1 + h/h_kv (ORACLES X1)."""
    sizes = load_model(MODELS[model])
    return 1 + sizes.heads / kv_heads


def _layer(desk: Desk, model: str) -> None:
    """All ways at one degree, below each other."""
    cp = desk.count("cp")
    plans = [_plan(desk, model, way, cp) for way in CONTEXTS]
    runs = dict(zip(CONTEXTS, runs_of(plans), strict=True))
    show_lanes(desk, runs, f"A layer of {model} over {cp} context-parallel ranks")
    st.caption(
        "Drawn is the slowest rank. A ring moves the next keys while it computes with those at "
        "hand; passing queries needs their results sent home. Ulysses' all-to-alls hide nothing."
    )


def _balance(desk: Desk, model: str) -> None:
    """Who computes how much of the causal triangle."""
    cp = desk.count("cp")
    work = {zigzag: work_by_rank(cp, zigzag=zigzag) for zigzag in (False, True)}
    left, middle, right = st.columns([0.42, 0.29, 0.29], gap="medium")
    with left:
        desk.show(
            work_bars(work[False], work[True], style=desk.style),
            f"Causal work of each of {cp} ranks over the mean",
            key="causal_work",
        )
    for column, name, zigzag in ((middle, "contiguous", False), (right, "zig-zag", True)):
        with column:
            desk.show(
                causal_map(owners(cp, zigzag=zigzag), name, style=desk.style),
                f"Which rank computes which block of causal attention, {name}",
                key=f"causal_{name}",
            )
    plans = [_plan(desk, model, way, cp) for way in ("Ring, contiguous", "Ring, zig-zag")]
    slow, even = (run.total_ms for run in runs_of(plans))
    st.caption(
        f"A layer of {model}, forward and backward: {time_text(slow)} with contiguous parts, "
        f"{time_text(even)} with zig-zag ones. Everything but attention is as long in both."
    )


def _prefill(desk: Desk, model: str) -> None:
    """Eight GPUs of a host, divided by heads, by tokens, or both."""
    plans = []
    for tp, cp in SPLITS.values():
        plans.append(_prompt(desk, model, tp, cp))
    found = dict(zip(SPLITS, first_tokens_of(plans), strict=True))
    desk.show(
        stacked_times(
            list(found),
            [one.time_ms - one.exposed_ms for one in found.values()],
            [one.exposed_ms for one in found.values()],
            "time to first token on 8 GPUs",
            style=desk.style,
        ),
        f"Time to the first token of {model} under tensor and sequence parallelism",
        key="prefill",
    )
    st.dataframe(_prefill_table(found), hide_index=True)
    st.caption(
        "Sequence parallel (Ulysses) ranks each hold all weights of their tensor-parallel part: "
        "the first token comes sooner, and fewer models fit. Each rank keeps whole KV heads."
    )


def _prompt(desk: Desk, model: str, tp: int, cp: int) -> TrainScenario:
    """A whole model, forward only."""
    settings: dict[str, Any] = {
        "seq_len": desk.count("seq"), "kv_heads": desk.count("kv_heads"), "tp": tp, "cp": cp,
    }  # fmt: skip
    return TrainScenario(
        model=MODELS[model], gpu="h100-96gb", machine="seminar-h100", compile=True, gpus=8,
        dp_shard=1, prefill=True, context="ulysses", **settings,
    )  # fmt: skip


def _prefill_table(found: Mapping[str, FirstToken]) -> pd.DataFrame:
    rows = found.values()
    return pd.DataFrame(
        {
            "": list(found),
            "first token": [time_text(one.time_ms) for one in rows],
            "exposed": [time_text(one.exposed_ms) for one in rows],
            "a GPU sends": [bytes_text(one.sent_bytes) for one in rows],
            "KV heads on a GPU": [one.kv_heads for one in rows],
            "keys and values (GiB)": [round(one.keys_gib, 2) for one in rows],
            "weights (GiB)": [round(one.weights_gib, 1) for one in rows],
            "peak (GiB)": [f"{one.peak_gib:.1f} of {one.capacity_gib:.0f}" for one in rows],
            "fits": ["yes" if one.fits else "no" for one in rows],
        }
    )


VIEWS: Mapping[str, View] = {
    DEGREES: _degrees, A_LAYER: _layer, BALANCE: _balance, PREFILL: _prefill,
}  # fmt: skip
LAB = Lab(
    code="context",
    page="pages/lab_context.py",
    title="Long context",
    idea="A sequence too long for one rank is cut over c of them. Attention needs all keys. A ring "
    "passes keys and values on, part by part, while it computes. Ulysses exchanges tokens for "
    "heads by all-to-alls and back. Causal masks leave early tokens less to do.",
    formula=r"\begin{aligned}\text{ring}&=2\,\frac{c-1}{c}\,s\,h_{kv}\\ "
    r"\text{Ulysses}&=(2h+2h_{kv})\,\frac{c-1}{c^2}\,s\end{aligned}",
    source="Liu et al., arXiv 2310.01889. Ulysses: Jacobs et al., arXiv 2309.14509. Passing "
    "queries: Yang et al., arXiv 2411.01783.",
    questions=("L1", "L2", "L3"),
    more=(SEQ, DEGREE, KV_HEADS),
    more_title="Llama on the seminar's machine, simulated kernel by kernel",
    defaults={
        "": {"seq": 131_072, "cp": 8, "kv_heads": 8},
        "L2": {"view": BALANCE},
        "L3": {"seq": 32_768, "view": PREFILL},
    },
    settings={
        "model": choice("Model", tuple(MODELS)[:2]),
        "view": choice("Picture", tuple(VIEWS)),
    },
    explain=(
        Cause(
            "Start-up of kernels",
            "L2 counts blocks of attention. The engine's blocks have a start-up each, so that "
            "small ones are less than proportional.",
        ),
        Cause(
            "Beyond a host",
            "formulas count bytes. Ranks of more than one host send them through NICs, and a "
            "ring is as slow as its slowest hop.",
            lambda values: values["cp"] > 8,
        ),
        Cause(
            "Copied KV heads",
            "with more ranks than KV heads Ulysses sends each rank a whole head: more than the "
            "formula says.",
            lambda values: values["cp"] > values["kv_heads"],
        ),
        Cause(
            "Everything but attention",
            "norms, projections and the MLP divide evenly, so a layer is less uneven than its "
            "attention.",
        ),
    ),
    not_modelled=(
        "Prompts that share a prefix, and decoding after the first token.",
        "Documents in a sequence: the mask is one triangle.",
        "In prefill one prompt at a time; a serving system mixes many.",
    ),
    draw=partial(draw_views, VIEWS),
)
