"""The lab on data parallelism: replicas, buckets, overlap, accumulation."""

from __future__ import annotations

import streamlit as st

from dashboard.cards import show_cards
from dashboard.computed import once, result_of
from dashboard.lab.desk import Desk
from dashboard.lab.lab import Cause, Lab, choice, switch
from triosim import Result, Scenario, TrioSimError
from triosim.figures import gantt_bars
from triosim.figures.bucket_sweep import bucket_sweep
from triosim.figures.figure import Figure
from triosim.figures.palette import CLASS_COLOURS
from triosim.figures.text import share_text, time_text
from triosim.lab import Parameter
from triosim.lab.bucket_sweep import SweepPoint, sweep_buckets
from triosim.scenario import SAMPLE_TRACES

SIZES_MB = (0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0)
REPLICAS = Parameter(
    name="replicas", label="Replicas (GPUs)", low=1, high=4096,
    marks=(1, 2, 4, 8, 16, 32, 64, 256, 1024, 4096),
)  # fmt: skip
BUCKET = Parameter(
    name="bucket_mib", label="Bucket (MiB)", low=0.25, high=100, whole=False, marks=SIZES_MB
)
SPEED = Parameter(
    name="link", label="Link, one direction (GB/s)", low=1, high=900, whole=False,
    marks=(2, 5, 10, 25, 50, 65, 100, 200, 450, 900),
)  # fmt: skip
LATENCY = Parameter(
    name="latency_us", label="Latency of a step (\u00b5s)", low=0, high=50, whole=False
)
ACCUMULATE = Parameter(name="accumulate", label="Batches accumulated", low=1, high=8)
VIEWS = ("Timeline", "Bucket size")
ZOOM_SHARE = 0.12  # of the step, before and after what is exposed


def draw(desk: Desk) -> None:
    """The step of ResNet-50: cards, and its timeline or all bucket sizes."""
    with desk.row():
        view = desk.tabs("view")
        overlap = desk.switch("overlap", help="Off: one all-reduce after backward.")
    scenario = scenario_of(desk, overlap=overlap)
    try:
        result = result_of(scenario)
        if view == "Timeline":
            _cards(result)
            _timeline(desk, result)
        else:
            _cards(result)
            _sizes(desk, scenario, overlap=overlap)
    except TrioSimError as error:
        desk.complain("No step", error)


def scenario_of(desk: Desk, *, overlap: bool) -> Scenario:
    """The shipped step of ResNet-50 as the sliders have it."""
    return Scenario(
        trace_dir=str(SAMPLE_TRACES / "resnet50"),
        case=2 if overlap else 1,
        gpus=desk.count("replicas"),
        ptp_bandwidth_gb_per_s=desk.values["link"],
        ptp_convention="link",
        latency_us=desk.values["latency_us"],
        bucket_mb=desk.values["bucket_mib"],
        accumulate=desk.count("accumulate"),
        resident=True,
    )


def _cards(result: Result) -> None:
    sent_ms = sum(row.busy_s for row in result.communication if row.kind == "all-reduce") * 1e3
    exposed_ms = result.exposed_communication_ms
    count = sum(row.transfers for row in result.communication if row.kind == "all-reduce")
    speedup = "n/a" if result.speedup is None else f"{result.speedup:,.2f}\u00d7"
    show_cards(
        (
            ("Step", time_text(result.total_ms), f"{result.samples:,} images"),
            ("Communication", time_text(sent_ms), f"in {count} all-reduces"),
            ("Exposed", time_text(exposed_ms), f"{share_text(exposed_ms, sent_ms)} of it"),
            ("Speed-up", speedup, f"on {result.scenario.gpus:,} GPUs"),
        )
    )


