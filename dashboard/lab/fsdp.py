"""The lab on FSDP: shards and replicas, both versions, and gathers that nothing hides."""

from __future__ import annotations

from math import prod

import streamlit as st

from dashboard.cards import show_cards
from dashboard.computed import once
from dashboard.lab.desk import Desk
from dashboard.lab.lab import Cause, Lab, choice, switch
from dashboard.lab.present import presenting
from dashboard.plain import plain
from triosim.errors import TrioSimError
from triosim.figures import lab_fsdp as figures
from triosim.figures.figure import Figure
from triosim.figures.palette import CLASS_COLOURS
from triosim.figures.text import share_text, time_text
from triosim.figures.train_memory import memory_over_step
from triosim.figures.train_timeline import step_timeline
from triosim.lab import Parameter, question
from triosim.lab.collectives import NIC
from triosim.lab.fsdp_step import (
    GATHER,
    TOY,
    Exposed,
    Gathered,
    Setup,
    Split,
    exposed,
    flat_pieces,
    fsdp_step,
    gather_times,
    gathered,
    layer_shapes,
    row_pieces,
    splits,
)
from triosim.train import TrainResult

SHARD = Parameter(
    name="shard", label="Shards of a copy (GPUs)", low=1, high=128,
    marks=(1, 2, 4, 8, 16, 32, 64, 128),
)  # fmt: skip
REPLICATE = Parameter(
    name="replicate", label="Copies (replicas)", low=1, high=16, marks=(1, 2, 4, 8, 16)
)
PREFETCH = Parameter(name="ahead", label="FSDP2: units gathered ahead", low=0, high=6)
TOKENS = Parameter(
    name="tokens", label="Tokens of a GPU", low=256, high=8192,
    marks=(256, 512, 1024, 2048, 4096, 8192),
)  # fmt: skip
ONE, TWO = "FSDP1", "FSDP2"
TIMELINE, MEMORY, SIZES, BLOCK, HOSTS = VIEWS = (
    "Timeline", "Memory", "Bytes", "One block", "Over hosts",
)  # fmt: skip
LAYER, SMALL = "a layer of Llama 3 8B", "a toy of four tensors"
DRAWN_RANKS = 8
MOST_SPLITS = 4
UNITS_SHOWN = 5  # in a timeline that starts with the first gather
MARKED = 12


def draw(desk: Desk) -> None:
    """Choices, cards, and one of the pictures."""
    version, reshard, view = _choices(desk)
    setup = setup_of(desk, version=version, reshard=reshard, limiter=True)
    try:
        if view == BLOCK:
            _block(desk, setup)
        elif view == HOSTS:
            _hosts(desk)
        else:
            limiter = version == TWO or desk.switch(
                "limiter", help="Off: the CPU asks for every gather as soon as it can."
            )
            setup = setup_of(desk, version=version, reshard=reshard, limiter=limiter)
            result: TrainResult = once("Simulating", fsdp_step, setup)
            # On a projector the two curves of memory need the room.
            if not (presenting() and view == MEMORY):
                _cards(result)
            _PICTURES[view](desk, setup, result)
    except TrioSimError as error:
        desk.complain("No step", error)


def _choices(desk: Desk) -> tuple[str, bool, str]:
    view = desk.tabs("view")
    with desk.row():
        version = desk.choice("version")
        reshard = desk.switch(
            "reshard", help="On: parameters are given back after forward and gathered again."
        )
    return version, reshard, view


def setup_of(desk: Desk, *, version: str, reshard: bool, limiter: bool) -> Setup:
    """The step as the sliders have it."""
    return Setup(
        shard=desk.count("shard"),
        replicate=desk.count("replicate"),
        fsdp=1 if version == ONE else 2,
        reshard=reshard,
        prefetch=desk.count("ahead"),
        limiter=limiter,
        seq_len=desk.count("tokens"),
        gb_per_s=desk.values.get("gb_per_s", 450.0),
        nic_gb_per_s=desk.values["nic_gb_per_s"],
    )


def _cards(result: TrainResult) -> None:
    waits = exposed(result)
    gather_ms = sum(wait.end_ms - wait.start_ms for wait in waits if wait.kind == GATHER)
    rest_ms = result.breakdown["exposed_communication"] - gather_ms
    sent_gb = (result.sent_bytes("parameters") + result.sent_bytes("gradients")) / 1e9
    gpus = f"on {result.scenario.gpus:,} GPUs"
    show_cards(
        (
            ("Step", time_text(result.step_ms), gpus),
            ("Exposed gathers", time_text(gather_ms), share_text(gather_ms, result.step_ms)),
            ("Exposed reductions", time_text(max(0.0, rest_ms)), "the optimizer waits for them"),
            ("Peak of a GPU", f"{result.peak_memory_gib:.1f} GiB", "all tensors"),
            ("Sent by a GPU", f"{sent_gb:.1f} GB", "in a step, gradients in fp32"),
        )
    )


