"""The headline of a training step: four numbers, and measured ones beside them."""

from __future__ import annotations

import streamlit as st

from dashboard.bound import number
from dashboard.cards import show_cards
from dashboard.names import plan_name
from dashboard.numbers import say_refused
from dashboard.plain import plain
from dashboard.train_published import Published, published_for
from dashboard.train_run import Answer
from dashboard.train_settings import SETTINGS
from triosim.errors import counted
from triosim.figures.text import time_text
from triosim.train import TrainResult
from triosim.validation.tables import LAYER


def title_of(result: TrainResult) -> str:
    """The plan in a few words."""
    return plain(plan_name(result.plan))


def headline(answer: Answer) -> None:
    """Four numbers, each with a line that says what it means."""
    result, band = answer.result, answer.band
    batches = result.plan.microbatches
    prefill = result.scenario.prefill
    gpus, in_tokens = result.scenario.gpus, result.plan.in_tokens
    show_cards(
        (
            (
                "Time to first token" if prefill else "Step time",
                time_text(result.step_ms),
                f"{time_text(band.low_ms)} to {time_text(band.high_ms)}: the range of the "
                "stack's constants",
            ),
            (
                f"{'Tokens' if in_tokens else 'Samples'}/s per GPU",
                f"{result.tokens_per_s_per_gpu if in_tokens else result.samples_per_s / gpus:,.0f}",
                f"{counted(result.plan.global_batch, 'sequence' if in_tokens else 'sample')}"
                f"{'' if prefill else ' a step'}, "
                f"{batches:,} micro-batch{'' if batches == 1 else 'es'}",
            ),
            ("MFU", *_utilisation(result)),
            ("Peak memory per GPU", f"{result.peak_memory_gib:,.1f} GiB", _fit(result)),
        )
    )


def _utilisation(result: TrainResult) -> tuple[str, str]:
    if not result.model_flops:
        return "not known", "the trace counts no floating-point operations"
    peak = result.peak_flops / 1e12
    return f"{result.mfu:.1%}".replace("%", " %"), (
        f"{result.model_tflops_per_gpu:,.0f} of {peak:,.0f} TFLOP/s "
        f"({result.peak_dtype}); HFU {result.hfu:.1%}"
    ).replace("%", " %")


def _fit(result: TrainResult) -> str:
    capacity = result.capacity_bytes / 2**30
    left = capacity - result.peak_memory_gib
    if result.fits:
        return f"of {capacity:,.0f} GiB: fits, {left:,.1f} GiB are free"
    return f":red[of {capacity:,.0f} GiB: **does not fit**, {-left:,.1f} GiB too much]"


def measured(answer: Answer) -> None:
    """What others measured with these settings, and what the reader did."""
    result = answer.result
    left, right = st.columns([0.74, 0.26], vertical_alignment="center", gap="medium")
    with right:
        own = number(SETTINGS["measured"], placeholder="to compare")
        say_refused("measured")
    with left:
        found = published_for(result.plan)
        if own:
            st.markdown(
                f"**You measured** {own:,.15g} ms: simulated is "
                f"**{signed(result.difference_to(own))}**."
            )
        if found is not None:
            _published(result, found)
        elif not own:
            st.caption(
                "No published run has exactly these settings: choose one in the sidebar, or type "
                "what you measured."
            )


def _published(result: TrainResult, found: Published) -> None:
    """Published values, each with the signed error of the simulated one, and their source."""
    row = found.row
    if row.measured == LAYER:
        st.caption(
            f"{found.source.title} published one layer's forward and backward with these settings, "
            "not a step: the page Validation compares it."
        )
        return
    values = [
        (row.published_s, result.step_s, "{:,.3f} s"),
        (found.tokens_per_s_per_gpu, result.tokens_per_s_per_gpu, "{:,.0f} tokens/s per GPU"),
        (row.published_gib, result.peak_memory_gib, "{:,.1f} GiB"),
    ]
    said = [
        f"{form.format(theirs)} (simulated **{signed(ours / theirs - 1)}**)"
        for theirs, ours, form in values
        if theirs is not None
    ]
    note = f"\n\n{plain(row.note[:1].upper() + row.note[1:])}." if row.note else ""
    st.markdown(
        f"**Published** by {found.source.title}: {', '.join(said)}.",
        help=f"{plain(row.where)}\n\n{plain(found.source.citation)}{note}",
    )


def signed(share: float) -> str:
    """A relative error, as in +4.2 %."""
    return f"{share * 100:+.1f}\u00a0%".replace("-", "\u2212")
