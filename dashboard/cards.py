"""The headline numbers of a page."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

Card = tuple[str, str, str]


def show_cards(cards: Sequence[Card]) -> None:
    """Side by side: what it is, its value, and a line that says what it means."""
    with st.container(key="cards"):
        columns = st.columns(len(cards))
    for number, (label, value, meaning) in enumerate(cards):
        column = columns[number]
        with column.container(border=True, gap=None, height="stretch", key=f"card_{number}"):
            st.metric(label, value)
            st.caption(meaning)
