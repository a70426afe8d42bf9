"""Many steps at once: fields that go through values, and the search for the fastest layout."""

import streamlit as st

from dashboard import complaints, look, rejected
from dashboard.address import set_to
from dashboard.compare_files import ask_for
from dashboard.plain import plain
from dashboard.search_side import choose as choose_search
from dashboard.search_views import open_compared, search
from dashboard.settings import VERSION
from dashboard.sweep_links import (
    MODES,
    SWEEP,
    address_now,
    base_here,
    drop_base,
    missing_here,
    read_address,
    return_here,
    switched,
    value_of,
)
from dashboard.sweep_open import open_asked
from dashboard.sweep_side import choose as choose_sweep
from dashboard.sweep_views import sweep
from triosim.errors import TrioSimError


def sweep_part(arrived: bool) -> None:
    """A sweep; or, first, the file that its link needs."""
    try:
        needed = missing_here()
        base = None if needed else base_here()
    except TrioSimError as error:
        st.error(f"This link cannot be used: {plain(str(error))}", icon=":material/link_off:")
        st.button("Start anew", icon=":material/restart_alt:", on_click=drop_base)
        return
    if base is None:
        ask_for(needed)
        st.button("Start anew instead", on_click=drop_base, type="tertiary")
        return
    with st.sidebar:
        asked = choose_sweep(base, arrived)
    if isinstance(asked, str):
        complaints.on_top(asked, "No sweep", beside=True)
    else:
        sweep(asked)


def search_part(arrived: bool) -> None:
    with st.sidebar:
        question = choose_search(arrived)
    if isinstance(question, str):
        complaints.on_top(question, "No search", beside=True)
    else:
        search(question)


arrived = look.open_page("sweep", VERSION)
return_here(arrived)
open_asked()
open_compared()
read_address(arrived)
with st.sidebar:
    part = st.segmented_control(
        "Part", MODES, default=SWEEP, required=True, key="part", bind="query-params",
        label_visibility="collapsed", on_change=switched, width="stretch",
    )  # fmt: skip
rejected.show("sweep", set_to(value_of))
(sweep_part if part == SWEEP else search_part)(arrived)
st.session_state["sweep_address"] = address_now()
