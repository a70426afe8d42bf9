"""What the addresses of all pages have in common."""

from __future__ import annotations

import streamlit as st


def return_to(page: str, address: str, *, arrived: bool) -> None:
    """Back from another page without an address: open the one that was here.

    Streamlit leaves a bare address behind when a page is left, so the browser's Back finds that.
    `address` is the state in which the page keeps its own.
    """
    settings = st.session_state.get(address, {})
    if arrived and not len(st.query_params) and settings.keys() - {"v"}:
        del st.session_state["page"]
        st.switch_page(page, query_params=settings)
