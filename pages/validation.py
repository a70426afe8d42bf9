"""Predicted against published: every source with its errors, what was asked for and what fails."""

import streamlit as st

from dashboard import look, rejected
from dashboard.address import return_to
from dashboard.settings import VERSION
from dashboard.validation_all import all_tab
from dashboard.validation_compile import compile_tab
from dashboard.validation_links import CHOICES, TABS, parameters_here, read_address, set_to
from dashboard.validation_open import open_asked
from dashboard.validation_source import source_tab


def tabs() -> None:
    """Only the open one is built."""
    opened = st.tabs(list(TABS), key="aspect", on_change="rerun", bind="query-params")
    for tab, content in zip(opened, (source_tab, all_tab, compile_tab), strict=True):
        if tab.open:
            with tab:
                content()


arrived = look.open_page("validation", VERSION)
return_to("pages/validation.py", "validation_address", CHOICES, arrived=arrived)
read_address(arrived)
open_asked()
rejected.show("validation", set_to())
st.session_state["validation_address"] = parameters_here()
st.subheader("How far off are the predictions?", anchor=False)
tabs()
