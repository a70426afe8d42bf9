"""The result that a session keeps as the baseline, and the buttons for it on every page."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from dashboard.compare_links import PAGE, link_to
from dashboard.names import name_of
from dashboard.plain import plain
from triosim.figures.text import time_text
from triosim.resolved import AnyScenario

PINNED, ASKED = "pinned", "compare_asked"


@dataclass(frozen=True, kw_only=True)
class Pinned:
    """A scenario and how long its step took; None where that is not known yet."""

    scenario: AnyScenario
    step_ms: float | None

    @property
    def text(self) -> str:
        """What is pinned, for a line of Markdown."""
        time = "" if self.step_ms is None else f", {time_text(self.step_ms)}"
        return plain(name_of(self.scenario) + time)


def pinned() -> Pinned | None:
    found: Pinned | None = st.session_state.get(PINNED)
    return found


def pin(scenario: AnyScenario, step_ms: float | None) -> None:
    st.session_state[PINNED] = Pinned(scenario=scenario, step_ms=step_ms)


def unpin() -> None:
    st.session_state.pop(PINNED, None)


def pin_buttons(scenario: AnyScenario, step_ms: float | None = None) -> None:
    """Pin this result, or compare it with the one that is pinned; a page has these once."""
    kept = pinned()
    if kept is None:
        st.button(
            "Pin",
            icon=":material/keep:",
            help="Keep this result as the baseline that others are compared with",
            on_click=pin,
            args=(scenario, step_ms),
        )
        return
    this = kept.scenario == scenario
    with st.popover("Pinned", icon=":material/keep:"):
        st.markdown(f"{'This result is' if this else 'The baseline is'} pinned: {kept.text}")
        with st.container(horizontal=True, gap="small"):
            if not this:
                st.button("Pin this instead", on_click=pin, args=(scenario, step_ms))
            st.button("Unpin", icon=":material/keep_off:", on_click=unpin)
        if this:
            st.caption("Change a setting or open another page, then compare with this one.")
    if this:
        return
    st.button(
        "Compare with pinned",
        icon=":material/compare_arrows:",
        on_click=_ask,
        args=(kept.scenario, scenario),
    )
    # Noted and not what the button says: a page may start over before it comes to this line.
    asked = st.session_state.pop(ASKED, None)
    if asked is not None:
        st.switch_page(PAGE, query_params=link_to(asked))


def _ask(*scenarios: AnyScenario) -> None:
    st.session_state[ASKED] = scenarios
