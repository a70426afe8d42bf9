"""What an address said wrongly, until the page is set to something else."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dashboard.plain import plain


def note(page: str, sentences: Sequence[str], *, arrived: bool) -> None:
    """Keep the sentences of a link; one that is opened now takes the place of the last."""
    if sentences or arrived:
        st.session_state[f"rejected_{page}"] = list(sentences), None


def show(page: str, now: object) -> bool:
    """Say them while the page is set as it was when they were first said; `now` is how it is.

    Whether there was anything to say.
    """
    sentences, then = st.session_state.get(f"rejected_{page}", ([], None))
    if not sentences:
        return False
    if then not in (None, now):
        del st.session_state[f"rejected_{page}"]
        return False
    st.session_state[f"rejected_{page}"] = sentences, now
    lines = "\n".join(f"- {plain(sentence)}" for sentence in sentences)
    text = f"Not everything in this link can be used:\n\n{lines}"
    st.warning(text, icon=":material/link_off:")
    return True