def _timeline(desk: Desk, result: Result) -> None:
    """The end of the step, with what is exposed marked."""
    gaps = [gap for gap in result.breakdowns[0].gaps if gap.kind == "exposed_communication"]
    whole = desk.switch("whole")
    low = 0.0
    if gaps and not whole:
        low = max(0.0, gaps[0].start_s * 1e3 - ZOOM_SHARE * result.total_ms)
    figure = gantt_bars(result, [0], (low, result.total_ms), style=desk.style)
    for gap in gaps:
        _mark(figure, gap.start_s * 1e3, gap.end_s * 1e3)
    if gaps:
        start_ms = gaps[0].start_s * 1e3
        # On the side where a phone has room for it.
        side = "right" if start_ms > (low + result.total_ms) / 2 else "left"
        figure.add_annotation(
            x=start_ms, y=1, yref="paper", xanchor=side, yanchor="top",
            showarrow=False, text=f"<b>exposed {time_text(result.exposed_communication_ms)}</b>",
            bgcolor=desk.style.surface, opacity=0.92,
            font={"size": desk.style.font_size, "color": desk.style.text},
        )  # fmt: skip
    desk.show(figure, "The step: computing, all-reduces, and the time in which only they run")
    if not gaps:
        st.caption("Nothing is exposed: every all-reduce is over before it is waited for.")


def _mark(figure: Figure, start_ms: float, end_ms: float) -> None:
    colour = CLASS_COLOURS["exposed_communication"]
    figure.add_vrect(
        x0=start_ms, x1=end_ms, fillcolor=colour, opacity=0.25, line={"width": 2, "color": colour},
        layer="above",
    )  # fmt: skip


def _sizes(desk: Desk, scenario: Scenario, *, overlap: bool) -> None:
    if not overlap or scenario.gpus == 1:
        st.info("Without overlap, or on one GPU, the size of a bucket changes nothing.")
        return
    points: list[SweepPoint] = once(
        "Simulating every bucket size", sweep_buckets, scenario, SIZES_MB
    )
    desk.show(
        bucket_sweep(points, scenario.bucket_mb, style=desk.style),
        "Exposed communication against the size of a bucket",
    )
    st.caption(
        "Small buckets pay the latency of every step again and queue; a large last bucket is ready "
        "only when backward ends, so that nothing hides it."
    )


LAB = Lab(
    code="ddp",
    page="pages/lab_data_parallel.py",
    title="Data parallel",
    idea="Every GPU holds the whole model and computes on samples of its own. Before the optimizer "
    "their gradients are summed by an all-reduce. Gradients of late layers are ready first, so "
    "they travel in buckets while backward goes on. What is still moving when backward ends is "
    "exposed.",
    formula=r"\begin{aligned}t_{\text{all-reduce}}&=2\,\frac{n-1}{n}\cdot\frac{S}{B}\\ "
    r"\text{exposed}&\ge t_{\text{last bucket}}\end{aligned}",
    source="Patarasu and Yuan, JPDC 2009. Buckets: Li et al., PyTorch Distributed, "
    "arXiv 2006.15704.",
    questions=("D1", "D2", "D3"),
    quick=("D1", "D2", "D3"),
    more=(REPLICAS, BUCKET, SPEED, LATENCY, ACCUMULATE),
    more_title="A step of ResNet-50 (batch 128, H100), simulated operator by operator",
    defaults={
        "": {"replicas": 8, "bucket_mib": 25.0, "link": 65.0, "latency_us": 5, "accumulate": 1},
        "D2": {"replicas": 64, "link": 25.0, "latency_us": 10, "view": "Bucket size"},
        "D3": {"link": 2.0},
    },
    settings={
        "overlap": switch("Buckets overlap backward", True),
        "view": choice("Picture", VIEWS),
        "whole": switch("Whole step"),
    },
    explain=(
        Cause(
            "Latency",
            "the formulas have none; the simulated step pays it 2(n \u2212 1) times for every "
            "bucket.",
            lambda values: values["latency_us"] > 0,
        ),
        Cause(
            "Real layers",
            "buckets of ResNet-50 are neither equal nor ready at equal distances: a bucket closes "
            "with the gradient that fills it.",
        ),
        Cause(
            "First and last bucket",
            "the formula takes the last bucket to be as large as the others; the simulated one "
            "holds what is left.",
        ),
        Cause(
            "Accumulation",
            "only the last batch of a step is followed by all-reduces, so that more batches hide "
            "nothing more, but there are fewer all-reduces for a sample.",
            lambda values: values["accumulate"] > 1,
        ),
    ),
    not_modelled=(
        "Computing does not slow down while the network is busy here; on the Simulate page it can.",
        "All GPUs are equally fast: stragglers are on the Simulate page.",
        "Copying gradients into buckets and back, and the CPU's launches.",
        "The fixed first bucket of 1 MiB that PyTorch starts with.",
    ),
    draw=draw,
)
