"""The compared steps side by side: their figures, what differs, and what to do with one."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dashboard.compare_links import set_scenarios
from dashboard.compare_open import door_to
from dashboard.compare_run import Compared, Step
from dashboard.compare_text import setting_text, setting_value
from dashboard.plain import micro, plain
from triosim.figures.compare_waterfall import signed_time
from triosim.figures.text import MIDDLE_DOT, digits, memory_text, time_text
from triosim.resolved import AnyScenario

MAX_SAID = 3


def cards(steps: Sequence[Step], both: Compared | None) -> None:
    """One card for each step; the first is the baseline."""
    for column, index in zip(st.columns(len(steps)), range(len(steps)), strict=True):
        with column.container(border=True, height="stretch", gap="xsmall", key=f"step_{index}"):
            _card(steps, index, both)


def _card(steps: Sequence[Step], index: int, both: Compared | None) -> None:
    step = steps[index]
    head = f"**{step.letter}** {MIDDLE_DOT} " + plain(step.name)
    st.markdown(head + (f" {MIDDLE_DOT} :gray[baseline]" if index == 0 else ""))
    if step.result is None:
        st.error(f"No result: {plain(step.problem)}")
    else:
        _figures(step, None if index == 0 else both)
    if both is not None and index and step in both.steps:
        number = list(both.steps).index(step)
        with st.container(key=f"said_{index}"):
            st.markdown(plain(micro(both.found.paragraph(number))))
        said = _changed(both, number)
        if said:
            st.caption(said)
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        _actions([one.scenario for one in steps], index)


def _figures(step: Step, both: Compared | None) -> None:
    result = step.result
    assert result is not None
    more = None if both is None else result.total_ms - both.found.baseline.total_ms
    st.metric(
        "Step time",
        time_text(result.total_ms),
        label_visibility="collapsed",
        delta=None if more is None else _signed(more) if more else "no difference",
        delta_color="inverse" if more else "off",
        delta_arrow="auto" if more else "off",
    )
    rate = "n/a" if result.samples_per_s is None else digits(result.samples_per_s)
    peak, capacity = result.peak_memory_bytes, result.capacity_bytes
    memory = f"{memory_text(peak)} of {memory_text(capacity)}"
    if peak <= capacity:
        st.caption(f"{rate} samples/s {MIDDLE_DOT} {memory}")
        return
    with st.container(key=f"said_memory_{step.letter}"):
        st.markdown(f"{rate} samples/s {MIDDLE_DOT} :red[{memory}: **does not fit**]")


def _signed(ms: float) -> str:
    """With the sign that Streamlit knows to point down."""
    return signed_time(ms).replace("\N{MINUS SIGN}", "-")


def _changed(both: Compared, number: int) -> str:
    """The first settings that are not the baseline's."""
    if both.found.resolved[number].kind != both.found.resolved[0].kind:
        return ""
    found = [
        f"{plain(setting_text(one).partition(' (')[0])} {plain(setting_value(one, number))}"
        for one in both.found.differences
        if one.values[number] not in (None, one.values[0])
    ]
    more = f" and {len(found) - MAX_SAID} more" if len(found) > MAX_SAID else ""
    return f"{', '.join(found[:MAX_SAID])}{more}" if found else "The same settings."


def _actions(scenarios: list[AnyScenario], index: int) -> None:
    mine = scenarios[index]
    others = [one for number, one in enumerate(scenarios) if number != index]
    if index:
        st.button(
            "Baseline", icon=":material/vertical_align_top:", type="tertiary",
            help="Make this step the baseline",
            key=f"base_{index}", on_click=set_scenarios, args=([mine, *others],),
        )  # fmt: skip
    st.button(
        "Remove", icon=":material/close:", type="tertiary", key=f"remove_{index}",
        on_click=set_scenarios, args=(others,),
    )  # fmt: skip
    door = door_to(mine)
    if door is not None:
        page, title, parameters = door
        st.page_link(
            page,
            label=title,
            help="Open this step there",
            icon=":material/open_in_new:",
            query_params=parameters,
        )
