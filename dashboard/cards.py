"""The headline numbers of a page."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

Card = tuple[str, str, str]


def show_cards(cards: Sequence[Card], key: str = "") -> None:
    """Side by side: what it is, its value, and a line that says what it means.

    A second row of cards on a page has a key of its own.
    """
    with st.container(key=f"cards{key}", horizontal=True):
        for number, (label, value, meaning) in enumerate(cards):
            with st.container(border=True, gap=None, height="stretch", key=f"card_{key}{number}"):
                st.metric(label, value)
                st.caption(meaning)
