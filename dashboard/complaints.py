"""Why there is no result, said once: beside the control, or on top while that cannot be seen."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

BESIDE = "complaint"
# The server does not know whether the sidebar, or the part of it with the control, is open. How an
# open sidebar is marked depends on the version of Streamlit.
SEEN = (
    '.stApp:has([data-testid="stSidebar"]:is([data-collapsed="false"], [aria-expanded="true"]) '
    f".st-key-{BESIDE}:not(details:not([open]) *))"
)
CSS = f"""
{SEEN} .st-key-on_top {{ display: none; }}
.stApp:not({SEEN.removeprefix(".stApp")}) .st-key-pointer {{ display: none; }}
"""


def beside(slot: DeltaGenerator, sentence: str) -> None:
    """In the place of a control of the sidebar; only one complaint of a page has one."""
    slot.container(key=BESIDE).error(sentence)


def on_top(sentence: str, nothing: str, *, beside: bool) -> None:
    """Where the result would be; `beside` says that the sentence stands at a control as well.

    While that one can be seen, only `nothing` is said here, as in "No result".
    """
    if not beside:
        st.error(f"{nothing}: {sentence}")
        return
    with st.container(key="on_top"):
        st.error(f"{nothing}: {sentence}")
    with st.container(key="pointer"):
        st.caption(f"{nothing}: a setting in the sidebar has to change first.")
