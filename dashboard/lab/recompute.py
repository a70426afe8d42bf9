"""The lab on recomputation: what a layer keeps, when, and what the freed memory buys."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from dashboard.cards import show_cards
from dashboard.computed import once
from dashboard.lab.desk import Desk
from dashboard.lab.lab import Cause, Lab, choice, switch
from dashboard.plain import plain
from triosim.errors import TrioSimError
from triosim.figures import lab_recompute as figures
from triosim.figures.text import time_text
from triosim.figures.train_memory import memory_over_step
from triosim.hardware import load_gpu
from triosim.lab import Parameter
from triosim.lab.recompute import BATCH, SEQ, TP
from triosim.lab.recompute_step import (
    EVERY,
    GPT,
    LLAMA,
    MODELS,
    MODES,
    NOTHING,
    LayerBytes,
    Point,
    Setup,
    layer_bytes,
    layer_gib,
    points,
    recompute_step,
)
from triosim.train import TrainResult

GIB = 2**30
SHARDS = Parameter(
    name="shards", label="Shards (data parallel)", low=1, high=64, marks=(1, 2, 4, 8, 16, 32, 64)
)
PERIOD = Parameter(name="period", label="N: every N-th layer runs again", low=1, high=8)
LAYER, STEP, BUYS = VIEWS = ("One layer", "Memory of the step", "What memory buys")
LARGER, FEWER = "a larger micro-batch", "fewer shards"
TIMES = (1, 2, 4)


def draw(desk: Desk) -> None:
    """Choices, cards, and one of the pictures."""
    view = desk.tabs("view")
    with desk.row():
        model = desk.choice("model")
        mode = desk.choice("mode")
        split = desk.switch("sp", help="Norms and dropout on a part of the tokens, where t > 1.")
    setup = Setup(
        model=model,
        mode=mode,
        seq=desk.count("seq"),
        batch=desk.count("batch"),
        tp=desk.count("tp"),
        shards=desk.count("shards"),
        period=desk.count("period"),
        sequence_parallel=split,
    )
    try:
        if view == LAYER:
            _layer(desk, setup)
        elif view == STEP:
            _step(desk, setup)
        else:
            _buys(desk, setup)
    except TrioSimError as error:
        desk.complain("No step", error)


def _layer(desk: Desk, setup: Setup) -> None:
    """Bytes of one layer under every mode, and of what they are."""
    found: LayerBytes = once("Reading the layer", layer_bytes, setup)
    left, right = st.columns(2)
    with left:
        st.markdown("**One micro-batch, one layer, one GPU**: what runs again")
        desk.show(
            figures.bytes_by_mode(found.by_mode, setup.mode, style=desk.style),
            "What a layer keeps under each mode of recomputation",
        )
    with right:
        st.markdown("**Where nothing runs again**: who keeps what")
        desk.show(
            figures.bytes_by_item(found.items, style=desk.style),
            "What each module of a layer keeps for backward",
        )
    st.caption(
        "With every N-th layer, layers are either like full or like nothing. "
        + (
            "This attention writes its scores to memory."
            if setup.model == GPT
            else "This attention is fused: it keeps no scores, so running it again frees nothing."
        )
        + (
            " Without sequence parallelism the inputs of norms, dropout and linear layers are "
            "whole on every GPU."
            if setup.tp > 1 and not setup.sequence_parallel
            else ""
        )
    )


def _step(desk: Desk, setup: Setup) -> None:
    """Memory over the step, and what each layer keeps."""
    result: TrainResult = once("Simulating", recompute_step, setup)
    again = 100 * (result.hardware_flops / result.model_flops - 1)
    capacity = result.capacity_bytes / GIB
    fits = "fits" if result.fits else "does not fit"
    show_cards(
        (
            ("Step", time_text(result.step_ms), f"on {result.scenario.gpus:,} GPUs"),
            ("Tokens/s of a GPU", f"{result.tokens_per_s_per_gpu:,.0f}", f"MFU {result.mfu:.1%}"
             .replace("%", " %")),
            ("Peak of a GPU", f"{result.peak_memory_gib:.1f} GiB", f"of {capacity:.0f}: {fits}"),
            ("Computed again", f"{again:.1f} %", "of the model's FLOPs"),
        )
    )  # fmt: skip
    desk.show(memory_over_step(result, 0, style=desk.style), "Memory of a GPU over the step")
    desk.show(
        figures.layers(layer_gib(result), style=desk.style),
        "What each layer keeps of a micro-batch",
    )
    st.caption(
        "Four micro-batches: activations pile up in forward and go in backward. Below: what each "
        "layer keeps of one micro-batch."
    )


def _buys(desk: Desk, setup: Setup) -> None:
    """Speed for memory, and what the freed memory buys."""
    bought = desk.choice("buys")
    larger = bought == LARGER
    batches = tuple(setup.batch * n for n in TIMES) if larger else (setup.batch,)
    shards = (setup.shards,) if larger else shards_from(setup.shards)
    found: list[Point] = once("Simulating every mode", points, setup, batches, shards)
    capacity = recompute_capacity(setup)
    desk.show(
        figures.speed_for_memory(
            found, setup.mode, capacity, "batch" if larger else "shards", style=desk.style
        ),
        "Throughput against memory for every mode of recomputation",
    )
    st.markdown(plain(verdict(found, setup, larger=larger)))
    st.dataframe(_table(found, setup, larger=larger), hide_index=True, width="content")
    st.caption(
        f"Numbers at the marks: {'sequences of a micro-batch' if larger else 'shards'}. Hollow: "
        "more than the GPU has."
    )


def shards_from(shards: int) -> tuple[int, ...]:
    """As many, half and a quarter, at least one."""
    return tuple(sorted({max(1, shards // n) for n in TIMES}, reverse=True))


def recompute_capacity(setup: Setup) -> float:
    """GiB of the GPU."""
    return load_gpu(MODELS[setup.model]["gpu"]).memory_bytes / GIB


def verdict(found: Sequence[Point], setup: Setup, *, larger: bool) -> str:
    """What the chosen mode costs and frees, and whether what it buys pays for it."""
    none, chosen = (of_mode(found, mode)[0] for mode in (NOTHING, setup.mode))
    if setup.mode == NOTHING:
        return "Choose what runs again: it is compared with nothing."
    less = 100 * (1 - chosen.peak_gib / none.peak_gib)
    lost = 100 * (1 - chosen.tokens_per_s / none.tokens_per_s)
    text = f"{setup.mode}: {less:.0f} % less memory for {lost:.1f} % of the throughput."
    if not larger:
        fewest = min((p.shards for p in of_mode(found, setup.mode) if p.fits), default=0)
        if not fewest:
            return f"{text} It fits with none of these."
        return f"{text} It fits with {fewest} shards: one copy on {fewest * setup.tp} GPUs."
    best = max(
        (p for p in of_mode(found, setup.mode) if p.fits), key=lambda p: p.tokens_per_s,
        default=None,
    )  # fmt: skip
    rival = max((p.tokens_per_s for p in of_mode(found, NOTHING) if p.fits), default=0.0)
    even = 100 * (none.tokens_per_s / chosen.tokens_per_s - 1)
    text += f" What it buys must bring {even:.1f} %."
    if best is None:
        return f"{text} It does not fit."
    gain = 100 * (best.tokens_per_s / chosen.tokens_per_s - 1)
    text += f" The largest micro-batch that fits, {best.batch}, brings {gain:.1f} %."
    if not rival:
        return f"{text} Without it nothing fits: take it."
    return f"{text} {'Take it.' if best.tokens_per_s > rival else 'It does not pay.'}"


def of_mode(found: Sequence[Point], mode: str) -> list[Point]:
    """The points of a mode, the setup's own first."""
    return [point for point in found if point.mode == mode]


