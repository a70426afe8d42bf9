"""The tabs of the page Network with inputs of their own: two collectives, circuits, failures."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from dashboard import work
from dashboard.cards import show_cards
from dashboard.network_answers import compared, overlapped
from dashboard.network_controls import (
    SETUP_MARKS,
    SPEED_MARKS,
    choice,
    members,
    number,
    number_with_slider,
    size_bytes,
)
from dashboard.network_groups import Members
from dashboard.network_optical import Comparison
from dashboard.network_overlap import Wish, verdict
from dashboard.network_settings import LAYOUTS
from dashboard.network_side import Chosen, sentence
from dashboard.plain import plain
from dashboard.timeline import show, style
from dashboard.traces_store import folder_of
from triosim.analysis.goodput import Goodput, goodput
from triosim.errors import TrioSimError
from triosim.figures.network_lines import goodput_figure, setup_figure, shares_figure
from triosim.figures.network_overlap import overlap_gantt, usage_figure
from triosim.figures.text import bytes_text, digits, share_text, time_text
from triosim.network.optical import mesh_factorisations
from triosim.scenario import Scenario

DAY_S = 86_400.0


def overlap_tab(chosen: Chosen) -> None:
    """Two forms, an offset, and what happens."""
    left, right = st.columns(2)
    with left.container(border=True):
        st.markdown("**First**")
        first = _wish("a")
    with right.container(border=True):
        st.markdown("**Second**")
        second = _wish("b")
        offset_ms = number("offset", step=0.5)
    assert chosen.network is not None
    try:
        found = overlapped(chosen.network, (first, second), offset_ms / 1e3)
    except TrioSimError as error:
        st.error(sentence(error))
        return
    names = (_name("first", first), _name("second", second))
    st.markdown(plain(verdict(found)))
    show(overlap_gantt(names, found.spans, style=style()), "Both collectives, alone and together")
    if found.shared:
        show(
            usage_figure(names, found.shared, style=style()),
            "What both put on the links that they share",
        )
    st.caption(
        f"The first uses {found.algorithms[0]}, the second {found.algorithms[1]}: each the fastest "
        "when alone. Sharing is max-min fair: both speed up together, each counted on the link "
        "that it loads most, until a link is full. Links that carry the same are shown once."
    )


def _wish(letter: str) -> Wish:
    operation = choice(f"op_{letter}")
    size = size_bytes(f"size_{letter}")
    kind, typed = members(f"group_{letter}", f"members_{letter}")
    return Wish(operation=operation, size_bytes=size, members=Members(kind=kind, text=typed))


def _name(which: str, wish: Wish) -> str:
    return f"{which}: {wish.operation}, {bytes_text(wish.size_bytes)}"


def optical_tab() -> None:
    """The same step over electrical links and over circuits that have to be set up."""
    electrical, optical = _interconnects()
    try:
        work.check_size(electrical)
        found = compared(electrical, optical)
    except TrioSimError as error:
        st.error(sentence(error))
        return
    _show_comparison(found, optical)


def _interconnects() -> tuple[Scenario, Scenario]:
    """The form: one scenario over electrical links and over circuits."""
    left, middle, right = st.columns(3)
    with left.container(border=True):
        st.markdown("**Workload**")
        trace = choice("workload")
        case = LAYOUTS[choice("layout")]
        gpus = number("workers")
    with middle.container(border=True, height="stretch"):
        st.markdown("**Electrical**")
        electric = number_with_slider("electric", SPEED_MARKS, step=5)
        electric_us = number("electric_alpha", step=0.5)
    with right.container(border=True):
        st.markdown("**Optical circuits**")
        optic = number_with_slider("optic", SPEED_MARKS, step=5)
        hop_ns = number("hop", step=10)
        setup_ms = number_with_slider("setup", SETUP_MARKS, step=0.1)
    electrical = Scenario(
        trace_dir=str(folder_of(trace)),
        case=case,
        gpus=gpus,
        ptp_convention="link",
        ptp_bandwidth_gb_per_s=electric,
        latency_us=electric_us,
        optical_gb_per_s=optic,
        hop_latency_ns=hop_ns,
    )
    rows = max(r for r, c in mesh_factorisations(gpus) if r <= c)
    optical = replace(electrical, interconnect="optical", circuit_setup_ms=setup_ms, mesh_rows=rows)
    return electrical, optical


def _show_comparison(found: Comparison, optical: Scenario) -> None:
    setup_ms, (rows, columns) = optical.circuit_setup_ms, optical.mesh
    saved = found.electrical_ms - found.optical_ms
    faster = "optical is faster" if saved > 0 else "electrical is faster"
    show_cards(
        (
            (
                "Electrical step",
                time_text(found.electrical_ms),
                f"{time_text(found.electrical_exposed_ms)} waits for transfers",
            ),
            (
                "Optical step",
                time_text(found.optical_ms),
                f"{time_text(found.optical_exposed_ms)} waits for transfers and circuits",
            ),
            ("Difference", time_text(abs(saved)), faster if saved else "both take as long"),
            (
                "Break-even set-up",
                "none" if found.break_even_ms is None else time_text(found.break_even_ms),
                f"now {time_text(setup_ms)}",
            ),
        )
    )
    st.markdown(plain(_break_even_text(found)))
    figure = setup_figure(
        found.optical_curve,
        found.electrical_ms,
        here_ms=setup_ms,
        break_even_ms=found.break_even_ms,
        style=style(),
    )
    show(figure, "Step time against the set-up time of a circuit")
    st.caption(
        f"Both run a ring: {2 * (optical.gpus - 1)} steps for each all-reduce, one hop each. A "
        f"circuit is one hop however many links of the {rows} x {columns} mesh it passes, and "
        "stands once it is set up; at a set-up of 0 all of them stand before the step."
    )


def _break_even_text(found: Comparison) -> str:
    if found.break_even_ms is not None:
        return (
            f"Circuits pay off while setting one up takes less than "
            f"{time_text(found.break_even_ms)}: then both steps take "
            f"{time_text(found.electrical_ms)}."
        )
    if found.standing_ms >= found.electrical_ms:
        return (
            f"Circuits do not pay off here: even when they stand before the step it takes "
            f"{time_text(found.standing_ms)}, against {time_text(found.electrical_ms)}."
        )
    return "Circuits pay off at any set-up time: it hides behind computing."


def failures_tab() -> None:
    """Goodput of a long run, from Young's and Daly's model."""
    left, middle, right = st.columns(3)
    with left:
        gpus = number("cluster", step=1024)
        mtbf_hours = number("mtbf", step=1000)
    with middle:
        checkpoint_s = number("checkpoint", step=5)
        restart_s = number("restart", step=30)
    with right:
        interval_min = number("interval", step=1, placeholder="Daly's optimum")
        days = number("days")
    try:
        found = goodput(
            work_s=days * DAY_S,
            gpus=gpus,
            gpu_mtbf_hours=mtbf_hours,
            checkpoint_s=checkpoint_s,
            restart_s=restart_s,
            interval_s=None if interval_min is None else interval_min * 60,
        )
    except TrioSimError as error:
        st.error(sentence(error))
        return
    _show_goodput(found, days)


def _show_goodput(found: Goodput, days: float) -> None:
    show_cards(
        (
            ("Goodput", share_text(found.goodput, 1.0), "of the time is useful work"),
            (
                "A failure every",
                time_text(found.mtbf_s * 1e3) if found.mtbf_s < 3600 else _hours(found.mtbf_s),
                f"{found.failures:,.0f} in the whole run",
            ),
            (
                "Checkpoint every",
                _minutes(found.interval_s),
                f"Young {_minutes(found.young_s)}, Daly {_minutes(found.daly_s)}",
            ),
            (
                "The run takes",
                f"{digits(found.wall_s / DAY_S)} days",
                f"for {digits(days)} days of training",
            ),
        )
    )
    shares = {
        "useful_work": found.goodput,
        "checkpoints": found.checkpoint_share,
        "work_done_again": found.rework_share,
        "restarts": found.restart_share,
    }
    show(shares_figure(shares, style=style()), "What the run's time is spent on")
    marks = {"chosen": found.interval_s, "Young": found.young_s, "Daly": found.daly_s}
    show(
        goodput_figure(found.curve, marks, style=style()),
        "Goodput against the work between two checkpoints",
    )
    st.caption(
        "Any failure stops all GPUs; failures come at random times and can hit a restart. Not "
        "modelled: planned stops, spare GPUs that run out, checkpoints written while training goes "
        "on. For 50,000 hours: Llama 3 405B counted 419 unexpected interruptions of 16,384 GPUs in "
        "54 days (arXiv 2407.21783, table 5), one for each 50,700 GPU hours."
    )


def _hours(seconds: float) -> str:
    return f"{digits(seconds / 3600)} h"


def _minutes(seconds: float) -> str:
    return f"{digits(seconds / 60)} min" if seconds >= 60 else f"{digits(seconds)} s"
