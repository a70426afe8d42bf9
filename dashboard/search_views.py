"""A search's results: the winner, how the others ended, their ranking."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from dashboard.cards import show_cards
from dashboard.compare_links import PAGE as COMPARE_PAGE
from dashboard.compare_links import link_to as compare_link
from dashboard.complaints import on_top
from dashboard.pinned import pin
from dashboard.plain import plain
from dashboard.search_run import begin, key_of, search_of
from dashboard.search_settings import Question
from dashboard.search_table import COMPARE, OPEN, PIN, ranked_table
from dashboard.sweep_board import Run, State
from dashboard.sweep_open import ask_scenario, say_refused
from dashboard.sweep_run import watch
from dashboard.timeline import on_click, show, style
from dashboard.validation_files import downloads
from triosim.errors import counted
from triosim.figures.search import fastest_layouts
from triosim.figures.text import MIDDLE_DOT, time_text
from triosim.search import OUTCOMES, Ranked, SearchResult

TABLE_PX = 460
ASKED_COMPARE = "search_compare"
ALL = "all"


def search(question: Question) -> None:
    """Everything beside the sidebar."""
    base = question.base
    title, actions = st.columns([0.7, 0.3], vertical_alignment="center")
    title.subheader(
        plain(f"The fastest layout of {base.model} on {counted(base.gpus, 'GPU')}"), anchor=False
    )
    run = search_of(question)
    if run is None or run.state in (State.STOPPED, State.FAILED):
        _start(question, run)
        return
    if run.running:
        watch("search", key_of(question), run.total)
        st.caption(
            "First all layouts are bounded, then the most promising ones are simulated. You can "
            "use the other pages meanwhile."
        )
        return
    found: SearchResult = run.found
    say_refused()
    _winner(found)
    figure = _fastest(found)
    _counts(found)
    _ranking(found)
    with actions.container(horizontal=True, horizontal_alignment="right"):
        downloads("search", found.frame, {"Fastest layouts": figure})


def _start(question: Question, run: Run | None) -> None:
    if run is not None and run.bug is not None:
        raise run.bug
    if run is not None and run.problem is not None:
        on_top(plain(str(run.problem)), "The search ended", beside=False)
    st.markdown(
        "Every way to lay the model out over these GPUs: data parallel (replicated or sharded), "
        "context, tensor, pipeline and expert parallel. For each one the best micro-batch, "
        "recompute mode, schedule and ZeRO stage. You see which is fastest and why others are not."
    )
    st.button(
        "Search", icon=":material/search:", on_click=begin, args=(question,)
    )  # fmt: skip


def _winner(found: SearchResult) -> None:
    best = found.best
    if best is None:
        st.error("No layout fits within these limits. The table says what each one lacks.")
        return
    figures, scenario = best.figures, best.scenario
    assert figures is not None
    assert scenario is not None
    show_cards(
        [
            ("Fastest layout", best.layout, best.plan),
            ("Step time", time_text(figures.step_ms), f"{100 * figures.mfu:.1f} % MFU"),
            (
                "Tokens/s per GPU",
                f"{figures.tokens_per_s_per_gpu:,.0f}",
                f"{figures.tokens_per_s_per_gpu * scenario.gpus:,.0f} in all",
            ),
            (
                "Peak memory",
                f"{figures.peak_memory_bytes / 2**30:.1f} GiB",
                f"on stage {figures.fullest_stage}" if scenario.pp > 1 else "on every GPU",
            ),
        ],
        key="search",
    )


def _fastest(found: SearchResult) -> Any:
    figure = fastest_layouts(found.ranked, style=style())
    show(
        figure,
        "The ten fastest layouts, and what their steps consist of",
        key="search_fastest",
        on_select=on_click("search_fastest", _bar_clicked, found.ranked),
        selection_mode="points",
    )
    return figure


def _bar_clicked(ranked: Sequence[Ranked]) -> None:
    for point in st.session_state["search_fastest"].selection.points:
        one = ranked[int(point["customdata"][0])]
        ask_scenario(one.scenario, one.reason)
        return


def _counts(found: SearchResult) -> None:
    """How the layouts ended; the chosen outcome is what the table lists."""
    parts = [f"**{count:,}** {OUTCOMES[name]}" for name, count in found.counts().items() if count]
    st.caption(
        f"{counted(len(found.ranked), 'layout')}: {f' {MIDDLE_DOT} '.join(parts)}. "
        f"Of {counted(found.plans, 'plan')} {found.simulated:,} were simulated; bounds that no "
        "simulated step can undercut exclude the rest."
    )


def _ranking(found: SearchResult) -> None:
    names = {name: count for name, count in found.counts().items() if count}
    chosen = st.segmented_control(
        "Layouts in the table",
        [ALL, *names],
        default=ALL,
        required=True,
        key="search_outcome",
        format_func=lambda name: f"{name} ({names.get(name, len(found.ranked)):,})",
        label_visibility="collapsed",
    )
    places = {
        place: one
        for place, one in enumerate(found.ranked, 1)
        if chosen == one.outcome or (chosen == ALL and one.scenario is not None)
    }
    listed = list(places.values())
    _show(ranked_table(listed, list(places)), listed, found.best)
    st.caption(
        "Open shows a layout on the page Train, as does a click on its bar. At least (\u2265): a "
        "bound, which was enough to leave it out. " + " ".join(map(plain, found.assumptions))
    )


def _show(table: Any, listed: Sequence[Ranked], best: Ranked | None) -> None:
    def row(key: str) -> Ranked:
        return listed[int(st.session_state[key].row)]

    def opened() -> None:
        one = row("search_open")
        ask_scenario(one.scenario, one.reason)

    def pinned() -> None:
        one = row("search_pin")
        if one.scenario is not None:
            pin(one.scenario, one.step_ms)
            st.toast(f"Pinned: {one.layout}", icon=":material/keep:")

    def compared() -> None:
        one = row("search_compared")
        if one.scenario is not None and best is not None and best.scenario is not None:
            st.session_state[ASKED_COMPARE] = [best.scenario, one.scenario]

    button = st.column_config.ButtonColumn
    buttons = {
        OPEN: button("", type="tertiary", on_click=opened, key="search_open", width=60,
                     pinned=True),
        PIN: button("", type="tertiary", on_click=pinned, key="search_pin", width=50),
        COMPARE: button("", type="tertiary", on_click=compared, key="search_compared", width=90,
                        help="With the winner"),
    }  # fmt: skip
    widths = {"place": 50, "layout": 190, "step": 90, "memory": 92, "why": 400, "MFU": 60}
    st.dataframe(
        table,
        hide_index=True,
        height=min(TABLE_PX, 38 + 35 * len(table)),
        column_config={
            **{name: st.column_config.Column(name, width=px) for name, px in widths.items()},
            **buttons,
        },
    )


def open_compared() -> None:
    """Go to the page Compare where it was asked for."""
    scenarios = st.session_state.pop(ASKED_COMPARE, None)
    if scenarios is not None:
        st.switch_page(COMPARE_PAGE, query_params=compare_link(scenarios))