def _table(found: Sequence[Point], setup: Setup, *, larger: bool) -> pd.DataFrame:
    """A line for each mode: at the setup's own size, and the best that fits."""
    lines = []
    base = of_mode(found, NOTHING)[0]
    for mode in MODES:
        own = of_mode(found, mode)
        fitting = [point for point in own if point.fits]
        best = max(fitting, key=lambda point: point.tokens_per_s, default=None)
        if not larger:
            best = min(fitting, key=lambda point: point.shards, default=None)
        first = own[0]
        size = "largest micro-batch" if larger else "fewest shards"
        lines.append(
            {
                "runs again": mode if mode != EVERY else f"one layer in {setup.period}",
                "peak (GiB)": f"{first.peak_gib:.1f}",
                "of nothing": f"{100 * first.peak_gib / base.peak_gib:.0f} %",
                "throughput": f"{100 * first.tokens_per_s / base.tokens_per_s:.1f} %",
                f"{size} that fits": "none" if best is None else str(
                    best.batch if larger else best.shards
                ),
                "throughput then": "" if best is None else (
                    f"{100 * best.tokens_per_s / base.tokens_per_s:.1f} %"
                ),
            }
        )  # fmt: skip
    return pd.DataFrame(lines)


LAB = Lab(
    code="recompute",
    page="pages/lab_recompute.py",
    title="Recomputation",
    idea="Backward needs what forward computed: activations. Keeping them takes memory in every "
    "layer. Recomputation keeps less and runs part of forward again just before backward. "
    "Selective recomputation drops what is large and cheap to make again; full recomputation "
    "keeps only each layer's input.",
    formula=r"s\,b\,h\left(10+\frac{24}{t}+\frac{5\,a\,s}{h\,t}\right)\;\to\;2\,s\,b\,h",
    source="Korthikanti et al., arXiv 2205.05198: bytes of a layer in 16 bits, nothing and all "
    "recomputed.",
    questions=("R1", "R2", "R3"),
    quick=("R1", "R2"),
    more=(SEQ, BATCH, TP, SHARDS, PERIOD),
    more_title="A training step, simulated",
    defaults={
        "": {"seq": 2048, "batch": 4, "tp": 8, "shards": 4, "period": 2},
        "R3": {
            "seq": 8192,
            "batch": 1,
            "tp": 1,
            "shards": 8,
            "model": LLAMA,
            "view": BUYS,
            "mode": "selective: some products",
        },
    },
    settings={
        "model": choice("Model", tuple(MODELS)),
        "mode": choice("Runs again", tuple(MODES), "selective: attention"),
        "sp": switch("Sequence parallel"),
        "view": choice("Picture", VIEWS),
        "buys": choice("The freed memory buys", (LARGER, FEWER)),
    },
    explain=(
        Cause(
            "Statistics of norms",
            "the engine also keeps a mean and a variance of every token: below 0.1 %.",
        ),
        Cause(
            "Fused attention",
            "keeps no scores: the term with s\u00b2 is gone, and so is what running attention "
            "again would free.",
        ),
        Cause(
            "Other memory",
            "parameters, gradients, optimizer state, logits and gathered layers stay: half the "
            "activations is less than half the memory.",
        ),
        Cause(
            "One layer at work",
            "what runs again lives while its layer's backward does, so that the peak falls by "
            "less than what is kept.",
        ),
        Cause(
            "Short sequences",
            "then scores are a small part, and selective recomputation of attention frees little.",
            lambda values: values["seq"] <= 1024,
        ),
    ),
    not_modelled=(
        "A larger micro-batch changes how training converges, and the number of micro-batches of "
        "a fixed global batch; here the global batch grows with it.",
        "Fragments of memory that the allocator cannot use.",
        "Kernels that run again take as long as the first time: caches are not modelled.",
    ),
    draw=draw,
)
