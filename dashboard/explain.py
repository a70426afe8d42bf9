"""Why is this GPU idle? A click on a timeline, or a choice from a list, explained below it.

Also: the critical path by kind, and what the step would be with one kind of thing cheaper.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from dashboard.computed import known, once
from dashboard.plain import micro, plain, short
from triosim import Result
from triosim.explain import Explanation, Inside, PathStep, Wait, WhatIf, explain
from triosim.figures.explain import critical_bars, what_if_tornado
from triosim.figures.text import time_text
from triosim.resolved import AnyScenario, run
from triosim.trace import trace_stamp

CHOSEN, INNER = "explained", "explained_inside"
RANK, ASKED = "gaps_of", "what_if_of"
MOST_LISTED = 12
REASON_LETTERS = 70
Show = Callable[..., None]


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """What is explained: a gap of a rank by its position, or a task; `of` says of what step."""

    of: Any
    rank: int
    gap: int = -1
    task: int = -1


def clicked(chart: str, of: Any, place: str, columns: Sequence[str], names: Sequence[str]) -> None:
    """A click on a bar of a chart: note what it is under the key `place`.

    `names` are the columns of its custom data that hold task, rank and position of a gap.
    """
    for point in st.session_state[chart].selection.points:
        task, rank, gap = (int(point["customdata"][columns.index(name)]) for name in names)
        if gap >= 0 or task >= 0:
            st.session_state[place] = Chosen(
                of=of, rank=rank, gap=gap, task=task if gap < 0 else -1
            )
            if place == CHOSEN:
                st.session_state[RANK] = rank


def path_toggle(name: str) -> None:
    """A switch for the critical path, under this name in the address."""
    st.toggle(
        "Critical path",
        key=name,
        bind="query-params",
        help="The chain of tasks that makes the step as long as it is: drawn as a line, and by "
        "kind below.",
    )


def path_of(result: Result, name: str) -> Sequence[PathStep]:
    """The critical path if the switch says that it is to be drawn."""
    return explain(result).critical_path if st.session_state.get(name) else ()


def explanation(
    result: Result, names: Mapping[int, str], path: Sequence[PathStep], show: Show, style: Any
) -> None:
    """Everything below a timeline; `names` are the GPUs whose gaps are listed."""
    found = explain(result)
    chosen: Chosen | None = st.session_state.get(CHOSEN)
    if chosen is None or chosen.of != result.scenario:
        chosen = None
    left, right = st.columns([0.25, 0.75]) if len(names) > 1 else (None, st.container())
    rank = next(iter(names))
    if left is not None:
        with left:
            rank = _rank(names)
    with right:
        _list(
            found.gaps(rank), found.reason, of=result.scenario, rank=rank, place=CHOSEN,
            chosen=chosen, name=names[rank],
        )  # fmt: skip
    _panel(_step_lines(found, chosen), CHOSEN)
    if path:
        st.markdown("**The critical path by kind**; it sums to the step")
        show(
            critical_bars(found.critical_totals, style=style),
            "Time on the critical path by kind",
            key="critical_bars",
        )
    _what_if(result, show, style)


def _rank(names: Mapping[int, str]) -> int:
    """Whose gaps are listed: of the GPU that was clicked last, or as chosen."""
    ranks = list(names)
    if st.session_state.get(RANK) not in ranks:
        st.session_state[RANK] = ranks[0]
    shown = ranks.index(st.session_state[RANK])
    rank: int = st.selectbox("Gaps of", ranks, shown, key=RANK, format_func=lambda one: names[one])
    return rank


def _list(
    waits: Sequence[Wait],
    reason: Callable[[Wait], str],
    *,
    of: Any,
    rank: int,
    place: str,
    chosen: Chosen | None,
    name: str,
    shift_s: float = 0.0,
) -> None:
    """The longest gaps, for keyboards and phones; times are shown `shift_s` later."""
    key = f"{place}_list"
    order = sorted(range(len(waits)), key=lambda i: -waits[i].seconds)[:MOST_LISTED]
    if not order:
        st.caption(f"No gaps: {plain(name)} computes all the time.")
        return
    if chosen is not None and chosen.rank == rank and chosen.gap in range(len(waits)):
        order += [] if chosen.gap in order else [chosen.gap]
        st.session_state[key] = chosen.gap
    elif st.session_state.get(key) is not None:
        st.session_state[key] = None
    st.selectbox(
        f"Longest gaps of {name}; or click on a gap or a bar above",
        order,
        index=None,
        key=key,
        placeholder="Choose a gap and see why",
        format_func=lambda i: _gap_name(waits[i], reason, shift_s),
        on_change=_from_list,
        args=(key, place, of, rank),
    )


def _gap_name(wait: Wait, reason: Callable[[Wait], str], shift_s: float) -> str:
    start = time_text((wait.start_s + shift_s) * 1e3)
    return f"{time_text(wait.seconds * 1e3)} at {start}: {short(reason(wait), REASON_LETTERS)}"


def _from_list(key: str, place: str, of: Any, rank: int) -> None:
    gap = st.session_state[key]
    st.session_state[place] = None if gap is None else Chosen(of=of, rank=rank, gap=gap)


def _step_lines(found: Explanation, chosen: Chosen | None) -> Sequence[str]:
    if chosen is None:
        return ()
    if chosen.gap >= 0:
        waits = found.gaps(chosen.rank)
        return found.why(waits[chosen.gap]) if chosen.gap < len(waits) else ()
    known = chosen.task < len(found.result.tasks.program)
    return found.of(chosen.task).lines if known else ()


def _panel(lines: Sequence[str], place: str) -> None:
    """Sentences, the first one in bold."""
    if not lines:
        return
    first, *more = (plain(micro(line)) for line in lines)
    with st.container(border=True, key=f"{place}_panel"):
        st.markdown("\n".join([f"**{first}**", "", *(f"- {line}" for line in more)]))


def inside_of(result: Result, task: int, unit: str) -> Inside | None:
    """One layer of a pass by its name."""
    return next((one for one in explain(result).inside(task) if one.unit.name == unit), None)


def inner_explanation(inside: Inside, of: Any) -> None:
    """The same for one layer of a pass of a training step."""
    chosen: Chosen | None = st.session_state.get(INNER)
    if chosen is None or chosen.of != of:
        chosen = None
    _list(
        inside.waits, inside.reason, of=of, rank=-1, place=INNER, chosen=chosen,
        name=inside.unit.name, shift_s=inside.offset_s - inside.begin_s,
    )  # fmt: skip
    if chosen is None:
        return
    if chosen.gap >= 0:
        waits = inside.waits
        _panel(inside.why(waits[chosen.gap]) if chosen.gap < len(waits) else (), INNER)
    elif chosen.task < len(inside.tasks):
        _panel(inside.of(inside.tasks[chosen.task]), INNER)


def _what_if(result: Result, show: Show, style: Any) -> None:
    """Every kind of thing free and twice as fast, on demand: each is a simulation."""
    scenario: AnyScenario = result.scenario
    stamp = trace_stamp(scenario.trace_dir or "")
    key = scenario, stamp
    if st.session_state.get(ASKED) != key and known(what_if_of, scenario, of=stamp) is None:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.button(
                "What would make it shorter?",
                icon=":material/bolt:",
                key="ask_what_if",
                on_click=_ask,
                args=(key,),
            )
            st.caption("Runs the step again with each kind of thing free, and twice as fast.")
        return
    rows: Sequence[WhatIf] = once("Trying each change", what_if_of, scenario, of=stamp, heavy=True)
    st.markdown("**What would make it shorter**: the step with one kind of thing cheaper")
    show(what_if_tornado(rows, style=style), "The step with one thing cheaper", key="tornado")
    st.caption(
        "Beside the line: how much the step changes if it were free. "
        "Order, plan and algorithms stay as they are. What is hidden behind something else gains "
        "nothing; where something else takes its place, only a part."
    )


def _ask(key: object) -> None:
    st.session_state[ASKED] = key


def what_if_of(scenario: AnyScenario) -> tuple[WhatIf, ...]:
    """In a worker, which simulates the step again."""
    return explain(run(scenario)).what_if()
