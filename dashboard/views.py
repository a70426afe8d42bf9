"""A result on the page: headline numbers, checks, warnings, downloads, and the tabs."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.cards import show_cards
from dashboard.joined import machine_of, network_tab
from dashboard.links import TABS
from dashboard.names import name_of
from dashboard.numbers import number_field, say_refused
from dashboard.plain import plain
from dashboard.timeline import representatives, show, style, timeline
from triosim import Result, Scenario
from triosim.analysis.breakdown import CLASSES, SLOWDOWN
from triosim.errors import counted
from triosim.figures import breakdown_bars, communication_bars, memory_figure, step_times_figure
from triosim.figures.text import bytes_text, digits, memory_text, share_text, time_text, words
from triosim.network.topology.machines import load_machine
from triosim.notes import ASSUMPTIONS, NOT_MODELLED, assumptions_for

MAX_ROWS = 64
CLASS_MEANING = {
    "compute": "operators run",
    "launch_wait": "not launched yet",
    "exposed_communication": "waits for a transfer",
    "bubble": "waits for another stage",
    "imbalance": "waits for a slower GPU",
    "idle": "nothing left to do",
}
TICK, CROSS = ":material/check:", ":material/close:"


def title_of(scenario: Scenario) -> str:
    """The scenario in a few words."""
    return plain(name_of(scenario))


def headline(result: Result) -> None:
    """Four numbers, each with a line that says what it means."""
    speedup = "n/a" if result.speedup is None else f"{digits(result.speedup)}\u00d7"
    rate = "n/a" if result.samples_per_s is None else f"{result.samples_per_s:,.0f}"
    cards = (
        ("Step time", time_text(result.total_ms), _verdict(result)),
        ("Speed-up", speedup, _efficiency(result)),
        ("Samples per second", rate, f"{counted(result.samples, 'sample')} in a step"),
        (
            "Peak memory per GPU",
            memory_text(result.peak_memory_bytes),
            f"{share_text(result.peak_memory_bytes, result.capacity_bytes)} of "
            f"{memory_text(result.capacity_bytes)}",
        ),
    )
    show_cards(cards)


def _verdict(result: Result) -> str:
    """How much of the step is work; where steps differ, how they do."""
    times = result.step_times
    if times is not None:
        return f"P50 {time_text(times.p50_ms)}, P95 {time_text(times.p95_ms)}"
    return f"{share_text(result.compute_ms, result.total_ms)} of it is compute"


def _efficiency(result: Result) -> str:
    gpus = result.scenario.gpus
    if result.speedup is None:
        return "the step does not fit on one GPU"
    if gpus == 1:
        return "this is the one GPU"
    return f"{result.speedup / gpus * 100:.0f} % of the ideal {gpus:,}\u00d7"


def notices(result: Result) -> None:
    """Every warning."""
    for warning in result.warnings:
        st.warning(plain(warning), icon=":material/warning:")


def check_badge(result: Result) -> None:
    """How many checks passed; the last tab has them one by one."""
    failed = sum(not check.passed for check in result.checks)
    if failed:
        st.badge(f"{failed} of {len(result.checks)} checks failed", color="red", icon=CROSS)
    else:
        st.badge(f"{len(result.checks)} checks passed", color="green", icon=TICK)


def checks(result: Result) -> None:
    """One badge for each check; it opens to what was compared."""
    st.markdown(
        "Each check is arithmetic on the finished timeline; one that fails is a bug of the "
        "simulator."
    )
    with st.container(horizontal=True, gap="small"):
        for check in result.checks:
            colour, icon = ("green", TICK) if check.passed else ("red", CROSS)
            with st.popover(f":{colour}[{check.id}]", icon=icon):
                st.markdown(f"**{check.id}** {'holds' if check.passed else 'FAILED'}")
                st.text(check.detail)


def assumptions(result: Result) -> None:
    """What the model takes for granted, here and always, and what it leaves out."""
    left, right = st.columns(2)
    _list(left, "Assumed", ASSUMPTIONS)
    _list(right, "Not modelled", NOT_MODELLED)
    _list(right, "Assumed for this step", assumptions_for(result.scenario, result.tasks))
    machine = machine_of(result.scenario)
    if machine is not None:
        sources = load_machine(machine).sources.items()
        _list(right, f"Sources of {machine}", [f"{part}: {source}" for part, source in sources])


def _list(column: DeltaGenerator, title: str, lines: Sequence[str]) -> None:
    if lines:
        points = "\n".join(f"- {plain(line)}" for line in lines)
        column.markdown(f"**{plain(title)}**\n\n{points}")


def tabs(result: Result) -> None:
    """Views of the result; only the open one is built."""
    views = (timeline, _time_tab, _communication_tab, _memory_tab, network_tab, _checks_tab)
    opened = st.tabs(list(TABS), key="tab", on_change="rerun", bind="query-params")
    for tab, view in zip(opened, views, strict=True):
        if tab.open:
            with tab:
                view(result)


def _time_tab(result: Result) -> None:
    st.caption("Mean over all GPUs; the six sum to the step.")
    widths = [1.5 if len(name) > 12 else 1.0 for name in CLASSES]
    for column, name in zip(st.columns(widths), CLASSES, strict=True):
        value = getattr(result, f"{name}_ms")
        with column.container(gap=None):
            st.metric(words(name).capitalize(), time_text(value))
            st.caption(f"{share_text(value, result.total_ms)}: {CLASS_MEANING[name]}")
    if result.step_times is not None:
        show(step_times_figure(result, style=style()), "How long steps take")
    ranks = _chart_ranks(result)
    show(breakdown_bars(result, ranks, style=style()), "Where each GPU's step goes")
    st.dataframe(_rank_table(result), hide_index=True)


def _chart_ranks(result: Result) -> Sequence[int]:
    return range(result.scenario.gpus) if result.scenario.gpus <= 16 else representatives(result)


def _rank_table(result: Result) -> pd.DataFrame:
    """One row for each GPU, or for each group of identical ones where there are many."""
    if result.scenario.gpus <= MAX_ROWS:
        rows = [{"GPU": str(entry["rank"]), **entry} for entry in result.per_rank]
    else:
        rows = [
            {"GPU": f"{group.rank} (x {len(group.members):,})", **result.class_entry(c)}
            for c, group in enumerate(result.classes)
        ]
    table = pd.DataFrame(rows)
    columns = {f"{name}_ms": f"{words(name)} (ms)" for name in CLASSES}
    if f"{SLOWDOWN}_ms" in table:
        first = {"compute_ms": columns["compute_ms"], f"{SLOWDOWN}_ms": "slow-down in it (ms)"}
        columns = first | columns
    columns["peak_memory_bytes"] = "peak memory (MiB)"
    table["peak_memory_bytes"] = table["peak_memory_bytes"] / 2**20
    return table[["GPU", *columns]].rename(columns=columns).round(4)


def _communication_tab(result: Result) -> None:
    if not result.communication:
        st.info("Nothing is transferred in this step.")
        return
    show(communication_bars(result, style=style()), "Communication by kind and purpose")
    st.dataframe(
        pd.DataFrame(
            {
                "kind": [row.kind for row in result.communication],
                "purpose": [row.purpose for row in result.communication],
                "transfers": [row.transfers for row in result.communication],
                "moved, all GPUs": [bytes_text(row.bytes) for row in result.communication],
                "busy (ms, mean)": [round(row.busy_s * 1e3, 6) for row in result.communication],
                "exposed (ms, mean)": [
                    round(row.exposed_s * 1e3, 6) for row in result.communication
                ],
            }
        ),
        hide_index=True,
    )
    st.caption("Busy: such a transfer is moving. Exposed: and the GPU has nothing else to do.")


def _memory_tab(result: Result) -> None:
    last = result.scenario.gpus - 1
    rank = 0
    if last:
        rank = number_field("GPU", 0, last, 0, key="memory_rank", bind="query-params", width=160)
        say_refused("memory_rank")
    show(memory_figure(result, rank, style=style()), f"Memory in use on GPU {rank}")


def _checks_tab(result: Result) -> None:
    checks(result)
    assumptions(result)
