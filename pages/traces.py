"""One training step on one GPU, looked at from all sides: shipped traces and one's own."""

import streamlit as st

from dashboard import look, rejected, traces_tabs, traces_view
from dashboard.address import return_to
from dashboard.links import shipped_traces
from dashboard.plain import plain
from dashboard.settings import VERSION
from dashboard.traces_links import NAMES, parameters_here, read_address, set_to
from dashboard.traces_side import choose, snippet
from dashboard.traces_store import folder_of, uploads
from triosim import Trace, load_trace
from triosim.errors import TraceFormatError


def read_or_sentence(chosen: str) -> Trace | None:
    """The trace, or what is wrong with it."""
    try:
        return load_trace(folder_of(chosen))
    except TraceFormatError as error:
        st.error(f"No trace: {plain(str(error))}")
        return None


arrived = look.open_page("traces", VERSION)
return_to("pages/traces.py", "traces_address", NAMES, arrived=arrived)
read_address([*shipped_traces(), *uploads()], arrived)
with st.sidebar:
    chosen = choose()
rejected.show("traces", (chosen, set_to()))
st.session_state["traces_address"] = parameters_here()
trace = read_or_sentence(chosen)
if trace is not None:
    title, actions = st.columns([0.5, 0.5], vertical_alignment="center")
    title.subheader(traces_view.title_of(chosen, trace), anchor=False)
    with actions.container(
        horizontal=True, horizontal_alignment="right", vertical_alignment="center"
    ):
        with st.popover("Record your own", icon=":material/radio_button_checked:", width=200):
            snippet()
        traces_view.simulate_link(chosen)
    traces_view.headline(trace)
    traces_view.notices(chosen, trace)
    traces_tabs.tabs(chosen, trace)