def _timeline(desk: Desk, setup: Setup, result: TrainResult) -> None:
    """The step from its first gather on; what only waits for a gather is marked."""
    whole = desk.switch("whole")
    high = result.tasks.total_s * 1e3
    if not whole:
        ends = [result.tasks.end_s[t] * 1e3 for t in list(result.writer.made)[:UNITS_SHOWN]]
        high = max(ends)
    figure = step_timeline(result, (0.0, high), style=desk.style)
    waits = [w for w in exposed(result) if w.kind == GATHER]
    for number, wait in enumerate([w for w in waits if w.start_ms < high][:MARKED]):
        _mark(desk, figure, wait, high, say=number == 0)
    desk.show(figure, "The step: computing, gathers, and the time in which only gathers run")
    each = waits[1:]
    if setup.shard == 1:
        st.caption("One shard: every GPU holds the whole model and nothing is gathered.")
    elif each:
        st.caption(f"Marked: the GPU waits for a gather, {len(waits)} times in this step.")
    else:
        st.caption("Only the first gather is exposed: there is nothing before it to hide behind.")


def _mark(desk: Desk, figure: Figure, wait: Exposed, high: float, *, say: bool) -> None:
    colour = CLASS_COLOURS["exposed_communication"]
    figure.add_vrect(
        x0=wait.start_ms, x1=min(wait.end_ms, high), fillcolor=colour, opacity=0.3,
        line={"width": 2, "color": colour}, layer="above",
    )  # fmt: skip
    if say:
        figure.add_annotation(
            x=wait.start_ms, y=1, yref="paper", xanchor="left", yanchor="top", showarrow=False,
            text=f"<b>exposed {time_text(wait.end_ms - wait.start_ms)}</b>",
            bgcolor=desk.style.surface, opacity=0.92,
            font={"size": desk.style.font_size, "color": desk.style.text},
        )  # fmt: skip


def _memory(desk: Desk, setup: Setup, result: TrainResult) -> None:
    """Gathered parameters under both versions, and all memory of the chosen one."""
    if setup.shard == 1:
        st.info("One shard: nothing is gathered.")
        return
    each = [
        setup_of(desk, version=ONE, reshard=setup.reshard, limiter=True),
        setup_of(desk, version=ONE, reshard=setup.reshard, limiter=False),
        setup_of(desk, version=TWO, reshard=setup.reshard, limiter=True),
    ]
    curves: list[Gathered] = once("Simulating both versions", gathered, tuple(each))
    left, right = st.columns(2)
    with left:
        st.markdown("**Gathered parameters**")
        desk.show(
            figures.gathered_over_step(curves, style=desk.style),
            "Gathered parameters on a GPU over the step, under FSDP1 and FSDP2",
            legend_below=True,
        )
    with right:
        st.markdown(f"**All memory, {setup.name}**")
        desk.show(
            memory_over_step(result, 0, style=desk.style), "Memory of a GPU over the step",
            legend_below=True,
        )  # fmt: skip
    st.caption(
        "The rate limiter of FSDP1 lets two gathers be under way. Without it the CPU, which runs "
        "ahead, asks for all layers at once and they wait in memory; a slow network delays that."
    )


def _bytes(desk: Desk, setup: Setup, result: TrainResult) -> None:
    """The same GPUs as more copies of fewer parts."""
    if setup.gpus == 1:
        st.info("One GPU has nobody to share with.")
        return
    found: list[Split] = once("Simulating every split", splits, setup, shards_of(setup))
    left, right = st.columns(2)
    with left:
        desk.show(
            figures.state_by_split(found, setup.shard, style=desk.style),
            "State on a GPU, by shards times copies",
        )
    with right:
        desk.show(
            figures.sent_by_split(found, setup.shard, style=desk.style),
            "What a GPU sends in a step, by shards times copies",
        )
    steps = "; ".join(
        f"{split.shard} \u00d7 {split.replicate}: {time_text(split.step_ms)}, "
        f"{time_text(split.exposed_ms)} exposed, peak {split.peak_gib:.1f} GiB"
        + ("" if split.fits else " (does not fit)")
        for split in found
    )
    st.caption(
        f"Shards \u00d7 copies of the same {setup.gpus:,} GPUs; with more than one copy it is "
        f"HSDP, with one shard DDP. Step: {plain(steps)}."
    )


def shards_of(setup: Setup) -> tuple[int, ...]:
    """Some ways to split the same GPUs: none, a host, all, what is chosen."""
    wanted = {setup.shard, setup.gpus, min(8, setup.gpus), 1}
    return tuple(sorted(wanted)[-MOST_SPLITS:])


