"""Networks: a topology, a collective on it, its steps, and who is in whose way."""

import streamlit as st

from dashboard import complaints, look, network_description, network_more, network_tabs, rejected
from dashboard.address import return_to
from dashboard.lab import strip
from dashboard.network_answers import studied
from dashboard.network_links import parameters_here, read_address, set_to
from dashboard.network_settings import SETTINGS, TABS
from dashboard.network_side import Chosen, choose, sentence
from dashboard.network_study import Study
from dashboard.settings import VERSION
from triosim.errors import TrioSimError


def answer_or_sentence(chosen: Chosen) -> Study | None:
    """The collective's costs, or what is wrong with it."""
    if chosen.question is None:
        complaints.on_top(chosen.problem, "No network", beside=True)
        return None
    try:
        return studied(chosen.question)
    except TrioSimError as error:
        st.error(f"No result: {sentence(error)}")
        return None


def tabs(chosen: Chosen, found: Study | None) -> None:
    """Only the open one is built; the first three need the collective."""
    opened = st.tabs(list(TABS), key="show", on_change="rerun", bind="query-params")
    for name, tab in zip(TABS, opened, strict=True):
        if tab.open:
            with tab:
                _view(name, chosen, found)


def _view(name: str, chosen: Chosen, found: Study | None) -> None:
    own = {"Electrical or optical": network_more.optical_tab, "Failures": network_more.failures_tab}
    if name in own:
        own[name]()
    elif chosen.network is None:
        return  # what is wrong with it stands above
    elif name == "Two at once":
        network_more.overlap_tab(chosen)
    elif name == "Description":
        network_description.description_tab(chosen)
    elif found is None:
        return
    elif name == "Step by step":
        network_tabs.steps_tab(chosen, found, chosen.network.build())
    elif name == "Time and size":
        network_tabs.sizes_tab(chosen, found)
    else:
        network_tabs.links_tab(chosen, found, chosen.network.build())


arrived = look.open_page("network", VERSION)
return_to("pages/network.py", "network_address", SETTINGS, arrived=arrived)
read_address(arrived)
asked = strip.choose_question()
with st.sidebar:
    chosen = choose()
rejected.show("network", (chosen, set_to()))
if asked is None or strip.ask(asked):
    found = answer_or_sentence(chosen)
    tabs(chosen, found)
    if asked is not None:
        strip.play_and_explain(asked)
st.session_state["network_address"] = parameters_here()