def _block(desk: Desk, setup: Setup) -> None:
    """Who holds what of one block: a flat parameter, or rows of each."""
    small = desk.choice("block") == SMALL
    shapes = TOY if small else once("Reading the model", layer_shapes)
    ranks = setup.shard
    count = sum(map(prod, shapes.values()))
    both = {ONE: flat_pieces(shapes, ranks), TWO: row_pieces(shapes, ranks)}
    padding = ", ".join(
        f"{name} {sum(p.elements for p in pieces if not p.name):,}" for name, pieces in both.items()
    )
    st.markdown(f"{count:,} parameters on {ranks:,} GPUs. Elements of padding: {padding}.")
    titles = {ONE: "end to end, then cut", TWO: "rows of every parameter, Shard(0)"}
    columns = st.columns(2)
    for column, (name, pieces) in zip(columns, both.items(), strict=True):
        with column:
            st.markdown(f"**{name}**: {titles[name]}")
            desk.show(
                figures.pieces_by_rank(
                    pieces, list(shapes), min(ranks, DRAWN_RANKS), all_ranks=ranks,
                    style=desk.style,
                ),
                f"Which parameters each GPU holds under {name}",
                legend_below=True,
            )  # fmt: skip


def _hosts(desk: Desk) -> None:
    """One block's all-gather, by the NICs of a host."""
    values = {**question("F3").given, **desk.values}
    times: dict[str, float] = gather_times(
        block_m=values["block_m"],
        hosts_=int(values["hosts"]),
        per_host=int(values["per_host"]),
        gb_per_s=values["gb_per_s"],
        nic_gb_per_s=values["nic_gb_per_s"],
    )
    block_ms = 1e3 * values["tflop"] / values["tflops"]
    desk.show(
        figures.gather_bars(times, block_ms, style=desk.style),
        "The all-gather of a block over hosts, by their NICs, and the block's computing",
    )
    st.caption(
        f"{values['block_m']:g} million parameters in bf16 over {values['hosts']:g} hosts of "
        f"{values['per_host']:g} GPUs. Left of the dotted line a gather can hide behind the "
        "block's forward."
        + ("" if desk.asked.id == "F3" else " Hosts and block are sliders under F3.")
    )


_PICTURES = {TIMELINE: _timeline, MEMORY: _memory, SIZES: _bytes}


LAB = Lab(
    code="fsdp",
    page="pages/lab_fsdp.py",
    title="FSDP",
    idea="Each GPU keeps 1/N of parameters, gradients and optimizer state. Before a block "
    "computes, its parameters are gathered; afterwards they are given back. Gradients are reduced "
    "and scattered. The next block's gather runs while this one computes: what takes longer than "
    "that is exposed.",
    formula=r"\begin{aligned}\text{state}&=\frac{16\,\Psi}{N}\\ "
    r"\text{exposed gather}&=\max(0,\;t_{\text{gather}}-t_{\text{block}})\end{aligned}",
    source="Rajbhandari et al., arXiv 1910.02054. FSDP1: Zhao et al., arXiv 2304.11277. FSDP2: "
    "Liang et al., arXiv 2410.06511.",
    questions=("F1", "F2", "F3"),
    quick=("F3",),
    more=(SHARD, REPLICATE, NIC, TOKENS, PREFETCH),
    more_title="A step of Llama 3 8B (H100, hosts of 8, one NIC for each GPU), simulated",
    defaults={
        "": {"shard": 8, "replicate": 1, "nic_gb_per_s": 50.0, "tokens": 8192, "ahead": 1},
        "F1": {"shard": 128, "view": SIZES},
        "F2": {"view": TIMELINE, "shard": 128, "tokens": 1024, "nic_gb_per_s": 25.0},
        "F3": {"shard": 128, "view": HOSTS},
    },
    settings={
        "version": choice("Version", (TWO, ONE)),
        "reshard": switch("Reshard after forward", True),
        "limiter": switch("Rate limiter", True),
        "view": choice("Picture", VIEWS),
        "block": choice("Block", (LAYER, SMALL)),
        "whole": switch("Whole step"),
    },
    explain=(
        Cause(
            "Gradients in fp32",
            "the simulated step reduces gradients in 4 bytes, as TorchTitan does, so that its "
            "reduce-scatter sends twice what the question's does.",
        ),
        Cause(
            "Whole parameters in use",
            "the formula of the state leaves out what is gathered: the block in use and those "
            "ahead are whole on every GPU.",
        ),
        Cause(
            "Uneven shards",
            "FSDP2 cuts every parameter by rows, so that the first GPU may hold more than 1/N; "
            "FSDP1 pads its flat parameter.",
        ),
        Cause(
            "Copies",
            "FSDP2 gathers into one buffer and copies each parameter out of it. The simulation "
            "counts these copies, and none for FSDP1, whose step is shorter by them here.",
        ),
        Cause(
            "Slow NICs or few tokens",
            "then the gather takes longer than the block before, and gathering further ahead does "
            "not help: the network is busy all the time.",
            lambda values: values["nic_gb_per_s"] < 50 or values["tokens"] < 4096,
        ),
        Cause(
            "Copies of the model",
            "with more than one, gradients are also summed over them by all-reduces of 1/N each.",
            lambda values: values["replicate"] > 1,
        ),
    ),
    not_modelled=(
        "The allocator: FSDP1 gives memory back later than it could, because other streams use it. "
        "Published comparisons find FSDP2 to need less memory and to be no slower.",
        "Computing slowed down by gathers that run beside it, beyond the stack's constant.",
        "Latency of links in this network; the Train page's machines have it.",
        "Stragglers, and other traffic between the hosts.",
    ),
    draw=draw,
)
